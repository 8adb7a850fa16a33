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

import numpy as np
from pytensor.graph.traversal import ancestors

from bread.backends.pymc.density.compiling import is_generator
from bread.backends.pymc.model import reading
from bread.errors import KNOWN_DEFECT, KnownBugWarning

_LKJ = ("LKJCorrRV", "_LKJCholeskyCovRV")
_WALD = ("CensoredRV WaldRV", "TruncatedRV WaldRV")
_WHOLE = ("CensoredRV DiscreteUniformRV", "TruncatedRV DiscreteUniformRV")
_NAMES = {
    "LKJCorrRV": "LKJCorr", "_LKJCholeskyCovRV": "LKJCholeskyCov", "CARRV": "CAR", "VonMisesRV": "VonMises",
    **{kind: kind.replace("RV", "") for kind in (*_WALD, *_WHOLE)},
}  # fmt: skip


@dataclass(frozen=True)
class KnownBug:
    """A defect of one or more distributions in a range of versions.

    Attributes
    ----------
    operations : tuple of str
        Names of the types of random operations that have it; of a distribution that is cut, both types.
    first : tuple of int
        The first version that has it, among those that bread supports.
    mended : tuple of int or None
        The first version that does not have it; None where no released version is known to be right.
    smallest : int
        The smallest number of dimensions n, or concentration, at which it shows; 0 where it shows at any.
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

    def affects(self, version: tuple[int, ...], operation: str, n: float) -> bool:
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
        "its random draws have the covariance Q^-2, where its density has Q^-1 (Q = tau (D - alpha W)), so that PyMC's "
        "prior and posterior predictive draws are not those of the model. bread draws it by its density. Use "
        "pm.MvNormal(mu, tau=Q), whose draws and density belong together",
    ),
    KnownBug(
        ("CARRV",), (5, 25, 0), None, 0,
        "its density leaves out the constant |D|^(1/2) (2 pi)^(-n/2). That changes log evidences and no posterior",
        is_harmless=True,
    ),
    KnownBug(
        _WALD, (5, 25, 0), (6, 4, 0), 0,
        "the distribution function of Wald is another one (mu = lam = 2, at 2: 0.76, where the law says 0.67), so that "
        "posteriors are not those of the model",
    ),
    KnownBug(
        _WHOLE, (5, 25, 0), (6, 4, 0), 0,
        "the distribution function of DiscreteUniform is 0 at its least value, so that posteriors are not those of the "
        "model where that is at or next to a bound",
    ),
    KnownBug(
        ("VonMisesRV",), (5, 25, 0), (6, 4, 0), 92,
        "its density is 0 where kappa is above 91, if that is a plain number, or above 712: no posterior goes there",
        is_harmless=True,
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
        operation = _operation(variable)
        if operation not in _NAMES:
            continue
        n = _greatest(variable, operation)
        for bug in table:
            if n is not None and bug.affects(numbers, operation, n):
                size = f", n = {n}" if operation in _LKJ else ""
                upgrade = f" Upgrade to pymc >= {'.'.join(map(str, bug.mended))}." if bug.mended else ""
                text = f"{KNOWN_DEFECT} PyMC {version} in {variable.name!r} ({_NAMES[operation]}{size}): {bug.what}."
                found.append(Found(text + upgrade, bug.is_harmless))
    return found


def _operation(variable: Any) -> str:
    """Return the type of the operation that draws a variable, and after it the type of what it cuts."""
    node = variable.owner
    cut = node.inputs[0].owner.op if type(node.op).__name__ == "CensoredRV" else getattr(node.op, "base_rv_op", None)
    return " ".join(type(op).__name__ for op in (node.op, cut) if op is not None)


def _greatest(variable: Any, operation: str) -> float | None:
    """Return n of an LKJ law, None where it depends on other variables; a concentration, inf where it does."""
    if operation not in (*_LKJ, "VonMisesRV"):
        return 0
    parameters = variable.owner.op.dist_params(variable.owner)
    try:
        if operation in _LKJ:
            return int(reading.evaluate(parameters[0]))
        is_random = any(is_generator(one) for one in ancestors([parameters[1]]))
        return np.inf if is_random else float(np.max(reading.evaluate(parameters[1])))
    except Exception:
        return None


def warn_of(found: Sequence[Found], warn: Callable[..., None] = warnings.warn) -> None:
    """Warn of what makes draws or posteriors wrong; what is harmless stays in the report's notes."""
    for one in found:
        if not one.is_harmless:
            warn(one.text, KnownBugWarning, stacklevel=3)
