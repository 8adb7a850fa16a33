"""The rule that decides whether the user's draws agree with the annealed ones, and its level."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bread.errors import InvalidArgumentError
from bread.statistics.agreement.draws import effective_draws_suffice

LEVEL = 0.01  # of a false alarm in one comparison, over all quantities and all families of tests
N_FAMILIES = 3  # interval contents; the test of equality; what a classifier tells apart

Status = Literal["too few draws", "agreement", "difference", "disagreement"]


class Comparison(NamedTuple):
    """Result of `compare_draws`.

    Attributes
    ----------
    status : str
        "too few draws" : some quantity has fewer than 100 effective draws; nothing was decided.
        "disagreement" : the two differ by more than the annealed draws' own error explains.
        "difference" : the two differ, and the annealed draws' own error may be why.
        "agreement" : no difference was seen. What could have been seen: `bread.statistics.agreement.power`.
    p_value : float
        Of "both have one distribution".
    p_value_beyond_error : float
        Of "no probability differs by more than the annealed draws' error".
    """

    status: Status
    p_value: float
    p_value_beyond_error: float


def compare_draws(
    content_p_values: ArrayLike,
    content_p_values_beyond_error: ArrayLike,
    equality_p_value: float,
    equality_p_value_beyond_error: float,
    n_effective: ArrayLike,
    told_apart_p_value: float = float("nan"),
    told_apart_p_value_beyond_error: float = float("nan"),
) -> Comparison:
    """Decide whether the user's draws agree with the annealed ones.

    The rule: three families of tests, the interval contents of d quantities (corrected for 4 d), the test of
    equality of d quantities, the log density and products of pairs (corrected for their number), and what a classifier
    tells apart, of all quantities at once. Three times the smallest corrected p-value is taken. At most `LEVEL` = 0.01
    is "disagreement" for the hypothesis that no probability differs by more than V, and "difference" for V = 0.

    The level: if the user's draws come from the posterior, have the effective sizes that were estimated, and V
    holds on these data, "disagreement" happens in at most 1% of comparisons. The Monte Carlo error of the user's
    quantiles is part of all tests. The limits of the contents are not: they may leave out 0.9 without a
    disagreement, where the user's draws are few.

    Parameters
    ----------
    content_p_values, content_p_values_beyond_error : array_like
        From `bread.statistics.agreement.content.interval_contents`, corrected; NaN where constant.
    equality_p_value, equality_p_value_beyond_error : float
        From the test of equality, combined; NaN if all is constant.
    n_effective : array_like, shape (d,) or (d, 3)
        Effective sizes of the user's draws.
    told_apart_p_value, told_apart_p_value_beyond_error : float
        From `bread.statistics.agreement.lower_bound`; NaN where no classifier has looked.

    Returns
    -------
    Comparison

    Raises
    ------
    InvalidArgumentError
        If a p-value lies outside [0, 1] or no quantity varies.
    """
    combined = _combined(content_p_values, equality_p_value, told_apart_p_value)
    beyond = _combined(content_p_values_beyond_error, equality_p_value_beyond_error, told_apart_p_value_beyond_error)
    status: Status = "agreement"
    if not effective_draws_suffice(n_effective).suffices:
        status = "too few draws"
    elif beyond <= LEVEL:
        status = "disagreement"
    elif combined <= LEVEL:
        status = "difference"
    return Comparison(status, combined, beyond)


def _combined(contents: ArrayLike, *others: float) -> float:
    """Return the smallest p-value of all families times their number, at most 1."""
    values = np.append(np.asarray(contents, dtype=np.float64).ravel(), others)
    known = values[~np.isnan(values)]
    if known.size == 0 or known.min() < 0.0 or known.max() > 1.0:
        raise InvalidArgumentError(
            f"p-values must lie in [0, 1] and one must be known, but got {known.size} of {values.size}: {known}. "
            "Where every quantity is constant there is nothing to compare."
        )
    return float(min(1.0, N_FAMILIES * known.min()))
