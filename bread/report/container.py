"""The report: everything a check found, as ArviZ's data container.

`InferenceData` on ArviZ 0.x, `xarray.DataTree` on ArviZ 1.x. It survives netCDF and zarr unchanged
(``report.to_netcdf``; zarr in format 2), and everything that bread plots or summarises is computed from it alone.

========================= ==============================================================================
group                     what it holds
========================= ==============================================================================
`forward`, `reverse`      `log_weight` (n_temperatures, simulation, chain), counts, failures, schedules
`observed_forward`        the same for the real data, and weights of the chains behind `posterior`
`bounds`                  bounds of the log evidence and of divergences in nats, intervals, tail indices
`certificate`             V, the bound of the error of a probability, with both limits
`by_data_set`             V and B of each simulated data set at the final T, as ArviZ's plots take draws
`consistency`             do the real data anneal like simulated data?
`first_look`              draws on the real data against the gradient of the density at them
`fit`                     do the real data look like the model's?
`direct_tests`            exact draws against their density, before annealing: is anything broken?
`prior_integrals`         what priors integrate to that are not known to be normalised
`alarm`                   theory alarm and weighted ranks: is anything broken?
`ranked_paths`            the draws that are ranked: the exact one of each simulation, and annealed ones
`prior_sbc`               ranks of parameters as ArviZ's plots take them; under "posterior" `posterior_sbc`, under
                          "fitted" `fitted_sbc` (`posterior_sbc` in reports of version 0.1.0)
`agreement`               the user's own draws, or the fit's, against annealed draws, by parameter
`modes`                   modes on the real data, and whether the annealed draws miss one
`annealing_path`          log ratios up and down the path
`kernel`, `cost`          frozen kernel settings; seconds and gradients of each phase
`truth`, `simulated_data` the exact draws and their data sets
`approximate_posterior`   ends of forward chains on simulated data
`posterior`               annealed draws on the real data
`observed_data`,          as ArviZ has them
`constant_data`
========================= ==============================================================================
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from bread.report.agreement import agreement_dataset
from bread.report.bounds import bound_simulations, bounds_dataset, final_temperatures, finished_simulations
from bread.report.certificate import by_data_set_dataset, certificate_dataset
from bread.report.compat import group_names, make_container, read_attributes, read_group
from bread.report.consistency import consistency_dataset
from bread.report.direct_tests import direct_notes, direct_tests_dataset, unguarded_attribute
from bread.report.first_look import GROUP as FIRST_LOOK
from bread.report.first_look import first_look_dataset
from bread.report.fit import fit_dataset
from bread.report.fit_quality import fit_attributes
from bread.report.model import (
    Constrain,
    annealed_draws,
    approximate_posterior_dataset,
    constant_data_dataset,
    observed_data_dataset,
    posterior_dataset,
    simulated_data_dataset,
    truth_dataset,
)
from bread.report.modes import modes_dataset
from bread.report.paths import path_dataset, reference_dataset
from bread.report.prior_integrals import prior_integral_notes, prior_integrals_dataset
from bread.report.provenance import library_attributes, provenance_attributes, stamp
from bread.report.ranks import ranked_paths_dataset, sbc_dataset, sbc_group
from bread.report.runs import cost_dataset, direction_dataset, kernel_dataset, observed_dataset
from bread.report.tests import alarm_dataset
from bread.report.types import Report
from bread.report.zero_weights import zero_weight_attributes
from bread.running.state.results import CheckResult

__all__ = ["group_names", "read_attributes", "read_group", "to_container"]

_Built = TypeVar("_Built")


def to_container(result: CheckResult, constrain: Constrain | None = None) -> Report:
    """Return the report of a check, finished or not.

    Parameters
    ----------
    result : CheckResult
        Whatever was run. Groups that need more than was finished are left out. One that cannot be built is left out
        with a warning, kept in the attribute `warnings`: hours of computing are not lost to it.
    constrain : callable, optional
        Maps states (n, dim) to the model's own parameters, name -> (n, ...); `bread.backends.base.Model.constrain`.
        Without it the groups `posterior`, `approximate_posterior`, `ranked_paths`, `prior_sbc` and `agreement` are
        left out.

    Returns
    -------
    InferenceData or DataTree
        The groups of the module's table. Attributes at the root: versions, `seed`, `simulate_from`, `target`,
        `level`, `is_interrupted` (0 or 1), `not_certified` (where nothing could be: "<reason>; <what would allow
        it>"), diagnostics of the fit (`fit_r_hat`, `fit_n_effective`, ...), `git_commit`
        of the working folder where it is in a repository, and as JSON strings `budget` (where there
        was one), `settings`, `warnings`, `notes`,
        `versions`, `unguarded`, what the tests of exact draws could not look at (`untested`, with reasons) and which
        share of joint draws numbers cannot represent (`share_discarded`, `why_discarded`), and `not_integrated`, free
        variables (or the user's reference) of which nobody knows what their density integrates to.
    """
    final = final_temperatures(result)
    _, simulations = bound_simulations(result, final)
    problems: list[str] = []

    def attempt(name: str, build: Callable[[], _Built]) -> _Built | None:
        """Build one part; if it fails, the others still make a report."""
        try:
            return build()
        except Exception as error:
            problems.append(f"The report lacks '{name}': {type(error).__name__}: {error}")
            warnings.warn(problems[-1], UserWarning, stacklevel=4)
            return None

    draws = attempt("posterior", lambda: annealed_draws(result, constrain))
    paths = attempt("ranked_paths", lambda: ranked_paths_dataset(result, constrain))
    sbc = sbc_group(str(result.settings.get("simulate_from", "prior")))
    builders: dict[str, Callable[[], xr.Dataset | None]] = {
        "posterior": lambda: posterior_dataset(result, draws),
        "bounds": lambda: bounds_dataset(result),
        "certificate": lambda: certificate_dataset(result),
        "by_data_set": lambda: by_data_set_dataset(result, final),
        "consistency": lambda: consistency_dataset(result),
        FIRST_LOOK: lambda: None if result.first_look is None else first_look_dataset(result.first_look),
        "fit": lambda: fit_dataset(result),
        "direct_tests": lambda: direct_tests_dataset(result.direct_tests),
        "prior_integrals": lambda: prior_integrals_dataset(result),
        "alarm": lambda: alarm_dataset(result),
        "ranked_paths": lambda: paths,
        sbc: lambda: sbc_dataset(result, paths),
        "agreement": lambda: agreement_dataset(result, draws, final),
        "modes": lambda: modes_dataset(result, constrain, draws),
        "forward": lambda: direction_dataset(result, "forward"),
        "reverse": lambda: direction_dataset(result, "reverse"),
        "observed_forward": lambda: observed_dataset(result),
        "annealing_path": lambda: path_dataset(result, final, simulations),
        "kernel": lambda: kernel_dataset(result),
        "reference": lambda: reference_dataset(result),
        "cost": lambda: cost_dataset(result),
        "truth": lambda: truth_dataset(result),
        "simulated_data": lambda: simulated_data_dataset(result),
        "approximate_posterior": lambda: approximate_posterior_dataset(result, constrain, final),
        "observed_data": lambda: observed_data_dataset(result),
        "constant_data": lambda: constant_data_dataset(result),
    }
    built = {name: attempt(name, build) for name, build in builders.items()}
    groups = {name: dataset for name, dataset in built.items() if dataset is not None}
    unfitted = result.unfitted_message()
    messages = [*result.warnings, *([unfitted] if unfitted else []), *problems]
    return make_container(groups, _attributes(result, final, messages))


def _attributes(result: CheckResult, final: int, messages: list[str]) -> dict[str, str | int | float]:
    """Return the root attributes: strings and numbers only, since netCDF refuses the rest."""
    identity = result.info.identity
    library_version = identity.versions.get(identity.backend, next(iter(identity.versions.values()), "unknown"))
    return {
        **library_attributes(identity),
        "inference_library_version": library_version,
        **stamp(result.seed),
        "simulate_from": str(result.settings.get("simulate_from", "prior")),
        "settings": _json(result.settings),
        "is_interrupted": int(result.is_interrupted),
        **({"not_certified": result.not_certified} if result.not_certified else {}),
        "model": identity.name,
        "engine": identity.engine,
        "kernel": identity.kernel,
        "versions": _json(identity.versions),
        "path": result.path.name,
        "path_start": result.path.base_name,
        "log_ratio_name": result.path.ratio_name,
        "max_error": float(result.goal.max_error),
        **({} if result.goal.target is None else {"target": float(result.goal.target)}),
        "level": float(result.level),
        "n_temperatures": int(final),
        "n_chains": int(result.n_chains),
        "n_confirming": int(np.count_nonzero(np.array(result.roles, dtype=np.str_) == "confirm")),
        "n_confirmed": len(finished_simulations(result, final, "confirm")),
        "simulator_acceptance": float(result.simulations.acceptance),
        **fit_attributes(result),
        **zero_weight_attributes(result, final),
        **provenance_attributes(),
        **({} if result.budget is None else {"budget": _json(result.budget.as_json())}),
        **unguarded_attribute(result.direct_tests),
        "not_integrated": _json(_not_integrated(result)),
        "warnings": _json(messages),
        "notes": _json(
            [
                *identity.notes,
                *(note for fit in (result.fit, result.partial) if fit is not None for note in fit.notes),
                *([] if result.budget is None else result.budget.notes()),
                *direct_notes(result.direct_tests),
                *prior_integral_notes(result.prior_integrals),
            ]
        ),
    }


def _not_integrated(result: CheckResult) -> list[str]:
    """Return of what nobody knows what its density integrates to: free variables, and a reference of the user's."""
    names = [] if result.prior_integrals is None else list(result.prior_integrals.left_out)
    return [*names, *(["the reference given as path="] if result.path.doubt else [])]


def _json(value: Any) -> str:
    """Return JSON; arrays become lists, anything else unknown its text."""

    def plain(item: Any) -> Any:
        return item.tolist() if isinstance(item, (np.ndarray, np.generic)) else str(item)

    return json.dumps(value, default=plain)
