"""Do discrete draws follow their scores? What no gradient can test, and no weight shows where it is in a prior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from bread.backends.base import FloatArray
from bread.errors import UnsupportedModelError
from bread_webppl.bridge import Bridge, unpack

DRAWS = 4000  # of each law
MOST_LAWS = 30  # one after another in a run, those with the parameters of an earlier one left out
LEVEL = 1e-6  # of all laws together: a right program is refused once in a million
FEWEST = 5.0  # expected draws of a value that is counted by itself


def refuse_wrong_draws(bridge: Bridge) -> None:
    """Compare draws of the discrete laws that a run of the program meets with their scores.

    Raises
    ------
    UnsupportedModelError
        Pearson's test says that they differ, or a draw has a score of minus infinity.
    """
    laws = bridge.ask("laws", seed="laws", n=DRAWS, most=MOST_LAWS)["rows"]
    for law in laws:
        p_value = _p_value(unpack(law["counts"]), unpack(law["scores"]))
        if p_value * len(laws) < LEVEL:
            raise UnsupportedModelError(
                f"Draws of {law['name']} ({_written(law)}) do not follow its score (p = {p_value:.1g} in {DRAWS} "
                "draws). The distribution is wrong: correct it (or its package), or use another one."
            )


def _p_value(counts: FloatArray, scores: FloatArray) -> float:
    """Return the p-value of Pearson's test of counts of values; those that are rare, or were never drawn, are one."""
    expected = DRAWS * np.exp(scores)
    if (expected == 0.0).any() or expected.sum() > DRAWS * (1.0 + 1e-6):
        return 0.0
    common = expected >= FEWEST
    observed = np.append(counts[common], counts[~common].sum())
    wanted = np.append(expected[common], DRAWS - expected[common].sum())
    if wanted[-1] < FEWEST:  # too few for a cell: their own tail, and the others by themselves
        tail = float(stats.poisson.sf(observed[-1] - 1, max(wanted[-1], 1e-9))) if observed[-1] else 1.0
        observed, wanted = observed[:-1], wanted[:-1]
    else:
        tail = 1.0
    if len(wanted) < 2:
        return min(1.0, 2.0 * tail)
    statistic = float(((observed - wanted) ** 2 / wanted).sum())
    return min(1.0, 2.0 * min(tail, float(stats.chi2.sf(statistic, len(wanted) - 1))))


def _written(law: Mapping[str, Any]) -> str:
    text = str(law["parameters"])
    return text if len(text) <= 80 else f"{text[:77]}..."
