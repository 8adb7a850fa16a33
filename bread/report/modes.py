"""Group `modes` of the report: modes of the posterior on the real data, and the draws in each."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bread.report.bounds import CI_BOUND
from bread.report.model import Constrain
from bread.running.state.mode_results import ModeResults
from bread.running.state.results import CheckResult
from bread.statistics.real_data.modes import Share

_NOWHERE = Share(np.nan, np.nan, np.nan)


def modes_dataset(
    result: CheckResult, constrain: Constrain | None, draws: dict[str, NDArray[Any]] | None
) -> xr.Dataset | None:
    """Return the group `modes`; None where modes were not looked for.

    By mode, those that annealed draws miss first: `place` (mode, parameter) in the model's own coordinates;
    `log_evidence` of the region around it, with its standard error, in nats; `mass`, the region's share of the
    posterior, and `mass_lower`, the same with the evidence two standard errors lower; `share_annealed` and `share_own`
    (the draws given as ``posterior=``, or those of the fit; NaN without them) with their limits, each one-sided at
    99.9%; `missed`. `is_peak`: the region is where the density exceeds that of every annealed draw. Under "localised"
    the modes are those of the user's own model, and the draws of the fit (attribute `tested_draws`) are in the place of
    the annealed ones, which are of another model.

    A regime of prior mass m is found with probability 1 - (1 - m)^n, n the attribute `n_prior_draws`; a narrow spike
    is not. Where the prior cannot be drawn (`has_prior_draws` 0), these are spread far around the draws instead. None
    found is no proof that there is none.
    """
    found = result.modes
    if found is None or constrain is None:
        return None
    places = _columns(constrain(_states(found, result.info.layout.dim)))
    if found.source and result.fit is not None:
        draws = result.fit.flat_draws()
    tested = _columns(draws or {})
    names = list(places)
    weighed = [mode.weighed for mode in found.modes]
    own = [mode.own or _NOWHERE for mode in found.modes]

    def numbers(values: list[float], **attributes: str) -> Any:
        return ("mode", np.array(values, dtype=np.float64), attributes)

    def limits(shares: list[Share]) -> Any:
        values = np.array([(share.lower, share.upper) for share in shares], dtype=np.float64).reshape(-1, 2)
        return (("mode", "ci_bound"), values)

    nats = {"units": "nats"}
    shares = [one.annealed for one in weighed]
    return xr.Dataset(
        {
            "place": (("mode", "parameter"), np.array([places[name] for name in names]).T.reshape(-1, len(names))),
            "annealed_mean": ("parameter", _of(tested, names, np.mean)),
            "annealed_sd": ("parameter", _of(tested, names, np.std)),
            "log_density": numbers([mode.log_density for mode in found.modes], **nats),
            "log_evidence": numbers([one.evidence.value for one in weighed], **nats),
            "log_evidence_error": numbers([one.evidence.standard_error for one in weighed], **nats),
            "n_effective": numbers([one.evidence.n_effective for one in weighed]),
            "mass": numbers([one.mass for one in weighed]),
            "mass_lower": numbers([one.mass_lower for one in weighed]),
            "share_annealed": numbers([share.estimate for share in shares]),
            "share_annealed_ci": limits(shares),
            "share_own": numbers([share.estimate for share in own]),
            "share_own_ci": limits(own),
            "is_peak": ("mode", np.array([one.is_peak for one in weighed], dtype=bool)),
            "missed": ("mode", np.array([one.missed for one in weighed], dtype=bool)),
        },
        coords={
            "mode": np.arange(len(found.modes)),
            "parameter": np.array(names, dtype=np.str_),
            "ci_bound": CI_BOUND,
        },
        attrs={
            "n_annealed_draws": found.n_annealed,
            "n_prior_draws": found.n_prior,
            "n_optimisations": found.n_optimised,
            "n_gradients": found.n_gradients,
            "n_evaluations": found.n_evaluations,
            "n_exchanges": len(found.exchanges),
            "log_evidence_of_draws": float(found.log_denominator),
            "has_prior_draws": int(found.has_prior),
            "tested_draws": found.source or "annealed",
            "own_draws": "none" if result.fit is None else result.fit.source,
        },
    )


def _states(found: ModeResults, dim: int) -> NDArray[np.float64]:
    return np.array([mode.state for mode in found.modes], dtype=np.float64).reshape(-1, dim)


def _columns(values: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return every number of every parameter, label -> (n,)."""
    result = {}
    for name, array in values.items():
        flat = np.asarray(array, dtype=np.float64)
        for index in np.ndindex(*flat.shape[1:]):
            label = f"{name}[{','.join(str(one) for one in index)}]" if index else name
            result[label] = flat[(slice(None), *index)]
    return result


def _of(columns: dict[str, NDArray[Any]], names: list[str], function: Any) -> NDArray[np.float64]:
    return np.array([function(columns[name]) if name in columns else np.nan for name in names], dtype=np.float64)
