"""Operations in C: a compiled module is taken from PyTensor's cache only if its code is the same."""

from __future__ import annotations

import pytest

from bread.backends.pymc.density.c_references.reference_op import ReferenceDensity
from bread.backends.pymc.density.pytensor_fixes.matrix_vector import MatrixVector

OPERATIONS = [ReferenceDensity("bread_centred"), MatrixVector()]


@pytest.mark.parametrize("method", ["c_support_code", "c_code"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: type(one).__name__)
def test_other_code_has_another_version(operation, method, monkeypatch):
    """Else a module that an earlier release compiled would be called with what this one packs, without an error."""
    before = operation.c_code_cache_version()
    assert before == operation.c_code_cache_version() != ()
    code = getattr(type(operation), method)
    monkeypatch.setattr(type(operation), method, lambda self, *given, **named: code(self, *given, **named) + " ")
    assert operation.c_code_cache_version() != before
