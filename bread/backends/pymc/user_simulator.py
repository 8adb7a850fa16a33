"""Joint draws by a Python function of the user's, for models whose own simulator bread cannot derive."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Simulations
from bread.backends.pymc.compiling import first_line
from bread.backends.pymc.simulation import Simulator, Values
from bread.backends.pymc.streams import child_seeds
from bread.errors import BreadError, InvalidArgumentError

UserFunction = Callable[..., tuple[Mapping[str, Any], Mapping[str, Any]]]
_CALL = "It is called as simulator(rng, data) and must return two dicts, (parameters, observed)."


@dataclass(frozen=True)
class UserSimulator(Simulator):
    """Draws by a function ``(rng, data) -> (parameters, observed)``; the maps between coordinates are the model's.

    With a third parameter called ``fixed`` the function can hold hyperparameters: it is then given a dict of their
    values.

    Attributes
    ----------
    function : callable
    data : dict of str to ndarray
        Covariates (``pm.Data``) and the real data, by name.
    """

    function: UserFunction = field(kw_only=True)
    data: dict[str, NDArray[Any]] = field(kw_only=True)

    @property
    def can_hold(self) -> bool:
        """Whether the function takes ``fixed``."""
        try:
            return "fixed" in inspect.signature(self.function).parameters
        except (TypeError, ValueError):
            return False

    def require_fixable(self, names: Sequence[str]) -> None:
        """Raise InvalidArgumentError unless the function can hold parameters at a value."""
        unknown = [name for name in names if name not in self.names]
        if unknown:
            raise InvalidArgumentError(
                f"fixed names {unknown[0]!r}, which is no free variable of the model. Valid names: "
                f"{', '.join(self.names)}."
            )
        if names and not self.can_hold:
            raise InvalidArgumentError(
                f"simulator= cannot hold the hyperparameter {names[0]!r} at its estimate, which simulate_from='fitted' "
                "needs. Write it as simulator(rng, data, fixed), where fixed is a dict of values to hold. Or use "
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
        draws = [self._draw(child, held) for child in child_seeds(seed, n)]
        states = self._states([draw[0] for draw in draws])
        return Simulations(
            states=states,
            parameters=self.constrain(states),
            data={
                name: np.array([draw[1][name] for draw in draws], dtype=dtype).reshape(n, *shape)
                for name, (shape, dtype) in self.observed.items()
            },
        )

    def draw_states(self, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw from the prior, one state a seed; shape (len(seeds), dim)."""
        return self._states([self._draw(seed, {})[0] for seed in seeds])

    def pilot(self) -> tuple[str, ...]:
        """Draw twice: find out whether the function returns what it must; return a note for the report."""
        self.simulate(2, fixed=None, seed=SeedSequence(0))
        return (
            "Parameters and data are drawn by simulator=; the weighted ranks test whether it agrees with the model.",
        )

    def _draw(self, seed: SeedSequence, held: Mapping[str, Any]) -> tuple[Values, Values]:
        options = {"fixed": {name: np.array(value) for name, value in held.items()}} if held else {}
        inputs = {name: value.copy() for name, value in self.data.items()}
        try:
            drawn = self.function(np.random.default_rng(seed), inputs, **options)
            parameters, observed = (dict(part) for part in drawn)
        except BreadError:
            raise
        except Exception as error:
            raise InvalidArgumentError(f"simulator= failed: {first_line(error)}. {_CALL}") from error
        shapes = {name: shape for name, (shape, _) in self.observed.items()}
        return _checked("parameter", parameters, self.shapes), _checked("observed variable", observed, shapes)

    def _states(self, draws: Sequence[Values]) -> FloatArray:
        states = self.unconstrain({name: np.array([draw[name] for draw in draws]).reshape(len(draws), *shape)
                                   for name, shape in self.shapes.items()})  # fmt: skip
        outside = ~np.isfinite(states).all(axis=0)
        if outside.any():
            name = np.array(self.layout.coordinates)[outside][0]
            raise InvalidArgumentError(
                f"simulator= drew a value of {name} outside its support or on the border of it, where no state is "
                "finite. Draw from the prior that the model declares."
            )
        return states


def _checked(what: str, values: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> Values:
    result = {}
    for name, shape in shapes.items():
        if name not in values:
            raise InvalidArgumentError(
                f"simulator= returned no {what} {name!r}; it returned {', '.join(map(str, values)) or 'none'}. {_CALL}"
            )
        result[name] = np.asarray(values[name])
        if result[name].shape != shape or not np.all(np.isfinite(result[name])):
            raise InvalidArgumentError(
                f"simulator= returned the {what} {name!r} as {result[name]}; it must be finite and of shape {shape}."
            )
    return result


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
    return UserSimulator(**kept, function=function, data=dict(data))
