"""Rotations that leave a posterior alone: found from the shapes of its parameters, and references across them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, product

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import Adaptation, AnnealRun, Direction, Evolution, FloatArray, Kernel, Posterior, Settings
from bread.backends.info import Layout
from bread.errors import DensityError, UnsupportedModelError
from bread.fitting import searches
from bread.fitting.conditional import fit_conditional
from bread.fitting.initial import initial_states
from bread.fitting.modes import CountedDensity, fit_modes, narrowed
from bread.fitting.nested import rank_drivers
from bread.fitting.work import FitWork, Part
from bread.paths.conditional import ConditionalReference
from bread.paths.kinds import Path, PriorPath, ReferencePath
from bread.paths.mixture import MixtureReference, diagonal
from bread.paths.nested import NestedReference
from bread.paths.rotated import Gauge, RotatedReference, gauge_at

Places = NDArray[np.int64]  # (K, P): coordinates of a matrix whose columns are rotated

MOST_DIMENSIONS = 12  # of a rotation
MOST_CANDIDATES = 40  # sets of variables that are tried
LARGEST_DIM = 600  # invariant coordinates of a Gaussian at the mode
MOST_STEPS = 2000  # gradients of an optimisation: coordinates are many, and rotations leave it no valley to get lost in
TRIALS = 3  # prior draws at which the density must not change
SAME = 1e-8  # relative difference of log densities up to which they are equal


def rotatable(layout: Layout) -> tuple[Places, ...]:
    """Return the sets of coordinates that a rotation may leave the density alone in, by the shapes of the variables.

    Every array of unconstrained parameters with an axis of K elements is such a set, and so are several with an axis of
    one length, all of them first. Whether the density is invariant is for `invariant_under` to find out.
    """
    axes: dict[int, list[list[Places]]] = {}  # by K: for each variable, its coordinates with each of such axes first
    for name, positions in layout.positions.items():
        positions = np.asarray(positions)
        if layout.may_be_scale[positions].any() or layout.discrete[positions].any():
            continue
        array = _shaped(name, positions, layout.coordinates)
        if array is None:
            continue
        for k in {length for length in array.shape if 2 <= length <= MOST_DIMENSIONS}:
            moved = [np.moveaxis(array, axis, 0).reshape(k, -1) for axis in range(array.ndim) if array.shape[axis] == k]
            axes.setdefault(k, []).append(moved)
    found = chain.from_iterable(_sets(variables) for _, variables in sorted(axes.items()))
    return tuple(places for _, places in zip(range(MOST_CANDIDATES), found, strict=False))


def invariant_under(work: FitWork, candidates: Sequence[Places]) -> Places | None:
    """Return the first of some sets of coordinates whose rotations leave the log density alone; None for none."""
    if not candidates:
        return None
    plain = _plain(work.dim)
    rng = work.rng(Part.ROTATIONS)
    drawn = work.posterior.draw_base(PriorPath(), work.seeds(Part.ROTATIONS, range(1, 4 * TRIALS + 1)))
    before = _log_density(work, plain, drawn)
    chosen = np.flatnonzero(np.isfinite(before))[:TRIALS]
    if len(chosen) < TRIALS:
        return None
    for places in candidates:
        if not _may_be_fitted(work.dim, places):
            continue
        turned = drawn[chosen].copy()
        for row in turned:
            row[places] = _orthogonal(len(places), rng) @ row[places]
        after = _log_density(work, plain, turned)
        if (np.abs(after - before[chosen]) <= SAME * (1.0 + np.abs(before[chosen]))).all():
            return places
    return None


class InvariantPosterior(Posterior):
    """A posterior as a density of the invariant coordinates of a gauge, for fits.

    Parameters
    ----------
    posterior : Posterior
    gauge : Gauge
    """

    def __init__(self, posterior: Posterior, gauge: Gauge) -> None:
        self._posterior, self._gauge = posterior, gauge
        self._path = ReferencePath(_plain(gauge.dim))

    def draw_base(self, path: Path, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw from the prior, invariant coordinates, shape (len(seeds), n_invariant)."""
        return self._invariant(self._posterior.draw_base(path, seeds))

    def log_ratio(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log density less that of the path's reference (nats), shape (n,)."""
        assert path.reference is not None
        with np.errstate(invalid="ignore", over="ignore"):
            at = np.array([self._gauge.state(y) for y in states]).reshape(len(states), self._gauge.dim)
            volume = np.array([self._gauge.log_volume_element(y)[0] for y in states])
            own = self._posterior.log_density(self._path, at) + volume
            return np.asarray(own - path.reference.log_density(states))

    def end_gradient(self, path: Path, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log density (nats) and gradient, shape (n_invariant,), at one state."""
        at = self._gauge.state(state)
        if not np.isfinite(at).all():
            raise DensityError("A length of the invariant coordinates overflows. Take a smaller step.")
        value, gradient = self._posterior.end_gradient(self._path, at)
        volume, powers = self._gauge.log_volume_element(state)
        by_y = self._gauge.pull_back(state, gradient)
        by_y[self._gauge.are_logarithms] += powers
        return value + volume, by_y

    def adapt(
        self, path: Path, beta: float, state: FloatArray, seed: SeedSequence, n_steps: int, previous: Settings | None
    ) -> Adaptation:
        """Refuse: kernels are adapted and chains run in the posterior's own coordinates."""
        raise UnsupportedModelError("Invariant coordinates have no kernels. Adapt on the posterior itself.")

    def anneal(
        self, path: Path, betas: FloatArray, kernel: Kernel, *,
        direction: Direction, initial: FloatArray, seeds: Sequence[SeedSequence],
    ) -> AnnealRun:  # fmt: skip
        """Refuse, as `adapt` does."""
        raise UnsupportedModelError("Invariant coordinates have no kernels. Anneal the posterior itself.")

    def evolve(
        self, path: Path, kernel: Kernel, beta: float, state: FloatArray, keep: Sequence[int], seed: SeedSequence
    ) -> Evolution:
        """Run a chain of the posterior's own coordinates at beta = 1."""
        run = self._posterior.evolve(self._path, kernel, 1.0, self._gauge.state(state), keep, seed)
        return replace(run, states=self._invariant(run.states))

    def _invariant(self, states: FloatArray) -> FloatArray:
        return np.array([self._gauge.invariant(state) for state in states]).reshape(-1, self._gauge.n_invariant)


def fit_rotated(
    work: FitWork, places: Places, start: FloatArray, draws: FloatArray | None = None
) -> RotatedReference | None:
    """Return a law of the invariant coordinates with a uniform rotation; None where optimisation finds none.

    A Gaussian at the mode; where draws show which coordinates drive the widths of others, a law given these is looked
    for too, and taken if its own draws show it to be nearer.

    Parameters
    ----------
    work : FitWork
    places : ndarray of int, shape (K, P)
    start : ndarray, shape (dim,)
        A state to look from.
    draws : ndarray, shape (n, dim), optional
        Of chains.
    """
    found = _at_mode(work, places, start)
    if found is None or draws is None:
        return found
    gauge, mode = found.gauge, _mean(found)
    inner = invariant_work(work, gauge)
    invariant = np.array([gauge.invariant(state) for state in draws])
    drivers = [driver for driver in rank_drivers(invariant, inner.transformed) if gauge.from_others[driver]]
    law: NestedReference | ConditionalReference | None = None
    if drivers:
        limit = inner.own_divergence(found.law)
        law = searches.nested(inner, drivers, mode, invariant.std(axis=0), limit=limit)
        if law is None or inner.own_divergence(law, 1) >= searches.ENOUGH:
            law = searches.conditional(inner, drivers, mode, invariant) or law
    work.add(inner)
    return found if law is None else RotatedReference(gauge, law)


def rotated_near(work: FitWork, reference: RotatedReference) -> RotatedReference | None:
    """Return the same kind of reference on another data set; None where optimisation finds none."""
    try:
        start = initial_states(work, _plain(work.dim), 1)[0]
    except DensityError:
        return None
    found = _at_mode(work, reference.gauge.places, start)
    if found is None or isinstance(reference.law, MixtureReference):
        return found
    inner = invariant_work(work, found.gauge)
    law = _given_from(inner, reference.law, _mean(found))
    work.add(inner)
    return found if law is None else RotatedReference(found.gauge, law)


def invariant_work(work: FitWork, gauge: Gauge) -> FitWork:
    """Return a fit of the same data set in the invariant coordinates of a gauge."""
    transformed = np.concatenate([work.transformed[gauge.others], gauge.are_logarithms[len(gauge.others) :]])
    return FitWork(InvariantPosterior(work.posterior, gauge), transformed, work.root, work.simulation)


def _at_mode(work: FitWork, places: Places, start: FloatArray) -> RotatedReference | None:
    """Return a Gaussian of the invariant coordinates at their mode, in a gauge that is made for it."""
    from scipy.optimize import minimize

    state = start
    for _ in range(2):  # to the mode in a gauge of the start's, then in one of its own
        gauge = gauge_at(places, state)
        inner = invariant_work(work, gauge)
        density = CountedDensity(inner.posterior, inner.dim)
        options = {"maxfun": MOST_STEPS, "maxiter": MOST_STEPS}
        end = minimize(density, gauge.invariant(state), jac=True, method="L-BFGS-B", options=options)
        work.n_gradients += density.n_gradients
        if end.fun >= 1e300:
            return None
        state = gauge.state(end.x)
    found, n_gradients = fit_modes(inner.posterior, [end.x], inner.transformed, largest=LARGEST_DIM)
    work.n_gradients += n_gradients
    return None if found is None else RotatedReference(gauge, narrowed(found))


def _mean(reference: RotatedReference) -> FloatArray:
    assert isinstance(reference.law, MixtureReference)
    return reference.law.components[0].mean


def _given_from(
    work: FitWork, law: NestedReference | ConditionalReference, start: FloatArray
) -> NestedReference | ConditionalReference | None:
    """Return the same kind of law, given one or several of the coordinates, looked for from a state."""
    if isinstance(law, NestedReference):
        return searches.nested(work, [law.driver], start, law.moments()[1], 0, like=law.marginal)
    at = law.marginal.sample(searches.MARGINAL_DRAWS, np.random.default_rng(0))
    found, n_gradients = fit_conditional(
        work.posterior, law.drivers, start, at.mean(axis=0), np.cov(at.T), is_near=False, like=law.marginal
    )
    work.n_gradients += n_gradients
    return found if found is not None and work.own_divergence(found) < searches.BELIED else None


def _may_be_fitted(dim: int, places: Places) -> bool:
    k, rank = len(places), min(places.shape)
    return bool(dim - k * rank + rank * (rank + 1) // 2 <= LARGEST_DIM)


def _plain(dim: int) -> MixtureReference:
    return diagonal(np.zeros(dim), np.ones(dim))


def _log_density(work: FitWork, plain: MixtureReference, states: FloatArray) -> FloatArray:
    work.n_evaluations += len(states)
    with np.errstate(invalid="ignore"):
        return work.posterior.log_density(ReferencePath(plain), states)


def _orthogonal(k: int, rng: np.random.Generator) -> FloatArray:
    q, r = np.linalg.qr(rng.standard_normal((k, k)))
    return np.asarray(q * np.sign(np.diag(r)))


def _sets(variables: list[list[Places]]) -> Iterator[Places]:
    """Yield the sets of several variables, each with each of its axes, the largest sets first."""
    for size in range(len(variables), 0, -1):
        for chosen in combinations(variables, size):
            for axes in product(*chosen):
                yield np.concatenate(axes, axis=1)


def _shaped(name: str, positions: NDArray[np.int64], labels: Sequence[str]) -> Places | None:
    """Return the coordinates of a variable in its shape, from labels such as "u[2,1]"; None for a scalar."""
    indices: list[list[str]] = []
    for position in positions:
        match = re.fullmatch(r"[^\[]*\[(.*)\]", labels[position], flags=re.DOTALL)
        if match is None:
            return None
        indices.append([part.strip() for part in match[1].split(",")])
    rank = len(indices[0]) if indices else 0
    if any(len(index) != rank for index in indices):
        return None
    orders = [
        {label: number for number, label in enumerate(dict.fromkeys(axis))} for axis in zip(*indices, strict=True)
    ]
    shape = tuple(len(order) for order in orders)
    if int(np.prod(shape)) != len(positions):
        return None
    array = np.full(shape, -1, dtype=np.int64)
    for position, index in zip(positions, indices, strict=True):
        array[tuple(order[label] for order, label in zip(orders, index, strict=True))] = position
    return array if (array >= 0).all() else None
