"""Whether JAX can run a model: converted, compared with what PyMC compiles, or a reason why not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytensor
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Identity, Simulations
from bread.backends.pymc.density.compiling import first_line
from bread.backends.pymc.density.reference_graph import LocalLaw
from bread.backends.pymc.kernels.engine import Engine
from bread.backends.pymc.model.layout import StateLayout
from bread.backends.pymc.simulation.simulation import Simulator
from bread.backends.pymc.vectorised.conversion import build_density
from bread.backends.pymc.vectorised.engine import VectorEngine
from bread.backends.pymc.vectorised.kernels import vector_kernel
from bread.backends.pymc.vectorised.packages import device, lanes_on, require_packages
from bread.errors import BreadError, UnsupportedKernelError
from bread.paths.kinds import PriorPath

NAMES = ("pymc", "blackjax")  # what engine= may be
_N_COMPARED = 4  # exact joint draws at which both densities are evaluated
_VALUE_ERROR, _GRADIENT_ERROR = 1e-9, 1e-7  # relative to the larger of one and the size of the terms
_OWN_REFERENCES = (
    "engine='blackjax' follows the references that bread fits; along a reference of your own PyMC's step methods run "
    "the chains."
)


class _NotConvertible(Exception):
    """The model cannot be run on JAX; the message says why."""


@dataclass(frozen=True)
class Vectorised:
    """What became of ``engine="blackjax"``.

    Attributes
    ----------
    engine : VectorEngine or None
        None: PyMC's own engine runs the chains.
    notes : tuple of str
        Of the report: the reason, where there is no engine.
    versions : dict of str to str
        Of the packages that run the chains beside PyMC, and the name of the GPU where one runs them.
    """

    engine: VectorEngine | None = None
    notes: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)

    def identify(self, identity: Identity) -> Identity:
        """Return who computes, with the engine that runs the chains."""
        notes = (*identity.notes, *self.notes)
        if self.engine is None:
            return replace(identity, notes=notes)
        versions = {**identity.versions, **self.versions}
        return replace(identity, engine="blackjax", versions=versions, notes=notes, runs_compiled=True)


def vectorise(
    model: Any,
    layout: StateLayout,
    engine: Engine,
    simulator: Simulator,
    periodic: NDArray[np.bool_],
    law: LocalLaw | None = None,
) -> Vectorised:
    """Convert a model and compare, or say why PyMC's own engine runs it.

    Parameters
    ----------
    model : pymc.Model
        Read only.
    layout : StateLayout
    engine : Engine
        PyMC's own, compiled: what the conversion is compared with.
    simulator : Simulator
        Of exact joint draws, at which they are compared.
    periodic : ndarray of bool, shape (dim,)
        Coordinates that are angles.
    law : LocalLaw, optional
        Law of some variables in place of their priors.

    Raises
    ------
    MissingDependencyError
        JAX or BlackJAX is not installed.
    """
    versions = require_packages()
    try:
        if periodic.any():
            raise _NotConvertible("it has angles, whose coordinates are wrapped")
        if engine.proposes_base:
            raise _NotConvertible("its kernel has independence proposals")
        if pytensor.config.floatX != "float64":
            raise _NotConvertible(f"pytensor.config.floatX is {pytensor.config.floatX}")
        kernel = vector_kernel(engine)
        try:
            where = device()
            built = VectorEngine(build_density(model, layout, law), kernel, layout.dim, lanes_on(where))
            _compare(built, engine, _draws(simulator))
        except (_NotConvertible, UnsupportedKernelError):
            raise
        except Exception as error:  # PyTensor, JAX and XLA have many
            raise _NotConvertible(f"it cannot be converted to JAX ({first_line(error)[:200]})") from error
    except (_NotConvertible, UnsupportedKernelError) as error:
        reason = str(error).rstrip(".")
        return Vectorised(
            notes=(f"engine='blackjax' cannot run this model: {reason}. PyMC's own engine ran the chains.",)
        )
    if where.platform != "cpu":
        versions["jax device"] = str(where.device_kind)
    return Vectorised(built, (_OWN_REFERENCES,), versions)


def _draws(simulator: Simulator) -> Simulations:
    try:
        return simulator.simulate(_N_COMPARED, fixed=None, seed=SeedSequence(0))
    except BreadError as error:
        reason = f"there are no exact draws at which its conversion could be compared ({first_line(error)[:200]})"
        raise _NotConvertible(reason) from error


def _compare(built: VectorEngine, engine: Engine, draws: Simulations) -> None:
    """Compare densities and gradients at exact joint draws, each with its data, and at states beside them.

    Raises
    ------
    _NotConvertible
        They differ.
    """
    path, n_compared = PriorPath(), 0
    beside = draws.states + np.random.default_rng(1).normal(size=draws.states.shape)
    for states in (draws.states, beside):
        values = built.evaluate(path, states, [draws.data_of(row) for row in range(len(draws))])
        for row, state in enumerate(states):
            expected = _expected(engine, draws.data_of(row), state)
            n_compared += _require_equal([one[row] for one in values], expected)
    if not n_compared:
        raise _NotConvertible("its density is zero wherever its conversion could be compared")


def _expected(engine: Engine, data: Any, state: FloatArray) -> list[Any]:
    """Return log prior, its gradient, log likelihood and its gradient, as PyMC compiles them."""
    engine.set_path(PriorPath())
    engine.controls.set_data(data)
    try:
        with np.errstate(all="ignore"):
            log_prior, prior_gradient = engine.density_gradient(0.0, state)
            log_joint, joint_gradient = engine.density_gradient(1.0, state)
    except Exception:  # chains take it for a density of zero
        return [-np.inf] * 4
    return [log_prior, prior_gradient, log_joint - log_prior, joint_gradient - prior_gradient]


def _require_equal(values: list[Any], expected: list[Any]) -> bool:
    """Return whether there was a density to compare.

    Raises
    ------
    _NotConvertible
        They differ.
    """
    names = ("log prior", "gradient of the log prior", "log likelihood", "gradient of the log likelihood")
    limits = (_VALUE_ERROR, _GRADIENT_ERROR, _VALUE_ERROR, _GRADIENT_ERROR)
    if not np.isfinite(expected[0] + expected[2]):  # where the density is zero nothing hangs on its gradient
        if np.isfinite(values[0] + values[2]):
            raise _NotConvertible("its density in JAX is positive where PyMC's is zero")
        return False
    size_of_values, size_of_gradients = _size(expected[0], expected[2]), _size(expected[1], expected[3])
    sizes = (size_of_values, size_of_gradients) * 2
    for name, value, wanted, limit, size in zip(names, values, expected, limits, sizes, strict=True):
        difference = float(np.max(np.abs(np.asarray(value) - wanted)))
        if not difference <= limit * max(1.0, size):
            raise _NotConvertible(f"its {name} in JAX differs from PyMC's by {difference:.3g}")
    return True


def _size(*terms: Any) -> float:
    return float(sum(np.max(np.abs(term)) for term in terms))
