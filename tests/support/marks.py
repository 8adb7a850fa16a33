"""Which cases of a table run in `make test`: a few of each, the others with the long runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest


def slow_but(fast: Collection[Any], cases: Iterable[Any], key: Callable[[Any], Any] = lambda case: case) -> list[Any]:
    """Return ``cases`` as parameters; those whose ``key`` is not in ``fast`` are slow. Each of ``fast`` must occur."""
    listed = list(cases)
    unknown = [one for one in fast if one not in [key(case) for case in listed]]
    assert not unknown, f"not among the cases: {unknown}"
    return [pytest.param(case, marks=[] if key(case) in fast else [pytest.mark.slow]) for case in listed]
