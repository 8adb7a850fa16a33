"""Groups that rank exact draws: the paths that are ranked, and ranks of parameters as ArviZ's plots take them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from bread.backends.base import FloatArray, IntArray
from bread.report.labels import model_dataset
from bread.report.model import Constrain, constrained
from bread.report.ranked import DIAGNOSTIC, RANKED_PATH, meaning, ranked_paths
from bread.running.state.results import CheckResult
from bread.seeds import Purpose, named_seed
from bread.statistics.bounds.alarms import weighted_ranks

_KINDS = "biuf"  # of numbers


def ranked_paths_dataset(result: CheckResult, constrain: Constrain | None) -> xr.Dataset | None:
    """Return the group `ranked_paths`: draws among which the exact one of each simulation is ranked.

    The model's own variables (simulation, ranked_path, ...): where reverse chain 0 begins (ranked_path 0), an exact
    posterior draw, and where the forward chains end, all at beta = 1. Their log weights are `ranked_log_weight` of the
    group `alarm`, whose simulations are the same. A forward chain of weight zero may have NaN. From these two groups
    the rank of any function of parameters and data can be computed.
    """
    ranked = ranked_paths(result)
    if constrain is None or ranked is None:
        return None
    states = ranked.states
    values = constrained(constrain, states.reshape(-1, states.shape[2]))
    leading = {"simulation": ranked.simulations, "ranked_path": np.arange(states.shape[1])}
    shaped = {name: array.reshape(*states.shape[:2], *array.shape[1:]) for name, array in values.items()}
    dataset = model_dataset(shaped, result.info.layout.parameters, result.info.data.coords, leading)
    return dataset.assign_attrs(ranked_path=RANKED_PATH)


def sbc_group(simulate_from: str) -> str:
    """Return the name of the group of ranks: `prior_sbc`; where draws of a fit enter, `posterior_sbc` or `fitted_sbc`.

    "Posterior SBC" (Säilynoja et al. 2025) has all parameters from the posterior and its data added to the real ones.
    """
    return {"posterior": "posterior_sbc", "fitted": "fitted_sbc"}.get(simulate_from, "prior_sbc")


def sbc_dataset(result: CheckResult, paths: xr.Dataset | None) -> xr.Dataset | None:
    """Return the group that `sbc_group` names: a rank of every parameter, as ArviZ's plots of ranks take them.

    Weighted ranks in [0, 1] (`bread.statistics.bounds.alarms.weighted_ranks`) of exact draws among annealed ones, by
    the model's own variables (chain, draw, ...): one chain, whose draws are the simulations (their numbers label
    `draw`). They are uniform in theory, at any number of chains and temperatures, simulated from the prior or
    localised; under "posterior" they are, if the draws that data were simulated at are the posterior's; under "fitted"
    they are a diagnostic of `init_steps`. Random numbers of their own divide ties, so that they differ a little from
    those of the group `alarm`, which decide and count more functions. Variables with a NaN are left out.

    Parameters
    ----------
    result : CheckResult
    paths : Dataset or None
        The group `ranked_paths`.
    """
    ranked = ranked_paths(result)
    if paths is None or ranked is None:
        return None
    ranks: dict[str, xr.DataArray] = {}
    for name, variable in paths.data_vars.items():
        if variable.dtype.kind not in _KINDS:
            continue
        values = path_ranks(str(name), variable.values, ranked.simulations, ranked.log_weight, result.seed)
        if not np.isnan(values).any():
            ranks[str(name)] = variable.isel(ranked_path=0, drop=True).copy(data=values)
    if not ranks:
        return None
    dataset = xr.Dataset(ranks).rename_dims(simulation="draw").rename_vars(simulation="draw").expand_dims(chain=[0])
    is_exact = meaning(result) != DIAGNOSTIC
    return dataset.assign_attrs(
        meaning=meaning(result), description="weighted ranks, uniform" + (" in theory" if is_exact else " in the limit")
    )


def path_ranks(
    name: str, values: ArrayLike, simulations: Sequence[int] | IntArray, log_weight: ArrayLike, seed: int
) -> FloatArray:
    """Return the weighted rank of the first path of each simulation among its paths, (simulation, ...).

    Parameters
    ----------
    name : str
        Of what is ranked; it names the random numbers that divide ties, so that a rank does not depend on what else
        is ranked.
    values : array_like, shape (simulation, path, ...)
        The first path is the exact one. What is NaN at a path of weight zero has no say.
    simulations : array_like of int, shape (simulation,)
    log_weight : array_like, shape (simulation, path)
        Nats; -inf for paths of weight zero.
    seed : int
        Root of the random numbers.

    Returns
    -------
    ndarray
        NaN for a component that is NaN at a path that counts.
    """
    table = np.asarray(values, dtype=np.float64)
    weights = np.asarray(log_weight, dtype=np.float64)
    shape = table.shape[2:]
    flat = table.reshape(*table.shape[:2], -1)
    flat = np.where(np.isneginf(weights)[..., None], np.inf, flat)
    known = ~np.isnan(flat).any(axis=(0, 1))
    uniforms = np.array(
        [np.random.default_rng(named_seed(seed, Purpose.RANK, int(i), name)).random(flat.shape[2]) for i in simulations]
    )
    ranks = np.full((len(flat), flat.shape[2]), np.nan)
    if known.any():
        h = flat[..., known]
        ranks[:, known] = weighted_ranks(weights[:, 1:], weights[:, 0], h[:, 1:], h[:, 0], uniforms[:, known])
    return ranks.reshape(len(flat), *shape)
