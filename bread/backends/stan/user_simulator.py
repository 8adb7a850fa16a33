"""The simulator that the user passes: a Stan program, or a Python function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import DTypeLike, NDArray

from bread.backends.stan import opening
from bread.backends.stan.language.messages import check_text
from bread.backends.stan.native.library import StanInstance, StanLibrary
from bread.backends.stan.native.toolchain import Toolchain
from bread.backends.stan.places import in_users_files
from bread.backends.stan.simulation import USE_FIXED, Fixed, JointDraws, JointSimulator, generate
from bread.backends.support.user_function import UserFunction
from bread.errors import InvalidArgumentError


def read_simulator(
    wanted: Any,
    data: dict[str, Any],
    observed: Mapping[str, NDArray[Any]],
    instance: StanInstance,
    toolchain: Toolchain,
) -> JointSimulator:
    """Return the simulator that the user means.

    Parameters
    ----------
    wanted : callable, path or str
        ``simulator=``.
    data : dict of str to Any
        The data block, as the simulator sees it.
    observed : mapping of str to ndarray
        The real outcomes.
    instance : StanInstance
        The program with the real data.
    toolchain : Toolchain

    Raises
    ------
    InvalidArgumentError
        It is neither a function nor a Stan program, or stanc rejects the program.
    """
    parameters = instance.names("parameters")
    if opening.is_stan_model(wanted):
        source, _ = opening.read_program(wanted, "simulator.stan")
        check_text(source, toolchain.run_stanc, "the program in simulator=")
        library = StanLibrary.of(source.text, toolchain, places=in_users_files(source))
        inputs, _ = opening.declared_variables(source, toolchain.run_stanc)
        middle = instance.constrain(np.zeros((1, instance.dim)))
        holds = [name for name in parameters if f"fixed_{name}" in inputs and USE_FIXED in inputs]
        unused = {name: middle[name][0] for name in holds}
        dtypes = {name: values.dtype for name, values in observed.items()}
        return ProgramSimulator(library, data, parameters, dtypes, unused)
    if not callable(wanted):
        raise InvalidArgumentError(
            "simulator= must be a function (rng, data) -> (parameters, observed), or a Stan program (path or "
            f"text); received {type(wanted).__name__}."
        )
    shapes = {name: instance.shape(name) for name in parameters}
    outcomes: dict[str, tuple[tuple[int, ...], DTypeLike]]
    outcomes = {name: (values.shape, values.dtype) for name, values in observed.items()}
    return CallableSimulator(UserFunction(wanted, data, shapes, outcomes))


@dataclass(frozen=True)
class ProgramSimulator:
    """A Stan program of the user's whose generated quantities are parameters and observed data, under their names.

    It can hold hyperparameters at values if its data block declares ``int use_fixed`` (1 to hold them) and, for each
    of them, ``fixed_<name>``.

    Parameters
    ----------
    library : StanLibrary
    data : dict of str to Any
    parameters : tuple of str
    observed : dict of str to dtype
    unused : mapping of str to ndarray
        Parameters for which it has ``fixed_<name>``, each with a value that is given where it is not used.
    """

    library: StanLibrary
    data: dict[str, Any]
    parameters: tuple[str, ...]
    observed: dict[str, np.dtype[Any]]
    unused: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    can_redraw: ClassVar[bool] = False

    @property
    def fixable(self) -> tuple[str, ...]:
        """Parameters that the program can hold: all for which it has data, or none."""
        return tuple(self.unused)

    def draw(
        self, seeds: Sequence[SeedSequence], fixed: Fixed | None = None, *, only_parameters: bool = False
    ) -> JointDraws:
        """Return one draw per seed; see `bread.backends.stan.simulation.JointSimulator`.

        Raises
        ------
        InvalidArgumentError
            ``fixed`` holds some of the parameters that the program can hold, and not others; or the program lacks a
            variable.
        """
        values = generate(self.library.instance({**self.data, **self._held(fixed or {})}), seeds)
        missing = [name for name in (*self.parameters, *self.observed) if name not in values]
        if missing:
            raise InvalidArgumentError(
                f"The program in simulator= does not declare {missing[0]!r}. Its generated quantities must hold every "
                f"parameter and observed variable: {', '.join((*self.parameters, *self.observed))}."
            )
        data = {name: values[name].astype(dtype) for name, dtype in self.observed.items()}
        return JointDraws({name: values[name] for name in self.parameters}, data)

    def _held(self, fixed: Fixed) -> dict[str, Any]:
        if fixed and set(fixed) != set(self.unused):
            raise InvalidArgumentError(
                f"The program in simulator= has data for {', '.join(self.unused)} and can hold these together only; "
                f"received values of {', '.join(fixed)}. Pass hyperparameters=[...] with the same names."
            )
        return {USE_FIXED: int(bool(fixed)), **{f"fixed_{name}": fixed.get(name, value) for name, value in
                                                self.unused.items()}}  # fmt: skip


@dataclass(frozen=True)
class CallableSimulator:
    """A Python function of the user's."""

    function: UserFunction
    can_redraw: ClassVar[bool] = False

    @property
    def fixable(self) -> tuple[str, ...]:
        """All parameters if the function takes ``fixed``, else none."""
        return tuple(self.function.parameters) if self.function.takes_fixed else ()

    def draw(
        self, seeds: Sequence[SeedSequence], fixed: Fixed | None = None, *, only_parameters: bool = False
    ) -> JointDraws:
        """Return one draw per seed; see `bread.backends.stan.simulation.JointSimulator` and `UserFunction.draw`."""
        return JointDraws(*self.function.draw(seeds, fixed))
