"""Structures that Python and C++ share: their layouts are compared when a library is loaded."""

from __future__ import annotations

import ctypes

import pytest

from bread.backends.stan.native import structures
from bread.backends.stan.native.interface import load
from bread.errors import BreadError
from tests.support.stan_engine_programs import CONJUGATE, compiled

pytestmark = pytest.mark.stan


class Longer(ctypes.Structure):
    """As `PathStruct`, with a field that the driver does not have."""

    _fields_ = (*structures.PathStruct._fields_, ("more", ctypes.c_int32))


class Swapped(ctypes.Structure):
    """As `PathStruct`, in another order; the size is the same."""

    _fields_ = structures.PathStruct._fields_[::-1]


def test_the_driver_has_the_layout_of_the_mirrors() -> None:
    assert load(compiled(CONJUGATE).path)


@pytest.mark.parametrize("mirror", [Longer, Swapped])
def test_control_another_layout_is_refused(mirror: type[ctypes.Structure], monkeypatch: pytest.MonkeyPatch) -> None:
    path = compiled(CONJUGATE).path
    load.cache_clear()
    monkeypatch.setitem(structures.MIRRORED, "bread_path", mirror)
    with pytest.raises(BreadError, match=r"other structures than bread's Python code \(bread_path\)"):
        load(path)
    monkeypatch.undo()
    load(path)
