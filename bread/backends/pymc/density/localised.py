"""Hyperparameters with another law: their prior statements are replaced by a density fitted to the real data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import FloatArray, IntArray
from bread.backends.pymc.density.compiling import detach, interpret_function
from bread.backends.pymc.density.reference_graph import LocalLaw
from bread.backends.pymc.model.layout import StateLayout
from bread.backends.pymc.model.reading import parents, read_positions
from bread.backends.pymc.simulation.simulation import Simulator, Values
from bread.backends.pymc.simulation.streams import Part, generators
from bread.errors import InvalidArgumentError, UnsupportedModelError
from bread.paths.mixture import Reference


def check_localisable(model: Any, layout: StateLayout, names: Sequence[str]) -> tuple[str, ...]:
    """Check that the law of named variables can be told from that of the others; return them in the model's order.

    Raises
    ------
    InvalidArgumentError
        A name is no free variable, or there is none.
    UnsupportedModelError
        The prior of a named variable depends on one that is not named, a named variable is discrete, or the model has
        a pm.Potential.
    """
    free = [variable.name for variable in model.free_RVs]
    unknown = [name for name in names if name not in free]
    if unknown or not names:
        what = f"names {unknown[0]!r}, which is no free variable of the model" if unknown else "is empty"
        raise InvalidArgumentError(f"hyperparameters {what}. Valid names: {', '.join(free)}.")
    discrete = dict(zip(free, (np.dtype(dtype).kind in "iub" for dtype in layout.dtypes), strict=True))
    for variable in model.free_RVs:
        name = variable.name
        if name not in names:
            continue
        above = sorted(parents(model, variable) - set(names))
        if above:
            raise UnsupportedModelError(
                f"simulate_from='localised' replaces the prior of {name!r}, which depends on {above[0]!r}, a free "
                f"variable that is not localised: what {above[0]!r} says of {name!r} would be lost. Add {above[0]!r} "
                f"to hyperparameters=, or leave {name!r} out."
            )
        if discrete[name]:
            raise UnsupportedModelError(
                f"simulate_from='localised' replaces the prior of {name!r} by a density, but it is discrete. Leave it "
                "out of hyperparameters=, or use simulate_from='prior'."
            )
    if model.potentials:
        raise UnsupportedModelError(
            f"simulate_from='localised' cannot draw from pm.Potential {model.potentials[0].name!r}. Write the term "
            "as a distribution, or use simulate_from='prior' with simulator=."
        )
    return tuple(name for name in free if name in names)


def refuse_simulator(function: Any) -> None:
    """Refuse a simulator of the user's, which draws the hyperparameters itself; None is none."""
    if function is not None:
        raise UnsupportedModelError(
            "simulate_from='localised' draws hyperparameters from a fitted density and the rest by the model's own "
            "simulator, which simulator= replaces. Leave simulator= out, or use simulate_from='prior'."
        )


@dataclass(frozen=True)
class LocalisedSimulator(Simulator):
    """Draws the localised variables from their reference, then everything else given them.

    A draw that a restricting transform rejects is rejected with its hyperparameters: that is the joint density.

    Attributes
    ----------
    law : LocalLaw
    positions : ndarray of int
        Coordinates of the localised variables.
    """

    law: LocalLaw = field(kw_only=True)
    positions: IntArray = field(kw_only=True)
    _constrain_law: Callable[..., list[Any]] = field(kw_only=True)
    _law_shapes: tuple[tuple[int, ...], ...] = field(kw_only=True)

    def _prior_function(self, fixed: frozenset[str]) -> Callable[..., list[Any]]:
        return super()._prior_function(fixed | frozenset(self.law.names))

    def _attempt(
        self, seed: SeedSequence, attempt: int, held: Values, function: Callable[..., list[Any]]
    ) -> tuple[Values, FloatArray] | None:
        if set(self.law.names) <= set(held):
            return super()._attempt(seed, attempt, held, function)
        (generator,) = generators(seed, Part.LOCALISED, attempt, 1)
        drawn = self.law.reference.sample(1, generator)[0]
        every = {**self._constrain_drawn(drawn), **held}
        try:
            result = super()._attempt(
                seed, attempt, {name: every[name] for name in self.names if name in every}, function
            )
        except InvalidArgumentError as error:
            if held:
                raise
            raise UnsupportedModelError(
                f"A draw of {', '.join(self.law.names)} from the density fitted to the real data cannot be simulated "
                f"from: {error}"
            ) from error
        if result is not None:
            result[1][self.positions] = drawn  # not through the constrained value, which rounds
        return result

    def _constrain_drawn(self, drawn: FloatArray) -> dict[str, NDArray[Any]]:
        sizes = np.cumsum([int(np.prod(shape, dtype=int)) for shape in self._law_shapes])[:-1]
        parts = [part.reshape(shape) for part, shape in zip(np.split(drawn, sizes), self._law_shapes, strict=True)]
        with np.errstate(all="ignore"):
            return dict(zip(self.law.names, self._constrain_law(*parts), strict=True))


def localise_simulator(
    model: Any, simulator: Simulator, names: Sequence[str], reference: Reference
) -> LocalisedSimulator:
    """Return a simulator of the localised model; ``names`` were checked by `check_localisable`.

    Raises
    ------
    InvalidArgumentError
        The reference has another number of coordinates than the variables.
    """
    layout, names = simulator.layout, tuple(names)
    place = read_positions(model, layout)
    positions = np.concatenate([place[name] for name in names])
    dim = reference.sample(1, np.random.default_rng(0)).shape[1]
    if dim != len(positions):
        raise InvalidArgumentError(
            f"The reference of {', '.join(names)} must have their {len(positions)} unconstrained coordinates; it has "
            f"{dim}."
        )
    chosen = [variable for variable in model.free_RVs if variable.name in names]
    values = [model.rvs_to_values[variable] for variable in chosen]
    shapes = dict(zip((variable.name for variable in model.free_RVs), layout.shapes, strict=True))
    kept: Mapping[str, Any] = {one.name: getattr(simulator, one.name) for one in fields(Simulator)}
    joint = {name: set(names) - {name} for name in names}  # drawn together, so held together
    return LocalisedSimulator(
        **{**kept, "parents": {**simulator.parents, **joint}, "_draw_prior": {}},
        law=LocalLaw(names, reference),
        positions=positions,
        _constrain_law=interpret_function(values, detach(model.replace_rvs_by_values(chosen)).outputs),
        _law_shapes=tuple(shapes[name] for name in names),
    )
