"""Joint draws by a Python function of the user's, for models whose own simulator bread cannot derive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Simulations
from bread.backends.pymc.simulation.simulation import Simulator, Values
from bread.backends.pymc.simulation.streams import child_seeds
from bread.backends.support.user_function import UserFunction
from bread.errors import InvalidArgumentError


@dataclass(frozen=True)
class UserSimulator(Simulator):
    """Draws by a function ``(rng, data) -> (parameters, observed)``; the maps between coordinates are the model's.

    Attributes
    ----------
    function : UserFunction
        It is given covariates (``pm.Data``) and the real data.
    """

    function: UserFunction = field(kw_only=True)

    def require_fixable(self, names: Sequence[str]) -> None:
        """Raise InvalidArgumentError unless the function can hold parameters at a value."""
        unknown = [name for name in names if name not in self.names]
        if unknown:
            raise InvalidArgumentError(
                f"fixed names {unknown[0]!r}, which is no free variable of the model. Valid names: "
                f"{', '.join(self.names)}."
            )
        if names and not self.function.takes_fixed:
            raise InvalidArgumentError(
                f"simulator= cannot hold {names[0]!r} at a draw, which simulate_from='fitted' and 'posterior' need. "
                "Write it as simulator(rng, data, fixed), where fixed is a dict of values to hold. Or use "
                "simulate_from='prior'."
            )

    def simulate(self, n: int, *, fixed: Mapping[str, Any] | None, seed: SeedSequence) -> Simulations:
        """Draw parameters and data jointly; see `bread.backends.base.Model.simulate`.

        Raises
        ------
        InvalidArgumentError
            The function raises, or does not return what it must.
        """
        held = dict(fixed or {})
        self.require_fixable(list(held))
        drawn, data = self.function.draw(child_seeds(seed, n), held)
        states = self._states(drawn)
        return Simulations(states=states, parameters=self.constrain(states), data=data)

    def draw_near(self, states: Sequence[FloatArray], seed: SeedSequence) -> list[tuple[FloatArray, Values]]:
        """Draw parameters and data jointly, as many: data given parameters are not the function's to draw."""
        drawn = self.simulate(len(states), fixed=None, seed=seed)
        return [(state, drawn.data_of(row)) for row, state in enumerate(drawn.states)]

    def draw_states(self, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw from the prior, one state a seed; shape (len(seeds), dim)."""
        return self._states(self.function.draw(seeds)[0])

    def pilot(self) -> tuple[str, ...]:
        """Draw twice: find out whether the function returns what it must; return a note for the report."""
        self.simulate(2, fixed=None, seed=SeedSequence(0))
        return (
            "Parameters and data are drawn by simulator=; the weighted ranks test whether it agrees with the model.",
        )

    def _states(self, draws: Values) -> FloatArray:
        states = self.unconstrain(draws)
        outside = ~np.isfinite(states).all(axis=0)
        if outside.any():
            name = np.array(self.layout.coordinates)[outside][0]
            raise InvalidArgumentError(
                f"simulator= drew a value of {name} outside its support or on the border of it, where no state is "
                "finite. Draw from the prior that the model declares."
            )
        return states


def use_function(simulator: Simulator, function: Any, data: Mapping[str, NDArray[Any]]) -> UserSimulator:
    """Return a simulator that draws by ``function`` and maps coordinates as ``simulator`` does.

    Raises
    ------
    InvalidArgumentError
        ``function`` cannot be called.
    """
    if not callable(function):
        raise InvalidArgumentError(
            f"simulator= of a PyMC model must be a function (rng, data) -> (parameters, observed); received "
            f"{function!r}."
        )
    kept: Mapping[str, Any] = {one.name: getattr(simulator, one.name) for one in fields(Simulator)}
    own = UserFunction(function, dict(data), simulator.shapes, dict(simulator.observed))
    return UserSimulator(**kept, function=own)
