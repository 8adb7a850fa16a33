"""The group `first_look` of a report."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr

from bread.running.check.first_look import FirstLookResult
from bread.statistics.agreement.agreement import LOG_DENSITY

GROUP = "first_look"
BEGINNING = "beginning of chains"  # kind of function
_SIZES = ("shift", "shift_se", "sd_ratio", "sd_ratio_se", "detectable_shift", "detectable_sd_ratio")


def first_look_dataset(result: FirstLookResult) -> xr.Dataset:
    """Return what `bread.statistics.first_look.first_look.FirstLook` has, by name.

    Returns
    -------
    Dataset
        `p_value` (); NaN where nothing could be tested. By parameter: `mean` and `sd` of the draws; `shift`,
        `sd_ratio`, their standard errors and what would have been seen. By function: `function_p_value` (adjusted), the
        `kind` of function, whose identity it is (`identity_of`), of which coordinate (`function_of`); of the kind
        `BEGINNING` both are the log density. By coordinate: `n_effective`. Attributes: `n_draws`; `left_out` (JSON:
        coordinate -> why) and `other_data` (JSON: name, element, value in the model, value where the draws are from).
    """
    found, parameter = result.found, np.array(result.names, dtype=np.str_)
    moments = {"mean": ("parameter", result.mean), "sd": ("parameter", result.sd)}
    attributes = {
        "n_draws": result.n_draws,
        "left_out": json.dumps(result.left_out),
        "other_data": json.dumps([list(vars(one).values()) for one in result.other_data]),
    }

    def text(values: list[str]) -> np.ndarray:
        return np.array(values, dtype=np.str_)

    axes = [", ".join(result.coordinates[i] for i in np.argsort(-np.abs(axis))[:2]) for axis in found.directions]
    names = [*result.coordinates, *(f"an axis of {axis}" for axis in axes)]
    functions = [(kind, names[i], names[j]) for kind, i, j in found.functions]
    functions += [(one.kind, one.identity_of, one.function_of) for one in result.neighbours]
    p_values = [*found.p_values, *(one.p_value for one in result.neighbours)]
    if np.isfinite(result.beginning):
        functions.append((BEGINNING, LOG_DENSITY, LOG_DENSITY))
        p_values.append(result.beginning)
    return xr.Dataset(
        {
            "p_value": ((), result.p_value),
            **moments,
            **{name: ("parameter", getattr(found, name)) for name in _SIZES},
            "function_p_value": ("function", np.minimum(1.0, result.n_kinds * np.array(p_values))),
            "kind": ("function", text([kind for kind, _, _ in functions])),
            "identity_of": ("function", text([own for _, own, _ in functions])),
            "function_of": ("function", text([other for _, _, other in functions])),
            "n_effective": ("coordinate", found.n_effective),
        },
        coords={"parameter": parameter, "coordinate": text(list(result.coordinates))},
        attrs=attributes,
    )
