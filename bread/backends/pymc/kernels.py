"""Which step methods of PyMC move the chains, and which kernels are refused.

A kernel must leave the tempered density invariant with frozen settings and have a reversal that can be run
(Grosse, Ghahramani & Adams (2015), section 2.3). What is known to do so is listed here; everything else is
refused by name before any computation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor
from pymc.sampling.mcmc import assign_step_methods
from pymc.step_methods import metropolis
from pymc.step_methods.compound import BlockedStep, Competence, CompoundStep
from pymc.step_methods.hmc import quadpotential
from pymc.step_methods.hmc.hmc import unif as jittered_step_size
from pytensor.gradient import NullTypeGradError
from pytensor.graph.basic import Variable

from bread.backends.pymc.compiling import compile_mode
from bread.backends.pymc.density import TemperedDensity
from bread.backends.pymc.gradients import TemperedGradient
from bread.backends.pymc.layout import StateLayout
from bread.backends.pymc.stepping import DiscreteStep, FrozenStep, GradientStep, MetropolisStep, SliceStep
from bread.errors import UnsupportedKernelError

WRAPPERS: dict[type, Callable[[Any], FrozenStep]] = {
    pm.NUTS: GradientStep,
    pm.HamiltonianMC: GradientStep,
    pm.Metropolis: MetropolisStep,
    pm.Slice: SliceStep,
    pm.BinaryMetropolis: DiscreteStep,
    pm.BinaryGibbsMetropolis: DiscreteStep,
    pm.CategoricalGibbsMetropolis: DiscreteStep,
}
GRADIENT_KERNELS: dict[str, type] = {"nuts": pm.NUTS, "hmc": pm.HamiltonianMC}
FIXED_METRICS = (quadpotential.QuadPotentialDiag, quadpotential.QuadPotentialFull, quadpotential.QuadPotentialFullInv)
SYMMETRIC_PROPOSALS = (
    metropolis.NormalProposal,
    metropolis.UniformProposal,
    metropolis.CauchyProposal,
    metropolis.LaplaceProposal,
)
HISTORY_OR_POPULATION = {
    "DEMetropolis": "its proposal uses the states of other chains",
    "DEMetropolisZ": "its proposal uses its own history, so it is no Markov kernel",
}
ALLOWED = (
    'Use None (what pm.sample would assign), "nuts", "hmc", a step method class such as pm.Slice, a callable that '
    "builds step methods, such as lambda model: pm.Slice(model=model), or a list of these; of the classes "
    + ", ".join(kind.__name__ for kind in WRAPPERS)
    + "."
)


class TemperedModel(pm.Model):
    """The user's model with its log density tempered: what step methods are built on.

    It has the variables of the user's model, so a kernel may name them; its ``logp()`` is that of
    `TemperedDensity.graph`. Nothing may be added to it. Create it with `view`.
    """

    _density: TemperedDensity
    _point: dict[str, Any]
    _compiled_logp: Any

    @classmethod
    def view(cls, model: pm.Model, density: TemperedDensity, point: Mapping[str, Any]) -> TemperedModel:
        """Return a view of ``model``; ``point`` is a valid point for shapes."""
        self = cls.__new__(cls)
        self.__dict__.update({key: value for key, value in vars(model).items() if key != "_cache"})
        self._density, self._point = density, dict(point)
        self._compiled_logp = None
        return self

    def logp(self, vars: Any = None, jacobian: bool = True, sum: bool = True) -> Any:
        """Return the graph of the tempered log density; only the whole of it exists."""
        if vars is not None or not jacobian or not sum:
            raise UnsupportedKernelError(
                "A step method asked for a part of the log density, which has no tempered form. " + ALLOWED
            )
        return self._density.graph

    def compile_logp(self, vars: Any = None, jacobian: bool = True, sum: bool = True, **compile_kwargs: Any) -> Any:
        """Return the compiled tempered log density of a point, compiled once."""
        if self._compiled_logp is None:
            self._compiled_logp = super().compile_logp(vars, jacobian, sum, **compile_kwargs)
        return self._compiled_logp

    def logp_dlogp_function(self, grad_vars: Any = None, **_: Any) -> TemperedGradient:
        """Return the compiled tempered log density with gradient and log likelihood."""
        variables = self.continuous_value_vars if grad_vars is None else list(grad_vars)
        return self._density.compile_gradient(variables, self._point)

    def initial_point(self, random_seed: Any = None) -> dict[str, Any]:
        """Return the known point: nothing is compiled for it."""
        return {name: np.array(value) for name, value in self._point.items()}


def build_steps(model: pm.Model, layout: StateLayout, density: TemperedDensity, kernel: Any) -> list[FrozenStep]:
    """Build the step methods of a kernel on the tempered density, or refuse the kernel.

    Parameters
    ----------
    model : pymc.Model
        The user's model, read only.
    layout : StateLayout
    density : TemperedDensity
    kernel : None, str, type, callable or sequence
        - None: what ``pm.sample`` would assign to each variable.
        - "nuts", "hmc": PyMC's NUTS, or HMC of path length 2, on all variables. PyMC's default jitter of HMC's
          step size is switched off here and below: one step size per temperature.
        - a step method class: it moves the variables that it can, PyMC's default assignment the others.
        - a callable ``kernel(model) -> step, or sequence of steps``, called with a tempered view of the model; it
          must pass ``model=model`` to the step methods (or build them inside ``with model``), and may name the
          user's own variables. Variables that it leaves out get PyMC's default assignment.
        - a sequence of classes and callables, run one after another.

    Returns
    -------
    list of FrozenStep
        In the order in which they run forward; the reversal runs them in the opposite order, each reversed.

    Raises
    ------
    UnsupportedKernelError
        If a kernel cannot be frozen or reversed, or does not fit the model.
    """
    point = {
        name: np.zeros(shape, dtype=dtype)
        for name, shape, dtype in zip(layout.names, layout.shapes, layout.dtypes, strict=True)
    }
    tempered = TemperedModel.view(model, density, point)
    mode = compile_mode()
    flags = {} if mode is None else {"mode": mode}
    with pytensor.config.change_flags(**flags), tempered:
        steps = _flatten(_build(kernel, tempered))
        for step in steps:
            _refuse_unsuitable(step)
        free = [value for value in tempered.value_vars if not any(value in step.vars for step in steps)]
        if free:
            steps += _assign_default(tempered, free)
        return [_wrap(step, density) for step in steps]


def _build(kernel: Any, tempered: TemperedModel) -> list[Any]:
    """Return step objects for a kernel as the user gave it; variables may be left over."""
    if kernel is None:
        return []
    if isinstance(kernel, str):
        return _build_named(kernel, tempered)
    if isinstance(kernel, type) and issubclass(kernel, BlockedStep):
        return [_build_class(kernel, tempered, taken=[])]
    if isinstance(kernel, BlockedStep | CompoundStep):
        raise UnsupportedKernelError(
            f"kernel is a {type(kernel).__name__} object, bound to the density of your model, which cannot be "
            f"tempered. Pass the class, or a callable that builds it: kernel=lambda model: "
            f"pm.{type(kernel).__name__}(..., model=model)."
        )
    if isinstance(kernel, Sequence):
        steps: list[Any] = []
        for part in kernel:
            if isinstance(part, type) and issubclass(part, BlockedStep):
                taken = [value for step in _flatten(steps) for value in step.vars]
                steps.append(_build_class(part, tempered, taken))
            else:
                steps += _build(part, tempered)
        return steps
    if callable(kernel):
        built = kernel(tempered)
        built = list(built) if isinstance(built, list | tuple) else [built]
        if any(not isinstance(step, BlockedStep | CompoundStep) for step in built):
            raise UnsupportedKernelError(
                f"The kernel callable must return step methods but returned {built!r}. {ALLOWED}"
            )
        return built
    raise UnsupportedKernelError(f"kernel has the value {kernel!r}. {ALLOWED}")


def _build_named(kernel: str, tempered: TemperedModel) -> list[Any]:
    if kernel not in GRADIENT_KERNELS:
        raise UnsupportedKernelError(f"kernel has the value {kernel!r}. {ALLOWED}")
    discrete = [value.name for value in tempered.discrete_value_vars]
    if discrete:
        raise UnsupportedKernelError(
            f"kernel={kernel!r} moves continuous variables only, but {', '.join(discrete)} are discrete. Leave "
            "kernel=None: PyMC then assigns a step method to each variable."
        )
    options = {"step_rand": None} if kernel == "hmc" else {}
    return [GRADIENT_KERNELS[kernel](vars=tempered.value_vars, model=tempered, **options)]


def _build_class(kind: type, tempered: TemperedModel, taken: Sequence[Variable]) -> Any:
    _refuse_class(kind)
    variables = [value for value in tempered.value_vars if value not in taken and _can_move(kind, value, tempered)]
    if not variables:
        raise UnsupportedKernelError(
            f"{kind.__name__} can move none of the variables "
            f"{', '.join(value.name for value in tempered.value_vars if value not in taken)}. {ALLOWED}"
        )
    return kind(vars=variables, model=tempered)


def _can_move(kind: Any, value: Variable, tempered: TemperedModel) -> bool:
    has_gradient = value not in tempered.discrete_value_vars and _has_gradient(tempered, value)
    (competence,) = kind._competence([tempered.values_to_rvs[value]], [has_gradient])
    return bool(competence != Competence.INCOMPATIBLE)


def _has_gradient(tempered: TemperedModel, value: Variable) -> bool:
    try:
        pytensor.grad(tempered.logp(), value, disconnected_inputs="ignore")
    except (NotImplementedError, NullTypeGradError):
        return False
    return True


def _assign_default(tempered: TemperedModel, free: Sequence[Variable]) -> list[Any]:
    """Assign step methods as ``pm.sample`` does, to the variables ``free``."""
    _, assigned = assign_step_methods(tempered)
    steps = []
    for kind, variables in assigned.items():
        chosen = [value for value in variables if value in free]
        if chosen:
            _refuse_class(kind)
            steps.append(kind(vars=chosen, model=tempered))
    return _flatten(steps)


def _flatten(steps: Sequence[Any]) -> list[Any]:
    return [leaf for step in steps for leaf in (_flatten(step.methods) if isinstance(step, CompoundStep) else [step])]


def _refuse_class(kind: type) -> None:
    """Refuse a step method whose law is not known to be reversible."""
    if kind in WRAPPERS:
        return
    reason = HISTORY_OR_POPULATION.get(kind.__name__, "its transitions are not known to be reversible")
    raise UnsupportedKernelError(f"{kind.__name__} cannot be run in reverse: {reason}. {ALLOWED}")


def _refuse_unsuitable(step: Any) -> None:
    """Refuse an object whose options make it irreversible or impossible to freeze."""
    kind = type(step)
    _refuse_class(kind)
    replaced = {"step", "astep"} & set(vars(step)) - ({"astep"} if kind is pm.CategoricalGibbsMetropolis else set())
    if replaced:
        raise UnsupportedKernelError(
            f"The {kind.__name__} object has its own {', '.join(sorted(replaced))}, whose reversal is not known. "
            "Leave the methods of PyMC's step methods as they are."
        )
    if kind in (pm.NUTS, pm.HamiltonianMC):
        _refuse_gradient_options(step)
    elif kind is pm.Metropolis:
        _refuse_proposal(step)
    elif kind is pm.CategoricalGibbsMetropolis and _function_of(step.astep) is not kind.astep_unif:
        # Its acceptance ratio uses renormalised probabilities: the kernel does not leave its target invariant.
        raise UnsupportedKernelError(
            'CategoricalGibbsMetropolis with proposal="proportional" does not leave its target invariant (PyMC '
            'renormalises the probabilities before it accepts). Use proposal="uniform".'
        )


def _function_of(method: Any) -> Any:
    return getattr(method, "__func__", method)


def _refuse_gradient_options(step: Any) -> None:
    name = type(step).__name__
    if step._step_rand is jittered_step_size:
        step._step_rand = None  # PyMC's default for HMC; annealing uses one step size at each temperature
    if step._step_rand is not None:
        raise UnsupportedKernelError(
            f"{name} has step_rand={step._step_rand!r}: a step size that changes by a rule of its own cannot be "
            "reversed. Set step_rand=None."
        )
    kind = type(step.potential)
    if kind is not quadpotential.QuadPotentialDiagAdapt and kind not in FIXED_METRICS:
        raise UnsupportedKernelError(
            f"{name} has potential={kind.__name__}, which cannot be frozen and interpolated over temperatures. Leave "
            "potential out (a diagonal metric is adapted), or fix the metric: scaling=variances, is_cov=True."
        )


def _refuse_proposal(step: Any) -> None:
    proposal = step.proposal_dist
    kind = type(proposal)
    if kind is metropolis.MultivariateNormalProposal:
        is_diagonal = not np.any(proposal.chol - np.diag(np.diag(proposal.chol)))
        if is_diagonal or not step.elemwise_update:
            return
        raise UnsupportedKernelError(
            "Metropolis with a covariance matrix S accepts coordinates one at a time; correlated proposals are then "
            "neither symmetric nor reversible. Give S as a vector of standard deviations."
        )
    if kind not in SYMMETRIC_PROPOSALS:
        names = ", ".join(each.__name__ for each in SYMMETRIC_PROPOSALS)
        raise UnsupportedKernelError(
            f"Metropolis has proposal_dist {kind.__name__}, which is not known to be symmetric. Use one of {names}."
        )


def _wrap(step: Any, density: TemperedDensity) -> FrozenStep:
    """Wrap a step, or refuse it if it was not built on the tempered density."""
    if isinstance(step, pm.NUTS | pm.HamiltonianMC):
        belongs = isinstance(step._logp_dlogp_func, TemperedGradient)
    else:
        function = step.fs[0].f if hasattr(step, "fs") else _compiled_density(step)
        belongs = density.controls.beta_variable in function.get_shared()
    if not belongs:
        raise UnsupportedKernelError(
            f"The {type(step).__name__} that the kernel callable returned was not built on the model it was called "
            "with, so its density cannot be tempered. Pass that model on: kernel=lambda model: "
            f"pm.{type(step).__name__}(..., model=model)."
        )
    return WRAPPERS[type(step)](step)


def _compiled_density(step: Any) -> Any:
    return step.logp if isinstance(step, pm.Slice) else step.delta_logp


def kernel_name(steps: Sequence[FrozenStep]) -> str:
    """Return the name of a kernel for the report, such as "NUTS" or "Compound[NUTS, BinaryGibbsMetropolis]"."""
    names = list(dict.fromkeys(step.name for step in steps))
    return names[0] if len(names) == 1 else f"Compound[{', '.join(names)}]"
