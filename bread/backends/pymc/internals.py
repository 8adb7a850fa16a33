"""Every private name of PyMC that bread uses, in one place.

PyMC may change them in any release without a word. `tests/backends/pymc/test_internals.py` tries each one against what
it is used for, and says which version of PyMC broke it; the upper bound of PyMC in pyproject.toml is the newest minor
version that these tests have passed on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from pymc.blocking import RaveledVars
from pymc.distributions.distribution import _support_point
from pymc.distributions.shape_utils import _change_dist_size
from pymc.distributions.transforms import _default_transform
from pymc.logprob.abstract import _icdf, _logcdf, _logprob
from pymc.step_methods.hmc.hmc import unif as _jittered_step_size
from pymc.step_methods.hmc.integration import CpuLeapfrogIntegrator, State
from pymc.step_methods.hmc.quadpotential import QuadPotentialDiag
from pymc.step_methods.step_sizes import DualAverageAdaptation
from scipy.linalg import get_blas_funcs

from bread.backends.base import FloatArray
from bread.backends.pymc.correlated import FrozenMetric

_axpy = get_blas_funcs("axpy", dtype=np.float64)

__all__ = [
    "CallableGradient",
    "DualAveraging",
    "Leapfrog",
    "adapted_variance",
    "competence",
    "default_transform",
    "forget_history",
    "forget_model",
    "gradient_of",
    "lacks_random",
    "leave_out_details",
    "read_dual_averaging",
    "read_log_step_size",
    "registered_for",
    "remove_default_jitter",
    "set_log_step_size",
    "set_metric",
    "step_size_rule",
    "use_leapfrog",
]

# -- distributions --------------------------------------------------------------------------------------------------


def registered_for(kind: type) -> list[Any]:
    """Return the functions that were registered for a class of operations: its density and what goes with it."""
    tables = (_logprob, _logcdf, _icdf, _support_point, _change_dist_size, _default_transform)
    return [table.registry.get(kind) for table in tables]


# -- step methods ---------------------------------------------------------------------------------------------------


def forget_model(step: Any) -> None:
    """Let a step's pickle hold nothing of the user's model.

    The step keeps its model for building its copy when it is unpickled, where it is not needed.
    """
    step._BlockedStep__newargs = ((list(step.vars),), {"model": "tempered", "blocked": True})


def sampling_state(step: Any) -> Any:
    """Return a copy of what ``pm.sample`` returns a step method to before each chain; None where there is none."""
    try:
        return step.sampling_state
    except Exception:  # a step method of the user's own that keeps no such state
        return None


def competence(kind: type, variable: Any, has_gradient: bool) -> Any:
    """Return how well steps of a kind can move a variable, a ``Competence`` of PyMC."""
    (found,) = kind._competence([variable], [has_gradient])  # type: ignore[attr-defined]
    return found


# -- NUTS and HMC ---------------------------------------------------------------------------------------------------

USUAL_TREE_DEPTHS = (10, 8)  # PyMC's defaults: doublings of a trajectory, and while a step size is looked for


def read_tree_depths(step: Any) -> tuple[int, int] | None:
    """Return how often a trajectory of NUTS may double, after and in adaptation; None for other steps."""
    return (step.max_treedepth, step.early_max_treedepth) if isinstance(step, pm.NUTS) else None


def limit_trees(step: Any, limit: int | None) -> None:
    """Limit how often a trajectory of NUTS may double; None: PyMC's defaults."""
    step.max_treedepth, step.early_max_treedepth = (
        USUAL_TREE_DEPTHS if limit is None else (min(usual, limit) for usual in USUAL_TREE_DEPTHS)
    )


class _NoModel:
    """Stands for the model that PyMC asks for details when a trajectory starts at a density that is not finite."""

    def point_logps(self) -> dict[str, float]:
        """Return no details."""
        return {}


def leave_out_details(step: Any) -> None:
    """Let a gradient step say no more than that its trajectory starts at a density that is not finite."""
    step._model = _NoModel()


def gradient_of(step: Any) -> Any:
    """Return the function that a gradient step was built on."""
    return step._logp_dlogp_func


class DualAveraging(NamedTuple):
    """How a gradient step adapts its step size."""

    initial_step: float
    target: Any
    gamma: Any
    k: Any
    t0: Any

    def start(self, initial_step: float) -> DualAverageAdaptation:
        """Return an adaptation that has seen nothing, from ``initial_step``."""
        return DualAverageAdaptation(np.float64(initial_step), self.target, self.gamma, self.k, self.t0)


def read_dual_averaging(step: Any) -> DualAveraging:
    """Return the adaptation of a step size that the step was built with."""
    built = step.step_adapt
    return DualAveraging(float(built._initial_step), built._target, built._gamma, built._k, built._t0)


def read_log_step_size(step: Any) -> Any:
    """Return the log of the step size that a step would use without tuning."""
    return step.step_adapt._log_bar


def set_log_step_size(step: Any, value: Any) -> None:
    """Set the step size of a step that does not tune; its attribute ``step_size`` is only reported."""
    step.step_adapt._log_bar = value


def step_size_rule(step: Any) -> Any:
    """Return the function by which a step changes its step size at every trajectory; None for none."""
    return step._step_rand


def remove_default_jitter(step: Any) -> None:
    """Switch off PyMC's default for HMC, a random step size."""
    if step._step_rand is _jittered_step_size:
        step._step_rand = None


def set_metric(step: Any, potential: Any) -> None:
    """Give a gradient step another potential (its metric, and the draws of the momentum)."""
    step.potential = potential
    step.integrator._potential = potential


def adapted_variance(potential: Any) -> FloatArray:
    """Return the diagonal of the inverse metric that a ``QuadPotentialDiagAdapt`` has come to."""
    variance: FloatArray = potential._var
    return variance


def forget_history(step: Any) -> None:
    """Let a gradient step forget what it counts and collects, and store no copies of divergent points."""
    step.step_adapt._tuned_stats = []
    step.iter_count = 0
    step.divergences = 0
    step._num_divs_sample = 100  # as many as it ever keeps


class Leapfrog(CpuLeapfrogIntegrator):
    """PyMC's leapfrog integrator with less of Python around the same operations: the same bits.

    PyMC looks up a BLAS function and wraps a step size in an array at every step, which takes longer than the gradient
    of a small model.
    """

    def __init__(self, potential: Any, gradient: Any) -> None:
        super().__init__(potential, gradient)
        self._gradient = gradient

    def _step(self, epsilon: Any, state: Any) -> Any:
        potential = self._potential
        is_dense = type(potential) is FrozenMetric
        if not (is_dense or type(potential) is QuadPotentialDiag) or self._dtype != "float64":
            return super()._step(epsilon, state)
        size, variance = float(epsilon), potential.v
        momentum = _axpy(state.q_grad, state.p.copy(), None, 0.5 * size)
        velocity = potential.velocity(momentum) if is_dense else momentum * variance
        position = _axpy(velocity, state.q.data.copy(), None, size)
        log_density, slope = self._gradient(position)
        momentum = _axpy(slope, momentum, None, 0.5 * size)
        if is_dense:
            potential.velocity(momentum, out=velocity)
        else:
            np.multiply(momentum, variance, velocity)
        index = state.index_in_trajectory + (size > 0) - (size < 0)
        energy = 0.5 * momentum.dot(velocity) - log_density
        return State(
            RaveledVars(position, state.q.point_map_info), momentum, velocity, slope, energy, log_density, index
        )


def use_leapfrog(step: Any, gradient: CallableGradient) -> None:
    """Let a gradient step move by `Leapfrog`."""
    if type(step.integrator) is CpuLeapfrogIntegrator:
        step.integrator = Leapfrog(step.potential, gradient)


class CallableGradient:
    """A function of a position that PyMC's gradient steps and integrator take for their ``ValueGradFunction``.

    Attributes
    ----------
    _raveled_inputs, trust_input : bool
        The argument is one vector, which is not checked.
    _extra_vars_shared : dict of str to SharedVariable
        Variables that other steps move; the step sets them before each trajectory.
    """

    _raveled_inputs = True
    trust_input = True

    def __init__(self, extra: dict[str, Any]) -> None:
        self._extra_vars_shared = extra

    @property
    def others(self) -> dict[str, Any]:
        """The settable variables that other steps move, by name."""
        return self._extra_vars_shared

    @property
    def _pytensor_function(self) -> Callable[..., Any]:
        """What the leapfrog integrator calls: position -> (log density, gradient)."""
        call: Callable[..., Any] = self.__call__  # type: ignore[operator]
        return call


# -- distributions --------------------------------------------------------------------------------------------------


def lacks_random(op: Any) -> bool:
    """Return whether the operation of a ``pm.CustomDist`` was given no function that draws."""
    return str(getattr(op._random_fn, "__qualname__", "")).startswith("default_not_implemented")


def default_transform(variable: Any) -> Any:
    """Return the transform that PyMC chooses for a free variable by itself."""
    return _default_transform(variable.owner.op, variable)
