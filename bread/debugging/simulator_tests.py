"""What exact draws must be: numbers within the support, independent of one another, that follow the density."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bread.debugging.finding import BatteryTest, Finding, LeftOut, certain
from bread.debugging.sample import LOG_DENSITY, Sample
from bread.debugging.subject import FloatArray
from bread.errors import InvalidArgumentError
from bread.statistics.exactness.functions import EVERYTHING, Label
from bread.statistics.exactness.invariance import FEWEST_DRAWS
from bread.statistics.exactness.jumps import beside_jumps
from bread.statistics.exactness.means import mean_zero_test
from bread.statistics.exactness.score import outcome_coordinates, prior_score_test
from bread.statistics.exactness.symmetry import symmetry_test

OUTSIDE, NOT_A_NUMBER, FRACTION, ZERO = "outside of the support", "not a number", "not a whole number", "density zero"
KINDS = (NOT_A_NUMBER, OUTSIDE, FRACTION)


def unsound(sample: Sample, states: FloatArray, log_density: FloatArray) -> dict[Label, int]:
    """Return how many states contradict the subject's own description, by coordinate and kind.

    Parameters
    ----------
    sample : Sample
    states : ndarray, shape (..., d)
    log_density : ndarray, shape (...)
        Fresh ones of these states.
    """
    subject = sample.subject
    x = states.reshape(-1, states.shape[-1])
    density = log_density.ravel()
    is_nan = np.isnan(x)
    whole = ~subject.is_continuous & np.isfinite(x)
    by_kind: dict[str, NDArray[np.bool_]] = {
        NOT_A_NUMBER: is_nan,
        OUTSIDE: (x < subject.lower) | (x > subject.upper),
        FRACTION: whole & (x != np.rint(x)),
    }
    counts = {
        Label(name, kind): int(by_kind[kind][:, i].sum())
        for i, name in enumerate(subject.coordinates)
        for kind in KINDS
    }
    # A draw may round to the very end of a continuous coordinate, where a density may be zero or infinite.
    at_end = (((x == subject.lower) | (x == subject.upper)) & subject.is_continuous).any(axis=1)
    looked_at = ~is_nan.any(axis=1) & ~at_end
    counts[Label(LOG_DENSITY, NOT_A_NUMBER)] = int((np.isnan(density) & looked_at).sum())
    counts[Label(LOG_DENSITY, ZERO)] = int((np.isneginf(density) & looked_at).sum())
    return counts


def found_unsound(counts: dict[Label, int], what: str, n: int, failures: tuple[str, ...] = ()) -> Finding:
    """Return the finding of what `unsound` counted."""
    failed = [
        (label, float(count), f"{count} {what} have {label.quantity} {label.function}." if label.function != ZERO else
         f"{count} {what} have density zero.")
        for label, count in counts.items()
        if count
    ]  # fmt: skip
    labels = list(counts)
    if failures:
        raised = Label(EVERYTHING, "raised an error")
        failed.insert(0, (raised, float(len(failures)), "The kernel raised " + "; ".join(failures[:3]) + "."))
        labels.append(raised)
    return certain(failed, labels, n)


def run_draws(sample: Sample) -> Finding:
    """Check exact draws for what cannot be."""
    table = sample.exact_table
    return found_unsound(unsound(sample, table[:, :-1], table[:, -1]), "exact draws", len(table))


def run_score(sample: Sample) -> Finding | LeftOut:
    """Stein's identities of the gradient at exact draws."""
    subject = sample.subject
    if not subject.is_continuous.any():
        return LeftOut("no coordinate is continuous")
    rows: NDArray[np.bool_] = np.asarray(~np.isnan(sample.exact_table).any(axis=1))
    draws = sample.exact.rows(rows)
    gradient = sample.gradient()[rows]
    if gradient.shape != draws.states.shape:
        raise InvalidArgumentError(
            f"the gradient must have shape {draws.states.shape}, one row a draw, but has {gradient.shape}."
        )
    continuous = subject.is_continuous
    lower, upper = np.where(continuous, subject.lower, -np.inf), np.where(continuous, subject.upper, np.inf)
    x, s = outcome_coordinates(draws.states, gradient, lower, upper)
    test, tested = beside_jumps(
        lambda which: prior_score_test(x, s, is_continuous=which),
        continuous,
        draws.states,
        lambda states: sample.log_density(draws.rows(slice(len(states))).at(states)),
    )
    if not tested.any():
        return LeftOut("the density jumps along every coordinate")
    names = subject.coordinates
    labels = [
        Label(names[i], name if k < 2 else f"tanh({names[test.others[i, k - 2]]})")
        for i in range(len(names))
        for k, name in enumerate(test.functions)
    ]
    labels += [Label(EVERYTHING, name) for name in test.functions[:2]]
    pooled = test.pooled_p_values[0] if len(test.pooled_p_values) else np.full(2, np.nan)
    effect = np.concatenate([test.effect.ravel(), np.full(2, np.nan)])
    return Finding(tuple(labels), np.concatenate([test.p_values.ravel(), pooled]), effect, len(draws))


def run_flow(sample: Sample) -> Finding | LeftOut:
    """Balanced flow between exact draws and perturbed copies."""
    flow = sample.flow[~np.isnan(sample.exact_table).any(axis=1)]
    if len(flow) < FEWEST_DRAWS:
        return LeftOut(f"fewer than {FEWEST_DRAWS} draws are numbers")
    test = mean_zero_test(flow, is_bounded=True)
    labels = (*sample.functions.smooth_labels, *sample.functions.indicator_labels)
    return Finding(labels, test.p_values, test.effect, len(flow))


def run_independence(sample: Sample) -> Finding | LeftOut:
    """Products of differences of neighbouring draws."""
    rows = ~np.isnan(sample.exact_table).any(axis=1)
    scores = sample.functions.scores(sample.exact_table[rows])[:, sample.functions.is_used]
    labels, products = neighbours(sample, np.concatenate([scores, scores**2], axis=1))
    if len(products) < FEWEST_DRAWS // 4:
        return LeftOut(f"fewer than {FEWEST_DRAWS} draws are numbers")
    test = symmetry_test(products)
    return Finding(labels, test.p_values, test.effect, len(scores))


def neighbours(sample: Sample, values: FloatArray) -> tuple[tuple[Label, ...], FloatArray]:
    """Return (a - c)(b - d) for neighbours a, b and other neighbours c, d half the sample away.

    If the four are independent and of one law, exchanging a and c turns the sign and nothing else: symmetric about
    zero. If neighbours share random numbers, ab and cd are correlated, and ad and cb are not.

    Parameters
    ----------
    sample : Sample
    values : ndarray, shape (n, 2 k)
        x and x^2 of the k columns that vary.
    """
    half = len(values) // 4 * 2
    pairs = (half // 2, 2, values.shape[1])  # none, where no chain is a number throughout
    near, far = values[:half].reshape(pairs), values[half : 2 * half].reshape(pairs)
    names = [(*sample.subject.coordinates, LOG_DENSITY)[i] for i in np.flatnonzero(sample.functions.is_used)]
    labels = (*(Label(name, "x") for name in names), *(Label(name, "x^2") for name in names))
    return labels, (near[:, 0] - far[:, 0]) * (near[:, 1] - far[:, 1])


DRAWS = BatteryTest(
    "exact draws",
    "simulator",
    "Exact draws are numbers, lie in the support, and have a log density that is finite.",
    "No chance: one exception is a contradiction.",
    ("The simulator draws where the density is zero: another support, offset or truncation.",),
    "number of draws",
    run_draws,
    is_random=False,
)
FLOW = BatteryTest(
    "draws against density",
    "simulator",
    "Barker's flow between exact draws and perturbed copies is balanced (no gradient is used).",
    "Mean zero for any density; a t test of bounded values, with a counter-value.",
    (
        "Simulator and log density have different laws: parameters (variance for sd, rate for scale), a factor left "
        "out of one of them, a Jacobian missing or of the wrong sign, another support.",
    ),
    "standard deviations of one draw's flow",
    run_flow,
)
SCORE = BatteryTest(
    "draws against gradient",
    "simulator",
    "Stein's identities: the mean of gradient * f + derivative of f is 0 at exact draws (f = 1: of the gradient).",
    "Mean zero if the density vanishes at the ends of its support, bounds mapped to infinity; a t test that allows for "
    "tails not seen.",
    (
        "Simulator and gradient of the log density have different laws.",
        "The support ends where the subject has no bound: name lower and upper.",
    ),
    "standard deviations of one draw's value",
    run_score,
    needs=("gradient",),
)
INDEPENDENCE = BatteryTest(
    "independence of draws",
    "simulator",
    "Exact draws that were made one after the other are independent.",
    "Products of differences are symmetric about zero: exact for every n.",
    ("One call of the simulator shares random numbers, or a parent drawn once, among its draws.",),
    "root mean squares of a product",
    run_independence,
)
SIMULATOR_TESTS = (DRAWS, FLOW, SCORE, INDEPENDENCE)
