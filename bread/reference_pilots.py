"""Pilots that fit a reference to one data set: what starts a reference path. They never see the exact draw."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Kernel, Posterior, Settings
from bread.errors import DensityError
from bread.paths import PriorPath, ReferencePath
from bread.reference_fits import FAMILIES, SMALLEST_SCALE, fit_mixture, move_component
from bread.reference_modes import MOST_STARTS, fit_modes
from bread.references import MixtureReference, diagonal
from bread.seeds import Purpose, chain_seeds, seed_sequence
from bread.tails import NORMAL_QUANTILE, START_LIMIT, tail_index

N_CHAINS = 4  # of a thorough fit
START_CANDIDATES = 20  # prior draws, of which the chains of a fit start from the best
MOST_BATCHES = 20  # of so many prior draws, where the density is zero at nearly all of them
SELECTION_DRAWS = 400  # draws from each candidate, in a thorough fit
MOVE_BURN_IN, MOVE_DRAWS = 20, 60  # of a chain that moves a shared reference to another data set
FEWEST_MOVE_DRAWS = 15
MODES = "modes"  # a family that is found by optimisation, not fitted to draws
ENOUGH = 0.5  # nats: where a Gaussian at the only mode is so near, half of the chains are run
CHECK_DRAWS = 100  # draws from Gaussians at the modes, to check them
CHECKED, BELIED = 1.0, 3.0  # nats of divergence that these draws may show: at the only mode; at several
OPTIMISATION, SEARCH = 5, 60  # what a mode costs, in transitions: from near by; looked for among several
LONG_DRAWS = 200  # of a chain from each mode, where the modes say too little
MODES_MARGIN = 0.5  # nats by which a fit to draws must be better: modes are found again, cheaply, on every data set
SEVERAL_MARGIN = 10.0  # the same for a fit to draws of several modes, which moves with a data set but loses modes


@dataclass(frozen=True)
class ReferenceFit:
    """A reference fitted to one data set.

    Attributes
    ----------
    reference : MixtureReference
    family : str
        A key of `bread.reference_fits.FAMILIES`, or "modes".
    criterion : dict of str to float
        For each family: an estimate (nats) of the Jeffreys divergence between reference and posterior, which is the
        bound with no temperature between them. Fitted on the first half of the pilot's chains, measured on the second.
        "modes" is there where optimisation found a maximum.
    draws : ndarray, shape (n, dim)
        The pilot's draws.
    end_log_ratio : ndarray, shape (n,)
        log p(theta, y) - log q(theta) at those draws.
    settings : dict
        Kernel settings that the pilot adapted at beta = 1.
    transformed : ndarray of bool, shape (dim,)
        As of `bread.backends.base.ModelInfo`.
    fallback : MixtureReference or None
        The best fit to draws, to be moved to data sets without a good mode; None where ``reference`` is it.
    n_chains : int
        Pilot chains, each adapted for as many steps as it then ran.
    """

    reference: MixtureReference
    family: str
    criterion: dict[str, float]
    draws: FloatArray
    end_log_ratio: FloatArray
    settings: Settings
    transformed: NDArray[np.bool_]
    fallback: MixtureReference | None
    n_chains: int
    n_gradients: int = 0
    n_evaluations: int = 0

    @property
    def n_move_transitions(self) -> int:
        """About how many transitions the reference of another data set costs."""
        n_components = len(self.reference.components)
        if self.family == MODES and n_components == 1:
            return OPTIMISATION
        return (MOVE_BURN_IN + MOVE_DRAWS + (SEARCH if self.family == MODES else 0)) * n_components

    def without_draws(self) -> ReferenceFit:
        """Return the fit without the pilot's draws, small enough to travel with every task."""
        return replace(self, draws=self.draws[:0], end_log_ratio=self.end_log_ratio[:0])


@dataclass
class _Cost:
    n_gradients: int = 0
    n_evaluations: int = 0


@dataclass(frozen=True)
class FitRequest:
    """How to fit a reference.

    Attributes
    ----------
    dim, transformed
        As of `bread.backends.base.ModelInfo`.
    n_steps : int
        Steps for which each pilot chain adapts, and for which it then runs.
    family : str or None
        A key of `bread.reference_fits.FAMILIES`; None: the best by the criterion.
    n_chains : int
    n_selection_draws : int
        Draws from each candidate on which the criterion rests.
    is_shared : bool
        Whether the reference will be moved to other data sets.
    """

    dim: int
    transformed: NDArray[np.bool_]
    n_steps: int
    family: str | None = None
    n_chains: int = N_CHAINS
    n_selection_draws: int = SELECTION_DRAWS
    is_shared: bool = False


def fit_reference(posterior: Posterior, request: FitRequest, *, root: int, simulation: int) -> ReferenceFit:
    """Run pilot chains of the PPL's own sampler at beta = 1 from prior draws, and fit a reference to their draws.

    Parameters
    ----------
    posterior : Posterior
        Model and one data set.
    request : FitRequest
    root, simulation : int
        For the seeds: a fit has random numbers of its own.

    Returns
    -------
    ReferenceFit

    Raises
    ------
    DensityError
        No prior draw has a finite density, or every pilot chain failed.
    """
    plain = ReferencePath(diagonal(np.zeros(request.dim), np.ones(request.dim)))
    cost = _Cost()
    starts = _starts(posterior, plain, request.n_chains, root, simulation, cost)
    chains: list[FloatArray] = []
    settings: list[Settings] = []
    modes: MixtureReference | None = None
    failure: DensityError | None = None
    n_run = 0
    for index, start in enumerate(starts):
        seeds = [seed_sequence(root, Purpose.REFERENCE, simulation, part, index) for part in (0, 1)]
        n_run += 1
        try:
            adapted = posterior.adapt(plain, 1.0, start, seeds[0], request.n_steps, previous=None)
            frozen = _frozen(adapted.settings)
            kept = range(1, request.n_steps + 1)
            evolved = posterior.evolve(plain, frozen, 1.0, adapted.state, kept, seeds[1])
        except DensityError as error:
            failure = error
            continue
        cost.n_gradients += adapted.n_gradients + evolved.n_gradients
        cost.n_evaluations += adapted.n_evaluations + evolved.n_evaluations
        chains.append(evolved.states)
        settings.append(adapted.settings)
        if len(chains) == 1 and request.family is None:
            modes = _modes(posterior, frozen, request.transformed, root, simulation, cost)
        if 2 * len(chains) == request.n_chains and modes is not None and len(modes.components) == 1:
            number = len(FAMILIES) + 1
            if _criterion(posterior, modes, chains, request, (root, simulation, number), cost) < ENOUGH:
                break
    if not chains:
        raise DensityError(f"No pilot chain could run on the posterior, so that no reference can be fitted: {failure}")
    chains = _without_lost_chains(posterior, plain, chains, cost)
    family = request.family
    criterion: dict[str, float] = {}
    if family is None:
        family, criterion = _select(posterior, request, chains, modes, root, simulation, cost)
    draws = np.concatenate(chains)
    fitted = modes if family == MODES else FAMILIES[family](draws, request.transformed)
    if fitted is None:
        family, fitted = "diagonal", FAMILIES["diagonal"](draws, request.transformed)
        assert fitted is not None
    fallback: MixtureReference | None = None
    if family == MODES:
        best = min(FAMILIES, key=lambda name: criterion.get(name, np.inf))
        fallback = FAMILIES[best](draws, request.transformed)
    end = posterior.log_ratio(ReferencePath(fitted), draws)
    cost.n_evaluations += len(draws)
    return ReferenceFit(
        fitted, family, criterion, draws, end, settings[0], request.transformed, fallback, n_run,
        cost.n_gradients, cost.n_evaluations,
    )  # fmt: skip


def has_plain_mode(posterior: Posterior, request: FitRequest, *, root: int, simulation: int) -> tuple[bool, int]:
    """Return whether a Gaussian at the only mode is near the posterior, and the gradient evaluations spent on that.

    Then a reference costs little to fit and to find again on other data sets.
    """
    cost = _Cost()
    found = _at_modes(posterior, request.transformed, root, simulation, cost)
    if found is None or len(found.components) > 1:
        return False, cost.n_gradients
    return _own_divergence(posterior, found, root, simulation, cost) < CHECKED, cost.n_gradients


def move_reference(
    posterior: Posterior, shared: ReferenceFit, kernel: Kernel, *, root: int, simulation: int
) -> ReferenceFit:
    """Move a reference to another data set of the same model: a short chain from the mean of each component.

    The chain runs at beta = 1 with the shared frozen kernel; its mean becomes the component's, its variances are
    mixed with the shared ones, correlations stay. A component that its chain leaves keeps its place. Modes are not
    moved but found again.
    """
    cost = _Cost()
    moved: MixtureReference | None = None
    if shared.family == MODES:
        components = shared.reference.components
        near = components[0].mean if len(components) == 1 else None
        moved = _modes(posterior, kernel, shared.transformed, root, simulation, cost, len(components), near)
    if moved is None:
        moved = _move(posterior, shared.fallback or shared.reference, kernel, root, simulation, 0, cost)
    return replace(shared, reference=moved, n_gradients=cost.n_gradients, n_evaluations=cost.n_evaluations)


def _modes(
    posterior: Posterior, kernel: Kernel, transformed: NDArray[np.bool_], root: int, simulation: int, cost: _Cost,
    expected: int = 1, near: FloatArray | None = None,
) -> MixtureReference | None:  # fmt: skip
    """Return a Gaussian at each mode, looked for from prior draws or ``near`` a state; None where there is none.

    A single one must stand a check: the mode of a funnel is in its neck, where little of its mass is. Where there are
    several, a short chain moves each to its mean and widens it: labels that are exchanged make laws that are no
    Gaussian ones. None is made narrower.
    """
    found = _at_modes(posterior, transformed, root, simulation, cost, expected, near)
    if found is None:
        return None
    if len(found.components) == 1:
        return found if _own_divergence(posterior, found, root, simulation, cost) < CHECKED else None
    moved = _move(posterior, found, kernel, root, simulation, 5, cost)
    pairs = zip(moved.components, found.components, strict=True)
    wide = tuple(replace(new, scale=np.maximum(new.scale, old.scale)) for new, old in pairs)
    moved = replace(moved, components=wide)
    if _own_divergence(posterior, moved, root, simulation, cost) < BELIED:
        return moved
    return _explored(posterior, moved, kernel, transformed, root, simulation, cost)


def _at_modes(
    posterior: Posterior, transformed: NDArray[np.bool_], root: int, simulation: int, cost: _Cost, expected: int = 1,
    near: FloatArray | None = None,
) -> MixtureReference | None:  # fmt: skip
    """Return a Gaussian at each mode that optimisation finds, unchecked."""
    seeds = chain_seeds(root, Purpose.REFERENCE, simulation, 4, range(MOST_STARTS))
    drawn = (posterior.draw_start(PriorPath(), [seed])[0] for seed in seeds)
    found, n_gradients = fit_modes(posterior, drawn if near is None else [near], transformed, expected=expected)
    cost.n_gradients += n_gradients
    return found


def _explored(
    posterior: Posterior, modes: MixtureReference, kernel: Kernel, transformed: NDArray[np.bool_], root: int,
    simulation: int, cost: _Cost,
) -> MixtureReference:  # fmt: skip
    """Return a mixture fitted to longer chains from the modes, if it is nearer to the posterior than they are.

    Where a cluster may be empty, little of the mass is near the modes.
    """
    path, chains = ReferencePath(modes), []
    for index, component in enumerate(modes.components):
        keep = range(MOVE_BURN_IN + 1, MOVE_BURN_IN + LONG_DRAWS + 1)
        seed = seed_sequence(root, Purpose.REFERENCE, simulation, 7, index)
        try:
            evolved = posterior.evolve(path, kernel, 1.0, component.mean, keep, seed)
        except DensityError:
            continue
        cost.n_gradients += evolved.n_gradients
        cost.n_evaluations += evolved.n_evaluations
        chains.append(evolved.states)
    draws = np.concatenate([*chains, np.empty((0, len(transformed)))])
    fitted = fit_mixture(draws[::2], transformed)
    if fitted is None:
        return modes
    divergence = []
    for number, candidate in enumerate((fitted, modes)):
        rng = np.random.default_rng(seed_sequence(root, Purpose.REFERENCE, simulation, 8, number))
        start, end = candidate.sample(CHECK_DRAWS, rng), draws[1::2]
        ratio = posterior.log_ratio(ReferencePath(candidate), np.concatenate([start, end]))
        cost.n_evaluations += len(ratio)
        divergence.append(ratio[len(start) :].mean() - ratio[: len(start)].mean())
    return fitted if divergence[0] < divergence[1] else modes


def _own_divergence(
    posterior: Posterior, reference: MixtureReference, root: int, simulation: int, cost: _Cost
) -> float:
    """Return a reference's Jeffreys divergence (nats) from the posterior, estimated from its own draws, weighted."""
    rng = np.random.default_rng(seed_sequence(root, Purpose.REFERENCE, simulation, 6))
    ratio = posterior.log_ratio(ReferencePath(reference), reference.sample(CHECK_DRAWS, rng))
    cost.n_evaluations += CHECK_DRAWS
    if not np.isfinite(ratio).all():
        return float("inf")
    weights = np.exp(ratio - ratio.max())
    return float(weights @ ratio / weights.sum() - ratio.mean())


def _move(
    posterior: Posterior, reference: MixtureReference, kernel: Kernel, root: int, simulation: int, number: int,
    cost: _Cost,
) -> MixtureReference:  # fmt: skip
    """Return the reference with each component moved to where a short chain from its mean goes."""
    path = ReferencePath(reference)
    components = []
    for index, component in enumerate(reference.components):
        keep = range(MOVE_BURN_IN + 1, MOVE_BURN_IN + MOVE_DRAWS + 1)
        seed = seed_sequence(root, Purpose.REFERENCE, simulation, number, index)
        try:
            evolved = posterior.evolve(path, kernel, 1.0, component.mean, keep, seed)
        except DensityError:
            components.append(component)
            continue
        cost.n_gradients += evolved.n_gradients
        cost.n_evaluations += evolved.n_evaluations
        draws = _nearest(reference, index, evolved.states)
        components.append(move_component(component, draws) if len(draws) >= FEWEST_MOVE_DRAWS else component)
    return replace(reference, components=tuple(components))


def _frozen(settings: Settings) -> Kernel:
    return Kernel(np.array([1.0]), {name: np.asarray(value)[None] for name, value in settings.items()})


def _starts(
    posterior: Posterior, plain: ReferencePath, n_chains: int, root: int, simulation: int, cost: _Cost
) -> FloatArray:
    """Return prior draws of high posterior density that are far from each other: the chains should see every mode."""
    candidates, joint = _candidates(posterior, plain, n_chains, root, simulation, cost)
    good = candidates[np.argsort(-joint)[: max(n_chains, len(joint) // 2)]]
    scale = np.maximum(candidates.std(axis=0), SMALLEST_SCALE)
    chosen = [0]
    distance = np.full(len(good), np.inf)
    while len(chosen) < min(n_chains, len(good)):
        distance = np.minimum(distance, (((good - good[chosen[-1]]) / scale) ** 2).sum(axis=1))
        chosen.append(int(np.argmax(distance)))
    return np.asarray(good[np.resize(chosen, n_chains)])


def _candidates(
    posterior: Posterior, plain: ReferencePath, n_chains: int, root: int, simulation: int, cost: _Cost
) -> tuple[FloatArray, FloatArray]:
    """Return states of finite posterior density, and its log: prior draws; where these are rare, draws near 0 too."""
    found: list[tuple[FloatArray, FloatArray]] = []
    n_tried = 0
    for batch in range(MOST_BATCHES + 1):
        if batch < MOST_BATCHES:
            numbers = range(batch * START_CANDIDATES, (batch + 1) * START_CANDIDATES)
            seeds = chain_seeds(root, Purpose.REFERENCE, simulation, 2, numbers)
            drawn = posterior.draw_start(PriorPath(), seeds)
        else:
            rng = np.random.default_rng(seed_sequence(root, Purpose.REFERENCE, simulation, 6, 0))
            drawn = plain.reference.sample(MOST_BATCHES * START_CANDIDATES, rng)
        with np.errstate(invalid="ignore"):  # where both are infinite, which is left out
            joint = posterior.log_ratio(plain, drawn) + plain.reference.log_density(drawn)
        cost.n_evaluations += len(drawn)
        n_tried += len(drawn)
        finite = np.isfinite(joint)
        found.append((drawn[finite], joint[finite]))
        if sum(len(one) for _, one in found) >= n_chains:
            break
    candidates, log_density = (np.concatenate(part) for part in zip(*found, strict=True))
    if not len(candidates):
        raise DensityError(
            f"None of {n_tried} states, drawn from the prior and near 0 in unconstrained coordinates, has a finite "
            "posterior density, so that no pilot chain can start. Widen the prior, or give the likelihood a tail."
        )
    return candidates, log_density


def _without_lost_chains(
    posterior: Posterior, plain: ReferencePath, chains: list[FloatArray], cost: _Cost
) -> list[FloatArray]:
    """Leave out chains that got stuck far below the others: their typical density is lower by more than any mode's."""
    if len(chains) < 2:
        return chains
    dim = chains[0].shape[1]
    levels = []
    for states in chains:
        last = states[len(states) // 2 :]
        levels.append(np.median(posterior.log_ratio(plain, last) + plain.reference.log_density(last)))
        cost.n_evaluations += len(last)
    allowed = 10.0 + 3.0 * np.sqrt(dim)
    kept = [states for states, level in zip(chains, levels, strict=True) if level > max(levels) - allowed]
    return kept if kept else chains


def _select(
    posterior: Posterior, request: FitRequest, chains: list[FloatArray], modes: MixtureReference | None, root: int,
    simulation: int, cost: _Cost,
) -> tuple[str, dict[str, float]]:  # fmt: skip
    """Return the family of the smallest criterion, and the criterion of each."""
    train = np.concatenate([states[: len(states) // 2] for states in chains])
    candidates = {name: fit(train, request.transformed) for name, fit in FAMILIES.items()} | {MODES: modes}
    criterion = {
        name: _criterion(posterior, candidate, chains, request, (root, simulation, number), cost)
        for number, (name, candidate) in enumerate(candidates.items())
        if candidate is not None
    }
    is_several = modes is not None and len(modes.components) > 1
    margin = SEVERAL_MARGIN if is_several and request.is_shared else MODES_MARGIN
    family = min(criterion, key=lambda name: criterion[name] - margin * (name == MODES))
    return family if np.isfinite(criterion[family]) else "diagonal", criterion


def _criterion(
    posterior: Posterior, candidate: MixtureReference, chains: list[FloatArray], request: FitRequest,
    key: tuple[int, int, int], cost: _Cost,
) -> float:  # fmt: skip
    """Return the criterion of a candidate on the second halves of the chains; ``key`` names its random numbers."""
    root, simulation, number = key
    rng = np.random.default_rng(seed_sequence(root, Purpose.REFERENCE, simulation, 3, number))
    path = ReferencePath(candidate)
    start = posterior.log_ratio(path, candidate.sample(request.n_selection_draws, rng))
    end = posterior.log_ratio(path, np.concatenate([states[len(states) // 2 :] for states in chains]))
    cost.n_evaluations += len(start) + len(end)
    return _divergence(start, end)


def _divergence(start: FloatArray, end: FloatArray) -> float:
    """Return the estimated Jeffreys divergence (nats); infinite where a mean does not exist or a ratio is zero."""
    if not (np.isfinite(start).all() and np.isfinite(end).all()):
        return float("inf")
    for values in (start, -end):
        tail = tail_index(values)
        if tail.shape - NORMAL_QUANTILE * tail.standard_error >= START_LIMIT:
            return float("inf")
    return float(end.mean() - start.mean())


def _nearest(reference: MixtureReference, index: int, draws: FloatArray) -> FloatArray:
    """Return the draws that belong to component ``index`` rather than to another."""
    if len(reference.components) == 1:
        return draws
    terms = [
        np.log(weight) + part.log_density(draws)
        for weight, part in zip(reference.weights, reference.components, strict=True)
    ]
    return np.asarray(draws[np.argmax(terms, axis=0) == index])
