"""The first look: a user's draws, or a fit's, against the gradient of the density at them, on the real data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import Fit, FloatArray, Model
from bread.errors import BreadError
from bread.statistics.draws import MINIMUM_EFFECTIVE
from bread.statistics.first_look import FirstLook, first_look

MOST_DRAWS = 1000  # of all chains together: one gradient each
ROUNDING = 1e-6  # relative: data that went through a file in single precision are the same


@dataclass(frozen=True)
class DataDifference:
    """Data that came with draws and are not the model's: the first element that differs."""

    name: str
    element: str
    model: float
    draws: float


@dataclass(frozen=True)
class FirstLookResult:
    """What the first look gave.

    Attributes
    ----------
    names : tuple of str, length k
        Components of the parameters that shifts and ratios are about.
    coordinates : tuple of str, length d
        The unconstrained coordinates that were looked at.
    found : FirstLook or None
        None where the density has no gradient, or the draws lack free variables.
    left_out : dict of str to str
        Coordinates that were not tested, and why.
    other_data : tuple of DataDifference
    n_draws : int
        Draws that were looked at, by a gradient each.
    mean, sd : ndarray, shape (k,)
        Of all draws, those included that were not looked at.
    """

    names: tuple[str, ...]
    coordinates: tuple[str, ...]
    found: FirstLook | None
    left_out: dict[str, str]
    other_data: tuple[DataDifference, ...]
    n_draws: int
    mean: FloatArray
    sd: FloatArray


def look_at(model: Model, fit: Fit) -> FirstLookResult:
    """Look at draws directly; a thousand gradients.

    Parameters
    ----------
    model : Model
        Its density at given states is all that is used.
    fit : Fit
        The draws; of the data that came with them, those whose names the model does not know are not compared.
    """
    layout, real = model.info.layout, model.info.data
    values = _thinned(fit)
    shape = next(iter(values.values())).shape[:2]
    known = {**real.observed, **{name: value for name, (_, value) in real.constants.items()}}
    names, quantities = _components(values)
    whole = _components(fit.draws)[1].reshape(-1, len(names))
    result = partial(
        FirstLookResult,
        names,
        other_data=_different(known, fit.data),
        mean=whole.mean(axis=0),
        sd=whole.std(axis=0),
    )
    if fit.missing:
        left_out = {", ".join(fit.missing): "not in your draws, and nothing there determines it"}
        return result(coordinates=(), found=None, left_out=left_out, n_draws=0)
    states = model.unconstrain({name: draws.reshape(-1, *draws.shape[2:]) for name, draws in values.items()})
    is_inside = np.isfinite(states).all(axis=0)
    used = np.flatnonzero(is_inside & ~layout.discrete)
    reasons = np.where(layout.discrete, "it is discrete", "draws of it lie on the border of its support")
    left_out = {layout.coordinates[i]: str(reasons[i]) for i in np.flatnonzero(layout.discrete | ~is_inside)}
    coordinates = tuple(layout.coordinates[i] for i in used)
    posterior = model.condition(real.observed)

    def densities(at: FloatArray) -> tuple[FloatArray, FloatArray]:
        moved = states.copy()
        moved[:, used] = at
        log_density, gradient = posterior.density_gradient(1.0, moved)
        return log_density, gradient[:, used]

    found, gradient = None, None
    try:
        gradient = densities(states[:, used])[1] if used.size else None
    except BreadError as error:
        left_out |= dict.fromkeys(coordinates, str(error))
    if gradient is not None:
        found = first_look(
            states[:, used].reshape(*shape, -1),
            gradient.reshape(*shape, -1),
            lambda at: densities(at)[0],
            quantities,
            distinct_share=fit.distinct_share,
        )
        for name, n_effective, slopes in zip(coordinates, found.n_effective, gradient.T, strict=True):
            if not np.isfinite(slopes).all():
                left_out[name] = "its gradient is not finite at some draws"
            elif n_effective < MINIMUM_EFFECTIVE:
                left_out[name] = f"{n_effective:.0f} effective draws of it, fewer than {MINIMUM_EFFECTIVE:.0f}"
    n_draws = 0 if gradient is None else len(states)
    return result(coordinates=coordinates, found=found, left_out=left_out, n_draws=n_draws)


def _thinned(fit: Fit) -> dict[str, NDArray[Any]]:
    """Return at most `MOST_DRAWS` draws, evenly from all chains."""
    n_chains, n_draws = next(iter(fit.draws.values())).shape[:2]
    most = max(1, MOST_DRAWS // n_chains)
    rows = np.unique(np.linspace(0, n_draws - 1, min(n_draws, most)).round().astype(int))
    return {name: draws[:, rows] for name, draws in fit.draws.items()}


def _components(values: Mapping[str, NDArray[Any]]) -> tuple[tuple[str, ...], FloatArray]:
    """Return names of the scalar components of parameters, and their draws (chain, draw, k)."""
    names, columns = [], []
    for name, draws in values.items():
        inner = draws.shape[2:]
        names += [f"{name}[{','.join(map(str, index))}]" if inner else name for index in np.ndindex(*inner)]
        columns.append(draws.reshape(*draws.shape[:2], -1).astype(np.float64))
    return tuple(names), np.concatenate(columns, axis=2)


def _different(known: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[DataDifference, ...]:
    """Return where data that came with draws differ from the model's."""
    found = []
    for name in known.keys() & given.keys():
        ours, theirs = np.asarray(known[name]), np.asarray(given[name])
        if ours.dtype.kind not in "fiub" or theirs.dtype.kind not in "fiub":
            continue
        ours, theirs = (one.reshape([n for n in one.shape if n != 1]) for one in (ours, theirs))  # ArviZ has no scalars
        if ours.shape != theirs.shape:
            found.append(DataDifference(name, "", float(ours.size), float(theirs.size)))
            continue
        differs = np.argwhere(~np.isclose(ours, theirs, rtol=ROUNDING, atol=0.0, equal_nan=True))
        if len(differs):
            place = tuple(differs[0])
            where = ",".join(map(str, place))
            found.append(DataDifference(name, where, float(ours[place]), float(theirs[place])))
    return tuple(sorted(found, key=lambda one: one.name))
