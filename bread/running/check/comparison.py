"""Draws on the real data for the comparison with the fit: how many, their log density, and what tells them apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bread.backends.base import FloatArray, Model
from bread.errors import UnsupportedModelError
from bread.jobs import interrupts
from bread.running.check.annealing import Annealing
from bread.running.pilots.tasks import DensityTask
from bread.running.state.ledger import Ledger
from bread.running.state.plan import Plan
from bread.running.state.results import OBSERVED, CheckResult
from bread.statistics.agreement.agreement import effective_sample_size, quantile_effective_size
from bread.statistics.agreement.content import QUANTILES, draws_needed
from bread.statistics.agreement.draws import effective_draws_suffice
from bread.statistics.agreement.lower_bound import ToldApart, tell_apart

FEWEST_DRAWS = 100  # where more cost too much, or nothing can be compared
CHEAP = 1_000_000  # gradient evaluations in compiled code
STATES_PER_TASK = 500
SHARE_OF_TIME = 0.6  # of what is left, that draws may take: tests of the fit and modes come after them
MOST_IN_TIME = 1_000_000
TIMED = ("search", "confirm")  # phases whose wall time is that of annealed chains alone
CONFIRMATION = ("start", "search", "confirm")  # phases that anneal simulated data sets for the bound


def draw_and_compare(
    model: Model, plan: Plan, result: CheckResult, annealing: Annealing, ledger: Ledger, n_temperatures: int
) -> None:
    """Anneal draws on the real data at this T, and compare the fit's with them as far as that takes more than counting.

    The log density of the fit's draws, and what a classifier makes of both, where own draws are enough to be compared.
    """
    seconds_left = interrupts.seconds_left()
    n_draws = wanted_draws(plan, result, n_temperatures, seconds_left)
    if n_draws == 0:
        return
    n_wanted = n_draws if math.isinf(seconds_left) else wanted_draws(plan, result, n_temperatures)
    if n_draws < n_wanted:
        result.warnings.append(
            f"max_seconds= left time for {n_draws} certified draws on your data in place of {n_wanted}: smaller "
            "differences from the fit go unseen. More seconds, or draws=, give more."
        )
    annealing.draws_on_real_data(n_temperatures, n_draws)
    if result.partial is not None and result.observed_draws is not None:
        names = [name for name in result.partial.draws if name not in result.info.layout.parameters]
        result.observed_derived = model.derive(result.observed_draws, names) if names else {}
    elif is_compared(result):
        result.fit_log_density = log_density_of_fit(model, result, ledger)
    if is_compared(result) and has_enough_draws(result) and result.observed_draws is not None:
        with ledger.phase("telling draws apart", "compare"):
            result.told_apart = told_apart(model, result, result.observed_draws)


def is_compared(result: CheckResult) -> bool:
    """Return whether there are draws to compare with annealed ones.

    Annealed draws of a localised model are draws from another posterior than the fit's.
    """
    return result.compared is not None and result.localisation is None


def has_enough_draws(result: CheckResult) -> bool:
    """Return whether the fit has the effective draws of every parameter without which nothing is compared.

    The same sizes as in the report's group `agreement`, which asks them of the log density too.
    """
    assert result.compared is not None
    for name, values in result.compared.draws.items():
        if name not in result.info.layout.parameters and result.partial is None:
            continue
        own = np.asarray(values, dtype=np.float64)
        columns = own.reshape(*own.shape[:2], -1)
        if not columns.shape[2]:
            continue
        sizes = [quantile_effective_size(columns, quantile) for quantile in QUANTILES]
        worth = result.compared.distinct_share * np.minimum(effective_sample_size(columns), np.array(sizes))
        if not effective_draws_suffice(worth.T).suffices:
            return False
    return True


def wanted_draws(plan: Plan, result: CheckResult, n_temperatures: int, seconds_left: float = math.inf) -> int:
    """Return how many draws to anneal on the real data: what the user asked for, or what the comparison needs.

    By default as many as bring the limits of all interval contents within 0.025 (tails) and 0.05 (median), 1000 or so;
    `FEWEST_DRAWS` where there is nothing to compare, or the fit has too few effective draws to be compared.
    No more than cost what search and confirmation have cost, with the starts of their reverse chains, or where chains
    run whole in compiled code `CHEAP` gradient evaluations; at least `FEWEST_DRAWS`. It depends on counts alone, not on
    the machine's speed, unless that many would take more than `SHARE_OF_TIME` of the ``seconds_left``
    (`max_seconds=`): then it is what simulated chains have taken that tells how many there is time for, before any
    draw is seen.
    """
    if plan.draws is not None:
        return plan.draws
    needed = FEWEST_DRAWS
    if is_compared(result) and has_enough_draws(result):
        assert result.compared is not None
        n_parameters = sum(math.prod(values.shape[2:]) for values in result.compared.draws.values())
        needed = max(needed, draws_needed(n_parameters + 1))  # the log density is one more
        needed = min(needed, max(FEWEST_DRAWS, _affordable(result, n_temperatures)))
    needed = min(needed, max(FEWEST_DRAWS, _in_time(result, n_temperatures, seconds_left)))
    return -(-needed // plan.chains) * plan.chains  # whole rows of (chain, draw)


def _affordable(result: CheckResult, n_temperatures: int) -> int:
    """Return how many draws cost as many gradient evaluations as search and confirmation did, or what is cheap."""
    cheap = CHEAP if result.info.identity.runs_compiled else 0
    return int(max(_spent(result, CONFIRMATION), cheap) / max(_of_a_draw(result, n_temperatures), 1.0))


def _of_a_draw(result: CheckResult, n_temperatures: int) -> float:
    run = result.runs[OBSERVED, "forward", n_temperatures]
    return float(np.maximum(run.n_gradients, run.n_evaluations).mean())  # some kernels take no gradient


def _spent(result: CheckResult, phases: Sequence[str]) -> int:
    """Return the gradients of these phases; where a kernel takes none, the evaluations of all simulated chains."""
    spent = sum(result.n_gradients.get(phase, 0) for phase in phases)
    runs = (run for (simulation, _, _), run in result.runs.items() if simulation != OBSERVED)
    return spent or sum(int(run.n_evaluations.sum()) for run in runs)


def _in_time(result: CheckResult, n_temperatures: int, seconds_left: float) -> int:
    """Return how many draws there is time for, by what gradients of simulated chains have taken; at most a million."""
    seconds = sum(result.seconds.get(phase, 0.0) for phase in TIMED)
    if not seconds or math.isinf(seconds_left):
        return MOST_IN_TIME
    per_second = _spent(result, TIMED) / seconds
    in_time = SHARE_OF_TIME * max(seconds_left, 0.0) * per_second / max(_of_a_draw(result, n_temperatures), 1.0)
    return int(min(in_time, MOST_IN_TIME))


def log_density_of_fit(model: Model, result: CheckResult, ledger: Ledger) -> FloatArray | None:
    """Return the log density of the fit's draws, up to a constant, (chain, draw); None where the backend has none."""
    assert result.fit is not None
    states = model.unconstrain(result.fit.flat_draws())
    tasks = density_tasks(states, result)
    try:
        with ledger.phase("log density of the fit", "compare", len(tasks)):
            values = np.concatenate(ledger.in_order(tasks))
    except UnsupportedModelError:
        return None
    return values.reshape(next(iter(result.fit.draws.values())).shape[:2])


def told_apart(model: Model, result: CheckResult, states: FloatArray) -> ToldApart | None:
    """Return how well a classifier tells the fit's draws from certified ones, whose states (n, dim) are given.

    By all variables that both have, and the log density; None where it has too little to learn from.
    """
    own, theirs = result.compared, {**model.constrain(states), **result.observed_derived}
    assert own is not None
    names = [name for name in own.draws if name in theirs]
    columns = [(np.asarray(own.draws[name], dtype=np.float64), np.asarray(theirs[name])) for name in names]
    if result.fit_log_density is not None and result.observed_log_density is not None:
        columns.append((result.fit_log_density, result.observed_log_density))
    columns = [(ours, other) for ours, other in columns if np.isfinite(ours).all() and np.isfinite(other).all()]
    if not columns:
        return None
    return tell_apart(
        np.concatenate([ours.reshape(*ours.shape[:2], -1) for ours, _ in columns], axis=2),
        np.concatenate([other.reshape(len(other), -1) for _, other in columns], axis=1, dtype=np.float64),
        distinct_share=own.distinct_share,
    )


def density_tasks(states: FloatArray, result: CheckResult) -> list[DensityTask]:
    """Return what evaluates the log density, up to a constant, at states (n, dim) on the real data, in their order."""
    path, data = result.path_of(OBSERVED), dict(result.info.data.observed)
    lows = range(0, len(states), STATES_PER_TASK)
    return [DensityTask(OBSERVED, data, path, states[low : low + STATES_PER_TASK]) for low in lows]
