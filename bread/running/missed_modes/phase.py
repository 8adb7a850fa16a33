"""The phase of a check that looks for modes on the real data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bread.backends.base import FloatArray, Model
from bread.errors import BreadError
from bread.jobs.interrupts import interruptible
from bread.running.missed_modes.search import FEWEST_DRAWS, ModeSearch, why_not
from bread.running.state.ledger import Ledger
from bread.running.state.plan import Plan
from bread.running.state.results import OBSERVED, CheckResult
from bread.running.state.users_draws import own_draws, posterior_draws
from bread.statistics.bounds.bounds import log_mean_exp


def look_for_modes(model: Model, plan: Plan, result: CheckResult, ledger: Ledger) -> None:
    """Look for modes of the user's model that draws on the real data miss; ``result.modes`` keeps them.

    The draws are the annealed ones, or under "localised", whose annealed draws are of another model, and where nothing
    was annealed, those of the fit: nobody knows a lower bound of the evidence of the user's model then but what these
    hold.

    Where that is not possible a warning of the report says why. An error of the model in a corner where no chain went
    ends the search, not the check.

    The lower bound of the log evidence is that of the real data's chains, whose prior is normalised; the density here
    has the constants that its priors lack, so they are put back.
    """
    is_about_fit = result.is_about_fit
    with interruptible():
        draws = posterior_draws(model, result, FEWEST_DRAWS)
    reason = why_not(
        model, "draws of the fit" if is_about_fit else "certified draws", 0 if draws is None else len(draws)
    )
    if reason is not None:
        result.warnings.append(reason)
        return
    assert draws is not None
    with ledger.phase("modes, your data", "modes"):
        search = ModeSearch(model, ledger.run_tasks, plan.root, sum(result.n_gradients.values()))
        try:
            if is_about_fit:
                assert result.fit is not None
                found = search.run(draws, -np.inf, None, result.observed_draws)
                result.modes = None if found is None else replace(found, source=result.fit.source)
            else:
                with interruptible():
                    own = own_draws(model, result.fit)
                result.modes = search.run(draws, log_lower_bound(result), own)
        except BreadError as error:
            result.warnings.append(f"The search for modes on the real data failed: {error}")
        ledger.count("modes", search.n_gradients)
    if result.modes is None and not any("modes on the real data" in one for one in result.warnings):
        result.warnings.append("Modes on the real data were not looked for: the density is zero at the draws.")


def log_lower_bound(result: CheckResult) -> float:
    """Return the log of the mean weight (nats) of the chains on the real data at the largest T; -inf without them.

    As the density has it: with the known constants of priors that are not normalised. -inf too where it is not known
    that the base of the path is normalised.
    """
    if result.path.doubt:
        return -np.inf
    runs = [run for key, run in result.runs.items() if key[0] == OBSERVED and key[2] == result.n_temperatures]
    weights: FloatArray = np.concatenate([run.log_weight for run in runs] or [np.empty(0)])
    weights = weights[~np.isnan(weights)]
    constant = 0.0 if result.prior_integrals is None else result.prior_integrals.log_constant
    return float(log_mean_exp(weights) + constant) if len(weights) else -np.inf
