"""The first look: a user's draws, or a fit's, against the gradient of the density at them, on the real data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import Fit, FloatArray, Layout, Model, Posterior
from bread.errors import BreadError
from bread.paths.kinds import PriorPath
from bread.statistics.agreement.draws import MINIMUM_EFFECTIVE
from bread.statistics.first_look.beginnings import beginning_test
from bread.statistics.first_look.first_look import FirstLook, first_look, nothing_found
from bread.statistics.first_look.neighbours import MOST, neighbour_test

MOST_DRAWS = 1000  # of all chains together: one gradient each
ROUNDING = 1e-6  # relative: data that went through a file in single precision are the same
# How reasons begin, or end, for which there is something to do.
NOT_GIVEN = "not in your draws"
TOO_FEW = f"fewer than {MINIMUM_EFFECTIVE:.0f}"


@dataclass(frozen=True)
class DataDifference:
    """Data that came with draws and are not the model's: the first element that differs."""

    name: str
    element: str
    model: float
    draws: float


@dataclass(frozen=True)
class Neighbours:
    """A test of a discrete coordinate by the mass at neighbours of draws: function, coordinates, adjusted p-value."""

    kind: str
    identity_of: str
    function_of: str
    p_value: float


@dataclass(frozen=True)
class FirstLookResult:
    """What the first look gave.

    Attributes
    ----------
    names : tuple of str, length k
        Components of the parameters that shifts and ratios are about.
    coordinates : tuple of str, length d
        The unconstrained coordinates that were looked at.
    found : FirstLook
        Of nothing, where the density has no gradient, or the draws lack free variables.
    left_out : dict of str to str
        Coordinates that were not tested, and why.
    other_data : tuple of DataDifference
    n_draws : int
        Draws that were looked at by a gradient each.
    mean, sd : ndarray, shape (k,)
        Of all draws, those included that were not looked at.
    neighbours : tuple of Neighbours
        Tests of discrete coordinates.
    beginning : float
        P-value of "the log density is at the beginnings of chains as in their second halves"; NaN if not tested.
    """

    names: tuple[str, ...]
    coordinates: tuple[str, ...]
    found: FirstLook
    left_out: dict[str, str]
    other_data: tuple[DataDifference, ...]
    n_draws: int
    mean: FloatArray
    sd: FloatArray
    neighbours: tuple[Neighbours, ...] = ()
    beginning: float = float("nan")

    @property
    def n_kinds(self) -> int:
        """How many kinds of tests share the level: of gradients, of neighbours, of beginnings."""
        return int(bool(self.found.functions)) + int(bool(self.neighbours)) + int(np.isfinite(self.beginning))

    @property
    def p_value(self) -> float:
        """Of all that was tested; NaN where nothing was."""
        all_kinds = np.array([self.found.p_value, *(one.p_value for one in self.neighbours), self.beginning])
        known = all_kinds[np.isfinite(all_kinds)]
        return float(min(1.0, self.n_kinds * known.min())) if known.size else float("nan")


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
        left_out = {", ".join(fit.missing): f"{NOT_GIVEN}, and nothing there determines it"}
        return result(coordinates=(), found=nothing_found(0, len(names)), left_out=left_out, n_draws=0)
    states = model.unconstrain({name: draws.reshape(-1, *draws.shape[2:]) for name, draws in values.items()})
    is_inside = np.isfinite(states).all(axis=0)
    used = np.flatnonzero(is_inside & ~layout.discrete)
    left_out = dict.fromkeys(
        (layout.coordinates[i] for i in np.flatnonzero(~is_inside)), "draws of it lie on the border of its support"
    )
    coordinates = tuple(layout.coordinates[i] for i in used)
    posterior = model.condition(real.observed)

    def densities(at: FloatArray) -> tuple[FloatArray, FloatArray]:
        moved = states.copy()
        moved[:, used] = at
        log_density, gradient = posterior.density_gradient(1.0, moved)
        return log_density, gradient[:, used]

    found, n_draws, beginning = nothing_found(len(used), len(names)), 0, float("nan")
    try:
        log_density, gradient = densities(states[:, used]) if used.size else (np.zeros(0), np.zeros(0))
    except BreadError as error:
        left_out |= dict.fromkeys(coordinates, str(error))
        log_density = gradient = np.zeros(0)
    if gradient.size:
        n_draws = len(states)
        if np.isfinite(log_density).all():
            beginning = beginning_test(
                log_density.reshape(shape), states[:, used].reshape(*shape, -1), distinct_share=fit.distinct_share
            )
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
                left_out[name] = f"{n_effective:.0f} effective draws of it, {TOO_FEW}"
    neighbours = _neighbours(layout, posterior, states.reshape(*shape, -1), fit.distinct_share, left_out)
    return result(
        coordinates=coordinates, found=found, left_out=left_out, n_draws=n_draws, neighbours=neighbours,
        beginning=beginning,
    )  # fmt: skip


def _neighbours(
    layout: Layout, posterior: Posterior, states: FloatArray, share: float, left_out: dict[str, str]
) -> tuple[Neighbours, ...]:
    """Test discrete coordinates; those that are not tested are noted in ``left_out``."""
    places = [int(i) for i in np.flatnonzero(layout.discrete)]
    names = [layout.coordinates[i] for i in places]
    left_out |= dict.fromkeys(names[MOST:], f"it is discrete, and {MOST} of those are looked at")
    if not places:
        return ()
    if not np.isfinite(states).all():
        left_out |= dict.fromkeys(names, "it is discrete, and draws of others lie on the border of their support")
        return ()
    try:
        functions, p_values = neighbour_test(
            states, places, lambda at: posterior.log_density(PriorPath(), at), distinct_share=share
        )
    except BreadError as error:
        left_out |= dict.fromkeys(names, f"it is discrete: {error}")
        return ()
    tested = tuple(
        Neighbours(kind, layout.coordinates[i], layout.coordinates[j], float(p_value))
        for (kind, i, j), p_value in zip(functions, p_values, strict=True)
    )
    for one in tested:
        if one.kind == "1" and np.isnan(one.p_value):
            left_out[one.identity_of] = f"too few effective draws of it, {TOO_FEW}"
    return tested


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
