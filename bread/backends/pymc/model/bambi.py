"""Models of Bambi: the PyMC model that they build, and draws of their own ``fit``, whose intercepts are moved.

Bambi centres the predictors of a component that has an intercept (``center_predictors``, on by default), so that the
intercept of the PyMC model is that of centred predictors. Its ``fit`` returns draws from which the means times the
coefficients are subtracted, and marks them by the attribute ``modeling_interface`` (Bambi 0.21). The means are in
Bambi's model alone: the PyMC model holds the centred predictors.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import ancestors

from bread.backends.support.posterior_draws import is_fitted_by_bambi
from bread.errors import InvalidArgumentError

Draws = dict[str, NDArray[Any]]
Means = dict[str, dict[str, NDArray[np.float64]]]
EXACT = 1e-9  # of the spread of values: less is rounding


def pymc_model(model: Any) -> Any:
    """Return the PyMC model that a Bambi model builds, built now if it is not yet; any other model as it is."""
    if type(model).__module__.split(".")[0] != "bambi":
        return model
    if not model.built:
        model.build()
    return model.backend.model


def with_models_intercepts(model: Any, draws: Draws, attributes: Mapping[str, Any]) -> tuple[Draws, list[str]]:
    """Return draws with the intercepts of the PyMC model, and a note of those that were moved.

    Parameters
    ----------
    model : pymc.Model
        Its Bambi model is found where it is in use: nothing else knows the means.
    draws : dict of str to ndarray, each (chain, draw, ...)
    attributes : mapping
        Of the draws: they say where these come from.

    Raises
    ------
    InvalidArgumentError
        It cannot be known whether intercepts were moved, or by how much.
    """
    origin, is_moved = _origin(model), is_fitted_by_bambi(attributes)
    if origin is None:
        if is_moved and _has_centred_predictors(model):
            kind = attributes["modeling_interface"]
            raise InvalidArgumentError(
                f"posterior= comes from Bambi's fit (modeling_interface={kind!r}), which moves intercepts by the "
                "means of the predictors; the PyMC model does not hold these means. Pass the Bambi model itself, "
                "bread.check(bambi_model, posterior=...), or draws of pm.sample on the PyMC model."
            )
        return draws, []
    all_centres = {name: _centre(means, draws) for name, means in _means(origin).items() if {name, *means} <= {*draws}}
    centres = {name: one for name, one in all_centres.items() if (np.abs(one) > EXACT * draws[name].std()).any()}
    if not centres:
        return draws, []
    if not is_moved and "inference_library" not in attributes:
        names = " and ".join(map(repr, centres))
        raise InvalidArgumentError(
            f"posterior= does not say which {names} it holds: that of Bambi's fit, or that of the PyMC model, whose "
            "predictors are centred. Pass what fit or pm.sample returned, not arrays taken from it; or an "
            "xarray.Dataset with attrs={'modeling_interface': 'bambi'} for Bambi's, {'inference_library': 'pymc'} for "
            "PyMC's."
        )
    if not is_moved:
        return draws, []
    moved = {name: draws[name] + centre for name, centre in centres.items()}
    note = (
        f"posterior= comes from Bambi's fit, which moves {', '.join(map(repr, centres))} by the means of the "
        "predictors; moved back, so that draws, data and comparison are those of the model with centred predictors."
    )
    return draws | moved, [note]


def _origin(model: Any) -> Any:
    """Return the Bambi model that built this PyMC model; None where there is none in this process."""
    kind = getattr(sys.modules.get("bambi"), "Model", None)
    if kind is None:
        return None
    found = (one for one in gc.get_objects() if issubclass(type(one), kind))
    return next((one for one in found if getattr(getattr(one, "backend", None), "model", None) is model), None)


def _means(origin: Any) -> Means:
    """Return, for each intercept of centred predictors, the means that go with each coefficient."""
    return {
        _name(one.component.intercept_term): {_name(term): _mean(term) for term in one.component.common_terms.values()}
        for one in origin.backend.distributional_components.values()
        if one.design_matrix_without_intercept is not None
    }


def _mean(term: Any) -> NDArray[np.float64]:
    """Return the means of a term's predictors: one for each element of its coefficient's first axis, if it has one."""
    mean = np.asarray(term.data).mean(axis=0)
    return np.atleast_1d(mean) if term.coords else mean  # coordinates: a factor, of two levels even


def _name(term: Any) -> str:
    return str(term.alias or term.name)


def _centre(means: Mapping[str, NDArray[np.float64]], draws: Draws) -> NDArray[Any]:
    """Return the sum of means times coefficients, in the shape of the intercept."""
    parts = [
        np.tensordot(draws[name], one, axes=(2, 0)) if one.ndim else one * draws[name] for name, one in means.items()
    ]
    return np.asarray(sum(parts))


def _has_centred_predictors(model: Any) -> bool:
    """Return whether a matrix of constants has columns whose means are all zero."""
    matrices = [
        np.asarray(one.data)
        for one in ancestors(list(model.basic_RVs))
        if isinstance(one, Constant) and getattr(one.type, "ndim", 0) == 2 and np.size(one.data)
    ]
    return any((np.abs(one.mean(axis=0)) <= EXACT * np.ptp(one, axis=0)).all() for one in matrices)
