"""The phase of a check that tests whether the real data look like the model's."""

from __future__ import annotations

import dataclasses

import numpy as np

from bread.backends.base import FloatArray, Model
from bread.jobs.interrupts import interruptible
from bread.running.model_fit.fit_check import Pool, check_fit, is_dear
from bread.running.state import consistency
from bread.running.state.ledger import Ledger
from bread.running.state.plan import Plan
from bread.running.state.results import OBSERVED, CheckResult
from bread.running.state.users_draws import posterior_draws
from bread.statistics.real_data.fit import FEWEST_RANKED, RANKED_LEVEL


def look_at_fit(model: Model, plan: Plan, result: CheckResult, ledger: Ledger) -> None:
    """Test the fit of the user's model at draws on the real data, where there are any; ``result.fit_check`` keeps it.

    They are annealed ones, or under "localised", whose annealed draws are of another model, those of the fit.
    Simulated from the prior, a small p-value is ranked among those of simulated data sets too.
    """
    with interruptible():
        draws = posterior_draws(model, result)
    if draws is None or not len(draws):
        return
    with ledger.phase("model fit, your data", "replicate"):
        pool: Pool = {}
        check = check_fit(model, draws, pool=pool)
        result.fit_check = check
        if check is None or check.p_value > RANKED_LEVEL or plan.simulate_from != "prior":
            return
        result.fit_check = dataclasses.replace(check, ranked_p_values=_ranked(model, plan, result, pool))


def _ranked(model: Model, plan: Plan, result: CheckResult, pool: Pool) -> FloatArray:
    """Return p-values of data sets treated alike, the real data last; none where they are too few, or not alike.

    The statistic of each is the fit's p-value by the ends of its forward chains at the largest T, K draws, also of the
    real data. Those that are at hand are used: none is simulated for this.
    """
    if consistency.left_out(plan) is not None:
        return np.zeros(0)
    at_hand = [
        index
        for index, role in enumerate(result.roles)
        if role in ("confirm", "forward") and (index, "forward", result.n_temperatures) in result.runs
    ]
    if any(is_dear(node) for node in model.nodes()):
        at_hand = at_hand[:FEWEST_RANKED]
    if len(at_hand) < FEWEST_RANKED or (OBSERVED, "forward", result.n_temperatures) not in result.runs:
        return np.zeros(0)
    return np.array([_p_value(model, plan, result, index, pool) for index in (*at_hand, OBSERVED)])


def _p_value(model: Model, plan: Plan, result: CheckResult, index: int, pool: Pool) -> float:
    """Return the p-value of one data set; 1 where all its chains ended nowhere."""
    run = result.runs[index, "forward", result.n_temperatures]
    states = run.state_at_end[np.isfinite(run.log_weight)]
    data = dict(model.info.data.observed) if index == OBSERVED else result.simulations.data_of(index)
    check = check_fit(model, states, data=data, key=index, pool=pool)
    return 1.0 if check is None else check.p_value
