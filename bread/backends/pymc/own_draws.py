"""The user's own draws on the real data, as draws of the model's free variables; read before anything is compiled."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import Fit
from bread.backends.pymc.density.compiling import detach, interpret_function
from bread.backends.pymc.fitting import draws_of
from bread.backends.pymc.model.bambi import with_models_intercepts
from bread.backends.pymc.model.derived import derive
from bread.backends.pymc.model.reading import read_coords, read_dimensions, usable_deterministics
from bread.backends.support.posterior_draws import GivenDraws, is_fitted_by_bambi
from bread.errors import InvalidArgumentError


def read_draws(model: Any, posterior: Any) -> Fit:
    """Read draws of a PyMC model, by `pm.sample`, `pm.fit`, Bambi or another way.

    Intercepts that Bambi has moved are moved back, and free variables that are missing are computed where
    deterministics among the draws determine them; the fit's notes say so. Where some are still missing, the
    deterministics are draws too.

    Raises
    ------
    InvalidArgumentError
        They are no draws of this model; the message names the variable.
    """
    with warnings.catch_warnings(action="ignore"):
        posterior = draws_of(posterior)
        deterministics = usable_deterministics(model)[0]
        shapes = _shapes([*model.free_RVs, *deterministics])
    dims = read_dimensions(model, deterministics)
    given = GivenDraws(posterior, dims, read_coords(model, dims.values()))
    free = {variable.name: shapes[variable.name] for variable in model.free_RVs}
    draws = {name: given.read(name, shape) for name, shape in free.items() if name in given}
    for variable in model.free_RVs:
        if variable.name in draws and np.dtype(variable.type.dtype).kind in "iub":
            _require_whole(variable.name, draws[variable.name])
            draws[variable.name] = draws[variable.name].astype(variable.type.dtype)  # files have decimals
    draws, notes = with_models_intercepts(model, draws, given.attributes)
    if len(draws) < len(free):
        present = [one for one in deterministics if one.name in given]
        draws, derived = derive(model, present, free, draws, lambda name: given.read(name, shapes[name]))
        notes += derived
    fit = given.as_fit(draws, tuple(free), notes, {one.name: shapes[one.name] for one in deterministics})
    if not is_fitted_by_bambi(given.attributes):
        return fit
    return replace(fit, remedy="Bambi leaves some out: fit with omit_offsets=False.")


def _shapes(variables: list[Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of variables whose shapes are constants."""
    graph = detach([one.shape for one in variables], constant=True)
    lengths = interpret_function(graph.generators, graph.outputs)(*(np.random.default_rng(0) for _ in graph.generators))
    return {one.name: tuple(int(n) for n in found) for one, found in zip(variables, lengths, strict=True)}


def _require_whole(name: str, values: NDArray[Any]) -> None:
    broken = values[values != np.round(values)]
    if broken.size:
        raise InvalidArgumentError(
            f"posterior= has values of {name!r} that are no whole numbers, such as {broken[0]}; the variable is "
            "discrete. Pass draws of this model."
        )
