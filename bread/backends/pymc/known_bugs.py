"""Defects of released versions of PyMC that a model can meet, each with the version that mends it.

A row stands here only if it was measured with the bad and with the mended version. What a defect does to a check is
said in its row: a constant of a density changes no posterior and is a note of the report alone, while wrong draws or a
wrong density are also warned of when the model is opened.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bread.backends.pymc.model import reading
from bread.errors import KNOWN_DEFECT, KnownBugWarning

_LKJ = ("LKJCorrRV", "_LKJCholeskyCovRV")
_NAMES = {"LKJCorrRV": "LKJCorr", "_LKJCholeskyCovRV": "LKJCholeskyCov", "CARRV": "CAR"}


@dataclass(frozen=True)
class KnownBug:
    """A defect of one or more distributions in a range of versions.

    Attributes
    ----------
    operations : tuple of str
        Names of the types of random operations that have it.
    first : tuple of int
        The first version that has it, among those that bread supports.
    mended : tuple of int or None
        The first version that does not have it; None where no released version is known to be right.
    smallest : int
        The smallest number of dimensions n at which it shows; 0 where it shows at any.
    what : str
        What is wrong and what follows from it, as the end of a sentence; what to use instead, where none is mended.
    is_harmless : bool
        No draw and no posterior is wrong.
    """

    operations: tuple[str, ...]
    first: tuple[int, ...]
    mended: tuple[int, ...] | None
    smallest: int
    what: str
    is_harmless: bool = False

    def affects(self, version: tuple[int, ...], operation: str, n: int) -> bool:
        """Return whether a variable of n dimensions meets it under an installed version."""
        is_affected = self.first <= version and (self.mended is None or version < self.mended)
        return is_affected and operation in self.operations and n >= self.smallest


KNOWN_BUGS = (
    KnownBug(
        _LKJ, (6, 0, 0), (6, 4, 0), 3,
        "its random draws have too little correlation (n = 3, eta = 1: variances of 0.20, where the law says 0.25), so "
        "that simulated data sets and prior predictive draws are not those of the model",
    ),
    KnownBug(
        ("LKJCorrRV",), (6, 0, 0), (6, 4, 0), 3,
        "its density leaves out a Jacobian (n = 3, eta = 1: the variance of the first correlation is 1/3, where the "
        "law says 0.25), so that posteriors are not those of the model",
    ),
    KnownBug(
        _LKJ, (5, 25, 0), (6, 4, 0), 2,
        "its density is off by a constant factor, which depends on n and eta (eta = 1: e^1.4 at n = 2). That changes "
        "log evidences and no posterior",
        is_harmless=True,
    ),
    KnownBug(
        ("CARRV",), (5, 25, 0), None, 0,
        "its random draws have the covariance Q^-2, where its density has Q^-1 (Q = tau (D - alpha W)), so that "
        "simulated data sets and prior predictive draws are not those of the model. Use pm.MvNormal(mu, tau=Q), "
        "whose draws and density belong together",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Found:
    """A known defect that a variable of a model meets; `text` says it in full."""

    text: str
    is_harmless: bool


def find_known_bugs(model: Any, version: str, table: Sequence[KnownBug] = KNOWN_BUGS) -> list[Found]:
    """Return the known defects that the variables of a model meet under a version of PyMC, in the order of the model.

    Parameters
    ----------
    model : pymc.Model
    version : str
        Such as ``pymc.__version__``.
    table : sequence of KnownBug
    """
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    found = []
    for variable in model.basic_RVs:
        operation = type(variable.owner.op).__name__
        if operation not in _NAMES:
            continue
        n = _dimensions(variable) if operation in _LKJ else 0
        for bug in table:
            if n is not None and bug.affects(numbers, operation, n):
                size = f", n = {n}" if operation in _LKJ else ""
                upgrade = f" Upgrade to pymc >= {'.'.join(map(str, bug.mended))}." if bug.mended else ""
                text = f"{KNOWN_DEFECT} PyMC {version} in {variable.name!r} ({_NAMES[operation]}{size}): {bug.what}."
                found.append(Found(text + upgrade, bug.is_harmless))
    return found


def _dimensions(variable: Any) -> int | None:
    """Return n of an LKJ law; None where it depends on other variables."""
    try:
        return int(reading.evaluate(variable.owner.op.dist_params(variable.owner)[0]))
    except Exception:
        return None


def warn_of(found: Sequence[Found], warn: Callable[..., None] = warnings.warn) -> None:
    """Warn of what makes draws or posteriors wrong; what is harmless stays in the report's notes."""
    for one in found:
        if not one.is_harmless:
            warn(one.text, KnownBugWarning, stacklevel=3)
