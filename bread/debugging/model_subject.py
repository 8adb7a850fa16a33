"""A model's own kernel as a subject of the battery: exact joint draws, each with its own data set.

Whatever the kernel remembers between chains, it remembers here too: everything runs in the process where the model was
opened, one chain after another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import Evolution, FloatArray, Kernel, Model, Posterior
from bread.debugging.annealed import Annealed, AnnealedPairs, anneal_pair
from bread.debugging.between import N_OTHERS, N_STARTS, SCHEDULE, Steps
from bread.debugging.subject import Draws, Moved
from bread.errors import BreadError, UnsupportedModelError
from bread.paths.kinds import Path, PriorPath, ReferencePath
from bread.paths.mixture import diagonal
from bread.running.exactness.joint import draw_joint

TUNE = 500  # steps of the kernel's own adaptation, on an extra simulated data set


class ModelSubject:
    """The kernel of an opened model at one inverse temperature of the prior path, with exact joint draws.

    At beta = 1 a chain that starts at the parameters of a joint draw, given its data, is at equilibrium (Geweke 2004);
    at beta = 0 one that starts at a draw from the prior is, upon which no outcome decides. Between them a chain is that
    starts at an exact draw of the tempered law given simulated data, which some backends can make
    (`bread.backends.base.Posterior.draw_tempered`).

    Parameters
    ----------
    model : Model
    beta : float
        Inverse temperature: 0, 1, or `bread.debugging.between.BETA`.
    seed : SeedSequence
        Of the adaptation, which looks at an extra simulated data set.
    reopen : callable, optional
        ``reopen()`` returns the same model with a kernel that has moved nothing yet.

    Raises
    ------
    UnsupportedModelError
        ``beta`` is between 0 and 1, and the backend cannot draw exactly there.
    """

    n_walkers = 1
    may_spread = frozenset({"draw", "move", "anneal", "log_density", "gradient"})  # rows are independent

    def __init__(
        self, model: Model, beta: float, seed: SeedSequence, reopen: Callable[[], Model] | None = None
    ) -> None:
        self.model = model
        self.beta = beta
        self._path = _path_of(model)
        self.name = f"kernel at beta = {beta:g}"
        self.coordinates = model.info.layout.coordinates
        self.is_continuous = ~np.asarray(model.info.layout.discrete, dtype=bool)
        self.lower, self.upper = np.full(model.info.layout.dim, -np.inf), np.full(model.info.layout.dim, np.inf)
        self.missing: dict[str, str] = {}
        if reopen is None:
            self.missing["renewed"] = "the kernel's settings are frozen, and kept apart from it"
        self.anneals, self.is_between = beta == 1.0, 0.0 < beta < 1.0
        if getattr(model, "remembers", False):
            self.missing["annealing"] = "a step method runs as it is, and whether it can be turned round is not known"
        self._reopen = reopen
        self._seed = SeedSequence(seed.entropy, spawn_key=seed.spawn_key)
        data_seed, adapt_seed = SeedSequence(seed.entropy, spawn_key=seed.spawn_key).spawn(2)
        extra = draw_joint(model, 1, data_seed)
        posterior = model.condition(extra.data_of(0))
        if self.is_between:
            draw_tempered(posterior, beta, [data_seed])  # refused before anything is adapted
        adapted = posterior.adapt(self._path, beta, extra.states[0], adapt_seed, TUNE, None)
        self.n_evaluations = adapted.n_gradients + adapted.n_evaluations
        self._kernel = Kernel(
            np.array([beta]),
            {name: values[None] for name, values in adapted.settings.items()},
            source="an extra simulated data set",
        )
        try:
            posterior.density_gradient(beta, extra.states)
        except BreadError as error:
            self.missing["gradient"] = str(error)

    def __getstate__(self) -> dict[str, Any]:
        """Return what workers need: chains move there, and nothing is opened anew."""
        return {**self.__dict__, "_reopen": None}

    def draw(self, seeds: Sequence[SeedSequence]) -> Draws:
        """Return one joint draw a seed; at beta = 0 one from the prior; between, of the tempered law given its data."""
        if self.beta == 0.0:
            real = self.model.info.data.observed
            data = {name: np.broadcast_to(values, (len(seeds), *np.shape(values))) for name, values in real.items()}
            return Draws(self.model.condition(real).draw_base(PriorPath(), seeds), data)
        drawn = simulate_each(self.model, seeds)
        if not self.is_between:
            return drawn
        own = [SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 1)) for seed in seeds]
        states = [draw_tempered(self._posterior(drawn.data, row), self.beta, [seed]) for row, seed in enumerate(own)]
        return Draws(np.concatenate(states), drawn.data)

    def move(self, draws: Draws, keep: Sequence[int], seeds: Sequence[SeedSequence]) -> Moved:
        """Run the frozen kernel from each draw, given its data."""
        states = np.full((len(draws), len(keep), self.model.info.layout.dim), np.nan)
        failures: dict[str, None] = {}
        spent = 0
        for row, seed in enumerate(seeds):
            try:
                moved = self.evolve(draws, row, keep, seed)
            except Exception as error:  # a kernel may raise anything: that it does is a finding
                failures.setdefault(f"{type(error).__name__}: {error}")
                continue
            states[row] = moved.states
            spent += max(moved.n_gradients + moved.n_evaluations, keep[-1])
        return Moved(states, None, spent, tuple(failures))

    def anneal(self, draws: Draws, betas: FloatArray, seeds: Sequence[Sequence[SeedSequence]]) -> Annealed:
        """Anneal one chain each way for each draw, given its data; see `bread.debugging.annealed.AnnealingSubject`."""
        pairs = AnnealedPairs.empty(0, len(betas), self.model.info.layout.dim)
        failures: dict[str, None] = {}
        spent = 0
        for row, (state, own) in enumerate(zip(draws.states, seeds, strict=True)):
            try:
                found = anneal_pair(self._posterior(draws.data, row), self._path, betas, self._kernel, state, own)
            except Exception as error:  # a kernel may raise anything: that it does is a finding
                failures.setdefault(f"{type(error).__name__}: {error}")
                pairs = pairs.joined(AnnealedPairs.empty(1, len(betas), len(state)))
                continue
            pairs, spent = pairs.joined(found.pairs), spent + found.n_evaluations
            failures |= dict.fromkeys(found.failures)
        return Annealed(pairs, spent, tuple(failures))

    def step_between(self, draws: Draws, seeds: Sequence[SeedSequence]) -> Steps:
        """Take two steps of annealed chains from each draw; see `bread.debugging.between.SubjectBetween`."""
        log_ratio, others = np.full((len(draws), N_STARTS, 3), np.nan), np.empty((len(draws), N_OTHERS))
        spent = 0
        for row, seed in enumerate(seeds):
            further = SeedSequence(seed.entropy, spawn_key=seed.spawn_key).spawn(2 * N_STARTS - 1 + N_OTHERS)
            chains, more = further[:N_STARTS], further[N_STARTS:]
            posterior = self._posterior(draws.data, row)
            drawn = draw_tempered(posterior, self.beta, more)
            others[row] = posterior.log_ratio(self._path, drawn[N_STARTS - 1 :])
            starts = np.concatenate([draws.states[[row]], drawn[: N_STARTS - 1]])
            with suppress(BreadError):  # a chain that fails is NaN
                run = posterior.anneal(
                    self._path, SCHEDULE, self._kernel, direction="forward", initial=starts, seeds=chains
                )
                log_ratio[row] = run.log_ratio[:, :3]
                spent += int(run.n_gradients.sum() + run.n_evaluations.sum())
        return Steps(log_ratio, others, max(spent, 3 * N_STARTS * len(draws)))

    def evolve(self, draws: Draws, row: int, keep: Sequence[int], seed: SeedSequence) -> Evolution:
        """Run one chain from one of the draws."""
        posterior = self._posterior(draws.data, row)
        return posterior.evolve(self._path, self._kernel, self.beta, draws.states[row], keep, seed)

    def log_density(self, draws: Draws) -> FloatArray:
        """Return the log density that the kernel should leave invariant, in nats; NaN where it raises."""
        values = np.full(len(draws), np.nan)
        for row, state in enumerate(draws.states):
            posterior = self._posterior(draws.data, row)
            with suppress(BreadError):
                if self.is_between:
                    base, ratio = (density(self._path, state[None])[0] for density in
                                   (posterior.log_base, posterior.log_ratio))  # fmt: skip
                    values[row] = base + self.beta * ratio if base > -np.inf else base
                    continue
                density = posterior.log_base if self.beta == 0.0 else posterior.log_density
                values[row] = density(self._path, state[None])[0]
        return values

    def gradient(self, draws: Draws) -> FloatArray:
        """Return the gradient of that log density; NaN at discrete coordinates and where it raises."""
        return np.concatenate(
            [
                self._posterior(draws.data, row).density_gradient(self.beta, state[None])[1]
                for row, state in enumerate(draws.states)
            ]
        )

    def renewed(self) -> ModelSubject:
        """Return this subject with a kernel that has moved nothing yet."""
        if self._reopen is None:
            raise NotImplementedError(self.missing["renewed"])
        return ModelSubject(self._reopen(), self.beta, self._seed, self._reopen)

    def _posterior(self, data: Mapping[str, NDArray[Any]], row: int) -> Posterior:
        return self.model.condition({name: values[row] for name, values in data.items()})


def draw_tempered(posterior: Posterior, beta: float, seeds: Sequence[SeedSequence]) -> FloatArray:
    """Return exact draws of the law at ``beta``, one a seed, where the backend has any.

    Raises
    ------
    UnsupportedModelError
        It has not.
    """
    draw = getattr(posterior, "draw_tempered", None)  # optional, and not every posterior inherits the default
    if draw is None:
        raise UnsupportedModelError("The backend cannot draw exactly from a tempered law.")
    return np.asarray(draw(beta, seeds), dtype=np.float64)


def simulate_each(model: Model, seeds: Sequence[SeedSequence]) -> Draws:
    """Return one joint draw a seed, whatever the others are; where one fails, another."""
    drawn = [draw_joint(model, 1, seed) for seed in seeds]
    data = {name: np.concatenate([one.data[name] for one in drawn]) for name in model.info.data.observed}
    return Draws(np.concatenate([one.states for one in drawn]), data)


def _path_of(model: Model) -> Path:
    """Return a path that the model can follow; at beta = 1 all are the same."""
    if PriorPath.name in model.info.paths:
        return PriorPath()
    dim = model.info.layout.dim
    return ReferencePath(diagonal(np.zeros(dim), np.ones(dim)))
