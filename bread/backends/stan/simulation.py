"""Exact joint draws of parameters and data: what every simulator is asked, and the one derived from the program.

Draw i depends on its own seed alone. Simulators return values in the program's own coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import Discarded, FloatArray
from bread.backends.stan.native.library import StanInstance, StanLibrary
from bread.backends.stan.native.values import data_json, joined_json
from bread.backends.stan.simulator.cuts import CUT
from bread.backends.stan.simulator.derivation import ONLY_PARAMETERS
from bread.backends.support.recent import Recent
from bread.errors import DensityError, InvalidArgumentError, UnsupportedModelError

Fixed = Mapping[str, NDArray[Any]]
USE_FIXED = "use_fixed"
_SIMULATED = "bread_sim_"
_ANCHOR_TRIES = 50  # states between -2 and 2, as Stan itself looks for a start


@dataclass(frozen=True)
class JointDraws:
    """Draws in the program's own coordinates.

    Attributes
    ----------
    parameters, data : dict of str to ndarray, each (n, ...)
    log_likelihood : ndarray, shape (n,), or None
        Log density of the data given the parameters, by the simulator itself.
    log_prior : ndarray, shape (n,), or None
        Log density of the parameters that are not held, by the simulator itself: as the program states it.
    cut : ndarray, shape (n, variable), or None
        Log of what the densities of the simulator's parameters, so stated, integrate to within declared bounds.
    acceptance : float
        Fraction of joint draws that were kept: within bounds, and accepted by the program.
    n_redrawn : int
        Draws that were made again because the program rejects them or a number overflows.
    reason : str
        Stan's message for the first of them.
    failed : tuple of SeedSequence
        Seeds of those for which the generators raised.
    discarded : Discarded
        Those among the draws made again to which the program gives mass.
    """

    parameters: dict[str, NDArray[Any]]
    data: dict[str, NDArray[Any]]
    log_likelihood: FloatArray | None = None
    acceptance: float = 1.0
    n_redrawn: int = 0
    reason: str = ""
    failed: tuple[SeedSequence, ...] = ()
    log_prior: FloatArray | None = None
    cut: FloatArray | None = None
    discarded: Discarded = field(default_factory=Discarded)

    def rows(self, rows: NDArray[np.int64]) -> JointDraws:
        """Return some of the draws."""
        own = (self.log_likelihood, self.log_prior, self.cut)
        chosen = [None if values is None else values[rows] for values in own]
        parameters, data = ({name: values[rows] for name, values in part.items()}
                            for part in (self.parameters, self.data))  # fmt: skip
        return JointDraws(parameters, data, chosen[0], log_prior=chosen[1], cut=chosen[2])

    def redrawn_note(self, n: int) -> str:
        """Return a note for the report on ``n`` draws; "" if none was made again."""
        if not self.n_redrawn:
            return ""
        return (
            f"The simulator made {self.n_redrawn} joint draws again for {n} that were kept ({self.reason}): what is "
            "simulated and annealed is the program's law, given that the program accepts a draw and that its numbers "
            "can be represented."
        )


def concatenate_draws(parts: Sequence[JointDraws]) -> JointDraws:
    """Return draws of several calls of one simulator as one."""

    def joined(which: str) -> dict[str, NDArray[Any]]:
        return {name: np.concatenate([getattr(one, which)[name] for one in parts]) for name in
                getattr(parts[0], which)}  # fmt: skip

    def own(which: str) -> FloatArray | None:
        known = [getattr(one, which) for one in parts if getattr(one, which) is not None]
        return np.concatenate(known) if known and len(known) == len(parts) else None

    return JointDraws(
        joined("parameters"), joined("data"), own("log_likelihood"), log_prior=own("log_prior"), cut=own("cut")
    )


class DerivedDrawError(DensityError):
    """The generated quantities that bread derived from a program fail; so will the program, in its own words."""


class NoStateError(DerivedDrawError):
    """Generated quantities cannot be run at all, whatever the seed: no state has transformed parameters."""


class JointSimulator(Protocol):
    """Draws parameters and data jointly."""

    @property
    def fixable(self) -> tuple[str, ...]:
        """Parameters that can be held at a value."""
        ...

    @property
    def can_redraw(self) -> bool:
        """Whether a failure may be met by another draw: its law of the parameters can be drawn without outcomes."""
        ...

    def draw(
        self, seeds: Sequence[SeedSequence], fixed: Fixed | None = None, *, only_parameters: bool = False
    ) -> JointDraws:
        """Return one draw per seed, with named parameters held at values; perhaps without outcomes."""
        ...


class NoSimulator:
    """Stands where a program is opened for its density alone."""

    fixable: tuple[str, ...] = ()
    can_redraw = False

    def draw(
        self, seeds: Sequence[SeedSequence], fixed: Fixed | None = None, *, only_parameters: bool = False
    ) -> JointDraws:
        """Refuse."""
        raise UnsupportedModelError("The program was opened for its density alone. Open it with a simulator.")


@dataclass(frozen=True)
class DerivedSimulator:
    """The simulator that bread wrote into the generated quantities of the program.

    Parameters
    ----------
    library : StanLibrary
    data : dict of str to Any
        The data block, the switches of held parameters included.
    parameters : tuple of str
    observed : dict of str to dtype
    fixable : tuple of str
    """

    library: StanLibrary
    data: dict[str, Any]
    parameters: tuple[str, ...]
    observed: dict[str, np.dtype[Any]]
    fixable: tuple[str, ...]
    recent: Recent = field(default_factory=Recent, init=False, compare=False, repr=False)

    can_redraw: ClassVar[bool] = True

    def draw(
        self, seeds: Sequence[SeedSequence], fixed: Fixed | None = None, *, only_parameters: bool = False
    ) -> JointDraws:
        """Return one draw per seed; see `JointSimulator.draw`.

        Raises
        ------
        DerivedDrawError
            The program's random number generators fail; the message is Stan's.
        NoStateError
            The program's transformed parameters fail wherever they are tried.
        """
        instance = self._instance({ONLY_PARAMETERS: int(only_parameters), **self._held(fixed or {})})
        try:
            values = generate(instance, seeds)
        except UnsupportedModelError as error:
            raise NoStateError(str(error)) from error
        except DensityError as error:
            raise DerivedDrawError(str(error)) from error
        data = {name: values[_SIMULATED + name].astype(dtype) for name, dtype in self.observed.items()}
        return JointDraws(
            {name: values[_SIMULATED + name] for name in self.parameters},
            data,
            values[f"{_SIMULATED}log_likelihood"],
            len(seeds) / max(1.0, float(values[f"{_SIMULATED}attempts"].sum())),
            log_prior=values[f"{_SIMULATED}log_prior"],
            cut=values[CUT],
        )

    def _instance(self, switches: dict[str, Any]) -> StanInstance:
        """Return the simulator with these switches and values that are held: the rest of its data is the same."""
        values = tuple((name, np.shape(value), np.asarray(value).tobytes()) for name, value in switches.items())

        def rest() -> str:
            return data_json({name: value for name, value in self.data.items() if name not in switches})

        def made() -> StanInstance:
            text = self.recent.get("data", tuple(sorted(switches)), rest)
            return self.library.instance(joined_json(text, data_json(switches)))

        return self.recent.get("instance", values, made)

    def _held(self, fixed: Fixed) -> dict[str, Any]:
        held: dict[str, Any] = {}
        for name, value in fixed.items():
            array = np.asarray(value, dtype=np.float64)
            held[f"bread_use_fixed_{name}"] = 1
            held[f"bread_fixed_{name}"] = array if array.ndim else array[None]
        return held


def generate(instance: StanInstance, seeds: Sequence[SeedSequence]) -> dict[str, FloatArray]:
    """Return generated quantities, one run per seed; they do not use the state they are run at."""
    state = _anchor(instance)
    return instance.constrain(np.repeat(state[None, :], len(seeds), axis=0), "generated", seeds)


def _anchor(instance: StanInstance) -> FloatArray:
    """Return a state whose transformed parameters the program accepts: Stan computes them before anything else."""
    generator = np.random.default_rng(0)
    state, last = np.zeros(instance.dim), None
    for _ in range(_ANCHOR_TRIES):
        try:
            instance.constrain(state[None, :], "transformed")
        except DensityError as error:
            state, last = generator.uniform(-2.0, 2.0, instance.dim), error
        else:
            return state
    raise UnsupportedModelError(
        f"The program's transformed parameters fail at {_ANCHOR_TRIES} random points, so that its simulator cannot be "
        f"run: {last}. Pass simulator=."
    )


def require_fixable(names: Sequence[str], simulator: JointSimulator) -> None:
    """Raise InvalidArgumentError unless the simulator can hold these hyperparameters at a value."""
    for name in names:
        if name not in simulator.fixable:
            raise InvalidArgumentError(cannot_hold(name, simulator))


def cannot_hold(name: str, simulator: JointSimulator) -> str:
    """Return why a simulator cannot hold a hyperparameter, and the way out."""
    if isinstance(simulator, DerivedSimulator):
        way_out = f"The simulator derived from the program can hold {', '.join(simulator.fixable) or 'none'}."
    else:
        way_out = (
            "Write a function as simulator(rng, data, fixed), where fixed is a dict of values to hold; or declare in "
            f"the data of a Stan program `int {USE_FIXED};` and `fixed_{name}`, to be used where {USE_FIXED} is 1."
        )
    return (
        f"simulator= cannot hold the hyperparameter {name!r} at a value, which simulate_from='fitted' needs, and "
        "'posterior' and 'localised' too. "
        f"{way_out} Or use simulate_from='prior'."
    )
