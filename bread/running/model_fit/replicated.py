"""Data like the real ones without anything held: replicated at draws of the posterior, and added to the real data.

If theta is a draw of p(theta | y) and y_rep one of p(y_rep | theta), theta is an exact draw of p(theta | y, y_rep)
(posterior SBC: Säilynoja et al. 2025, arXiv 2502.03279). So whatever tests exact draws tests those that theta is taken
from. What is annealed is p(theta | y, y_rep), from a base that is fitted to both; of the prior nothing but its density
is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import Data, Discarded, Fit, FloatArray, Model, ModelInfo, Node, Simulations
from bread.errors import DensityError, InvalidArgumentError, UnsupportedModelError
from bread.jobs.interrupts import interruptible
from bread.jobs.progress import Display
from bread.paths.kinds import Path, PriorPath
from bread.running.state.ledger import timed_phase
from bread.running.state.plan import NO_PRIOR_PATH
from bread.running.state.results import CheckResult
from bread.seeds import Children

MOST_DRAWS = 20  # at which data cannot be simulated, one after another, before that is an error: 0.5^20 if half are
_NOT_DRAWN = "its prior is not drawn under simulate_from='posterior'."


class _Delegate:
    """Everything that is not said here is the other object's own."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)


class _PosteriorNearDraws(_Delegate):
    """A posterior whose pilots begin at draws of a fit, in place of the prior's."""

    def __init__(self, inner: Any, draws: FloatArray) -> None:
        super().__init__(inner)
        self._draws = draws

    def draw_base(self, path: Path, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw from the path's base; for the prior path from the fit."""
        if not isinstance(path, PriorPath):
            drawn: FloatArray = self.inner.draw_base(path, seeds)
            return drawn
        rows = [int(np.random.default_rng(seed).integers(len(self._draws))) for seed in seeds]
        return self._draws[rows]

    def draw_prior_batch(self, n: int, seed: SeedSequence) -> FloatArray | None:
        """Draw many at once: not faster here."""
        return None


class ModelNearDraws(_Delegate):
    """A model on the real data whose prior need not be drawn: pilots begin at draws of a fit.

    Parameters
    ----------
    inner : Model
    fit : Fit
        Draws of all free variables.
    """

    def __init__(self, inner: Model, fit: Fit) -> None:
        super().__init__(inner)
        self._values = {name: fit.flat_draws()[name] for name in inner.info.layout.positions}
        self._draws = inner.unconstrain(self._values)
        if not np.isfinite(self._draws).all():
            raise DensityError(
                f"Draws of the fit ({fit.source}) lie outside the support of the model, or on its border, so that data "
                "cannot be simulated at them. Pass draws of this model as posterior=."
            )

    def condition(self, data: Data) -> Any:
        """Return the posterior given ``data``."""
        return _PosteriorNearDraws(self.inner.condition(data), self._draws)


class ReplicatedModel(ModelNearDraws):
    """A model whose prior is the posterior given the real data, drawn from a fit.

    Parameters
    ----------
    inner : Model
        The user's model.
    fit : Fit
        Draws of all free variables.
    """

    def __init__(self, inner: Model, fit: Fit) -> None:
        super().__init__(inner, fit)
        self._simulator, self.inner = inner, inner.given_real_data()
        refusals = {**self.inner.info.path_refusals, PriorPath.name: NO_PRIOR_PATH}
        self.info: ModelInfo = replace(self.inner.info, path_refusals=refusals)

    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes of the user's model; integrals of priors that are not known are not looked for."""
        return tuple(
            node if node.log_integral is not None else replace(node, refusal=node.refusal or _NOT_DRAWN)
            for node in self.inner.nodes()
        )

    def simulate(self, n: int, *, fixed: Mapping[str, NDArray[Any]] | None, seed: SeedSequence) -> Simulations:
        """Take draws of the fit, each with data simulated at it.

        Raises
        ------
        InvalidArgumentError
            ``fixed`` is given.
        DensityError
            Data cannot be simulated at `MOST_DRAWS` draws.
        """
        if fixed:
            raise InvalidArgumentError(
                f"parameters that are draws of a fit cannot be held, got fixed={sorted(fixed)}. Leave fixed out."
            )
        if not n:
            return Simulations(np.empty((0, self.info.layout.dim)), {}, {})
        return reduce(Simulations.joined, (self._replicated(one) for one in Children(seed, range(n))))

    def _replicated(self, seed: SeedSequence) -> Simulations:
        """Take one draw; where no data can be simulated at it, another one, which is counted."""
        reason = ""
        for attempt, (pick, draw) in enumerate(
            zip(Children(seed, range(0, 2 * MOST_DRAWS, 2)), Children(seed, range(1, 2 * MOST_DRAWS, 2)), strict=True)
        ):
            row = int(np.random.default_rng(pick).integers(len(self._draws)))
            held = {name: values[row] for name, values in self._values.items()}
            try:
                drawn = self._simulator.simulate(1, fixed=held, seed=draw)
            except (DensityError, UnsupportedModelError) as error:
                reason = str(error)
                continue
            lost = Discarded(n_outcomes=attempt, n_by_chance=attempt, reason=reason)
            return replace(drawn, states=self._draws[row][None], discarded=drawn.discarded + lost)
        raise DensityError(f"Data cannot be simulated at {MOST_DRAWS} random draws of the fit: {reason}")


def replicate(
    model: Model, result: CheckResult, fit: Callable[[], Fit], display: Display
) -> tuple[ReplicatedModel, ModelNearDraws]:
    """Return the model of real and replicated data, and that of the real data alone.

    ``fit`` samples the posterior on the real data, where the user gave no draws.
    """
    if result.fit is None:
        with timed_phase(result, display, "fitting", "fit"):
            result.fit = fit()
    with timed_phase(result, display, "adding your data", "compile"), interruptible():
        replicated, alone = ReplicatedModel(model, result.fit), ModelNearDraws(model, result.fit)
    result.info = replicated.info
    return replicated, alone
