"""The step methods of PyMC that move the chains, built on the tempered density from what the user names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor
from pymc.sampling.mcmc import assign_step_methods
from pymc.step_methods.compound import BlockedStep, Competence, CompoundStep
from pytensor.gradient import NullTypeGradError
from pytensor.graph.basic import Variable

from bread.argument_rules import received
from bread.backends.pymc import internals
from bread.backends.pymc.density.compiling import compile_mode
from bread.backends.pymc.density.density import TemperedDensity
from bread.backends.pymc.density.gradients import TemperedGradient
from bread.backends.pymc.density.tempered_model import TemperedModel
from bread.backends.pymc.kernels.kernel_refusals import ALLOWED, WRAPPERS, refuse_class, refuse_unsuitable
from bread.backends.pymc.kernels.stepping import AsItIsStep, FrozenStep
from bread.backends.pymc.model.layout import StateLayout
from bread.errors import UnsupportedKernelError

GRADIENT_KERNELS: dict[str, type] = {"nuts": pm.NUTS, "hmc": pm.HamiltonianMC}


def build_steps(
    model: pm.Model, layout: StateLayout, density: TemperedDensity, kernel: Any, *, as_it_is: bool = False
) -> list[FrozenStep]:
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
    as_it_is : bool, default False
        Take any step method: what is not known to be reversible with frozen settings runs as it is (`AsItIsStep`).

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
        steps = _flatten(_build(kernel, tempered, as_it_is))
        for step in steps if not as_it_is else ():
            refuse_unsuitable(step)
        free = [value for value in tempered.value_vars if not any(value in step.vars for step in steps)]
        if free:
            steps += _assign_default(tempered, free, as_it_is)
        return [_wrap(step, density, as_it_is) for step in steps]


def _build(kernel: Any, tempered: TemperedModel, as_it_is: bool) -> list[Any]:
    """Return step objects for a kernel as the user gave it; variables may be left over."""
    if kernel is None:
        return []
    if isinstance(kernel, str):
        return _build_named(kernel, tempered)
    if isinstance(kernel, type) and issubclass(kernel, BlockedStep):
        return [_build_class(kernel, tempered, [], as_it_is)]
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
                steps.append(_build_class(part, tempered, taken, as_it_is))
            else:
                steps += _build(part, tempered, as_it_is)
        return steps
    if callable(kernel):
        built = kernel(tempered)
        built = list(built) if isinstance(built, list | tuple) else [built]
        if any(not isinstance(step, BlockedStep | CompoundStep) for step in built):
            raise UnsupportedKernelError(
                f"The kernel callable must return step methods but returned {received(built)}. {ALLOWED}"
            )
        return built
    raise UnsupportedKernelError(f"kernel has the value {received(kernel)}. {ALLOWED}")


def _build_named(kernel: str, tempered: TemperedModel) -> list[Any]:
    if kernel not in GRADIENT_KERNELS:
        raise UnsupportedKernelError(f"kernel has the value {received(kernel)}. {ALLOWED}")
    discrete = [value.name for value in tempered.discrete_value_vars]
    if discrete:
        raise UnsupportedKernelError(
            f"kernel={kernel!r} moves continuous variables only, but {', '.join(discrete)} are discrete. Leave "
            "kernel=None: PyMC then assigns a step method to each variable."
        )
    options = {"step_rand": None} if kernel == "hmc" else {}
    return [GRADIENT_KERNELS[kernel](vars=tempered.value_vars, model=tempered, **options)]


def _build_class(kind: type, tempered: TemperedModel, taken: Sequence[Variable], as_it_is: bool) -> Any:
    if not as_it_is:
        refuse_class(kind)
    variables = [value for value in tempered.value_vars if value not in taken and _can_move(kind, value, tempered)]
    if not variables:
        raise UnsupportedKernelError(
            f"{kind.__name__} can move none of the variables "
            f"{', '.join(value.name for value in tempered.value_vars if value not in taken)}. {ALLOWED}"
        )
    return kind(vars=variables, model=tempered)


def _can_move(kind: Any, value: Variable, tempered: TemperedModel) -> bool:
    has_gradient = value not in tempered.discrete_value_vars and _has_gradient(tempered, value)
    competence = internals.competence(kind, tempered.values_to_rvs[value], has_gradient)
    return bool(competence != Competence.INCOMPATIBLE)


def _has_gradient(tempered: TemperedModel, value: Variable) -> bool:
    try:
        pytensor.grad(tempered.logp(), value, disconnected_inputs="ignore")
    except (NotImplementedError, NullTypeGradError):
        return False
    return True


def _assign_default(tempered: TemperedModel, free: Sequence[Variable], as_it_is: bool) -> list[Any]:
    """Assign step methods as ``pm.sample`` does, to the variables ``free``."""
    _, assigned = assign_step_methods(tempered)
    steps = []
    for kind, variables in assigned.items():
        chosen = [value for value in variables if value in free]
        if chosen:
            if not as_it_is:
                refuse_class(kind, ", ".join(f"'{tempered.values_to_rvs[value].name}'" for value in chosen))
            steps.append(kind(vars=chosen, model=tempered))
    return _flatten(steps)


def _flatten(steps: Sequence[Any]) -> list[Any]:
    return [leaf for step in steps for leaf in (_flatten(step.methods) if isinstance(step, CompoundStep) else [step])]


def _wrap(step: Any, density: TemperedDensity, as_it_is: bool) -> FrozenStep:
    """Wrap a step, or refuse it if it was not built on the tempered density."""
    is_known = not as_it_is or _is_suitable(step)
    if isinstance(step, pm.NUTS | pm.HamiltonianMC):
        belongs = isinstance(internals.gradient_of(step), TemperedGradient)
    elif is_known:
        function = step.fs[0].f if hasattr(step, "fs") else _compiled_density(step)
        belongs = density.controls.beta_variable in function.get_shared()
    else:
        belongs = _may_use(step, density.controls.beta_variable)
    if not belongs:
        raise UnsupportedKernelError(
            f"The {type(step).__name__} that the kernel callable returned was not built on the model it was called "
            "with, so its density cannot be tempered. Pass that model on: kernel=lambda model: "
            f"pm.{type(step).__name__}(..., model=model)."
        )
    return WRAPPERS[type(step)](step) if is_known else AsItIsStep(step)


def _is_suitable(step: Any) -> bool:
    try:
        refuse_unsuitable(step)
    except UnsupportedKernelError:
        return False
    return True


def _may_use(step: Any, shared: Any) -> bool:
    """Return whether a compiled function among the attributes of a step has the shared variable, or there is none."""
    functions = [getattr(value, "f", value) for value in vars(step).values()]
    found = [function.get_shared() for function in functions if hasattr(function, "get_shared")]
    return not found or any(shared in one for one in found)


def _compiled_density(step: Any) -> Any:
    return step.logp if isinstance(step, pm.Slice) else step.delta_logp


def kernel_name(steps: Sequence[FrozenStep]) -> str:
    """Return the name of a kernel for the report, such as "NUTS" or "Compound[NUTS, BinaryGibbsMetropolis]"."""
    names = list(dict.fromkeys(step.name for step in steps))
    return names[0] if len(names) == 1 else f"Compound[{', '.join(names)}]"
