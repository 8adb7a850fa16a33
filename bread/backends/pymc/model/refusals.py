"""What cannot be simulated or annealed exactly is refused here, before any computation, with the way out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

import numpy as np
import pytensor
from numpy.typing import NDArray
from pytensor.graph.traversal import ancestors

from bread.argument_rules import require_call
from bread.backends.pymc.density.compiling import detach, interpreted, is_generator
from bread.backends.pymc.internals import lacks_random
from bread.backends.pymc.model.initial_point import checked_initial_point
from bread.backends.pymc.model.placeholders import refuse_placeholders
from bread.backends.pymc.model.reading import evaluate
from bread.backends.support.independence import split_name
from bread.errors import UnsupportedKernelError, UnsupportedModelError

WITH_SIMULATOR = (
    "simulator= with a function (rng, data) -> (parameters, observed), which anneals the model from a reference "
    "density (path='reference')"
)
AT_DRAWS = "simulate_from='posterior', which simulates data at draws of the posterior and draws from no prior"
RESERVED_NAMES = ("simulation", "chain", "draw", "knot", "direction")


def refuse_unsupported(
    model: Any, kernel: Any, *, has_simulator: bool = False, localised: Sequence[str] = (), density_only: bool = False
) -> dict[str, NDArray[Any]]:
    """Refuse a model or a kernel that cannot be annealed exactly; return the model's initial point.

    Parameters
    ----------
    model : pymc.Model
    kernel : object
        ``OpenOptions.kernel``.
    has_simulator : bool
        Whether the user draws parameters and data: what has a density but cannot be drawn from is then allowed.
    localised : sequence of str
        Free variables whose priors will be replaced: they may be improper.
    density_only : bool
        Whether nothing but the density on the model's own data will be asked for.

    Raises
    ------
    UnsupportedModelError
        Names the variable, the rule and the way out.
    UnsupportedKernelError
        For a discrete free variable with a kernel that needs gradients of all variables.
    """
    _refuse_structure(model, has_simulator, density_only)
    _refuse_single_precision(model)
    _refuse_names(model)
    replaced = {variable.owner for variable in model.free_RVs if variable.name in localised}
    for variable in model.basic_RVs:
        _refuse_operations(model, variable, has_simulator, replaced, density_only)
    if not density_only:
        _refuse_other_data(model)
    _refuse_kernel(model, kernel)
    with interpreted():
        _refuse_random_shapes(model)
        refuse_placeholders(model)
    return checked_initial_point(model)


def _refuse_other_data(model: Any) -> None:
    """Refuse models whose data cannot be replaced by simulated ones."""
    _refuse_data_dependence(model)
    _refuse_shared_generators(model)


def has_own_data_only(model: Any) -> bool:
    """Return whether a model has a density on no other data than its own, so that nobody has proved it yet."""
    try:
        for variable in model.basic_RVs:
            _refuse_operations(model, variable, True, set(), False)
        _refuse_other_data(model)
    except UnsupportedModelError:
        return True
    return not model.observed_RVs


def refuse_paths(model: Any, localised: Sequence[str]) -> dict[str, str]:
    """Return the kinds of path that cannot start at the prior of a model that the user simulates, and why."""
    reasons = [
        f"pm.Potential {variable.name!r} belongs neither to the prior nor to the likelihood, which must be apart."
        for variable in model.potentials
    ]
    reasons += [
        f"The prior of {variable.name!r} is improper, so that no path can start there."
        for variable in model.free_RVs
        if variable.name not in localised and any(_is_improper(node.op) for node in _nodes(variable))
    ]
    return {"prior": f"{reasons[0]} Use path='reference'."} if reasons else {}


def _refuse_structure(model: Any, has_simulator: bool, density_only: bool) -> None:
    if model.potentials and not (model.observed_RVs or density_only):
        raise UnsupportedModelError(
            f"The model has no observed variable, but pm.Potential {_potentials(model)}, which has a density and no "
            "simulator: data like yours cannot be drawn. Write the likelihood as an observed variable (pm.CustomDist "
            "with logp= and random=)."
        )
    if not (model.observed_RVs or density_only):
        raise UnsupportedModelError(
            "The model has no observed variable, so that there is no posterior to anneal to. Pass observed= to at "
            f"least one variable of the model (free variables: {', '.join(v.name for v in model.free_RVs) or 'none'})."
        )
    if not model.free_RVs:
        raise UnsupportedModelError("The model has no free variable: there is nothing to infer.")
    if model.potentials and not has_simulator:
        raise UnsupportedModelError(
            f"pm.Potential {_potentials(model)} changes the density but not the simulator: parameters and data cannot "
            "be drawn jointly. Write the term as a distribution: a prior (pm.Truncated, transform=, pm.CustomDist with "
            f"dist=) or an observed variable. Or use {AT_DRAWS}; or draw both yourself: {WITH_SIMULATOR}."
        )
    for variable in (*model.basic_RVs, *model.deterministics):
        if not hasattr(variable.type, "broadcastable") or not hasattr(variable.type, "shape"):
            raise UnsupportedModelError(
                f"Variable {variable.name!r} is of type {variable.type}; only dense PyTensor tensors are supported. "
                "Write the model with pm.* distributions (not pymc.dims, not sparse)."
            )


def _potentials(model: Any) -> str:
    return ", ".join(repr(variable.name) for variable in model.potentials)


def _refuse_single_precision(model: Any) -> None:
    """Refuse what PyTensor would compute with 7 digits: sums of log densities lose whole nats."""
    narrow = [v.name for v in model.basic_RVs if v.dtype.startswith("float") and v.dtype != "float64"]
    if pytensor.config.floatX != "float64" or narrow:
        where = f"variable {narrow[0]!r} is in" if narrow else "pytensor.config.floatX asks for"
        raise UnsupportedModelError(
            f"Models are computed in double precision only, but {where} single precision: log weights would be off by "
            "its rounding. Set pytensor.config.floatX = 'float64' before the model is built, and give no dtype; "
            "draws made in single precision may be passed as posterior=."
        )


def _refuse_names(model: Any) -> None:
    dims = {dim for names in model.named_vars_to_dims.values() for dim in (names or ()) if dim is not None}
    for kind, names in (("variable", set(model.named_vars)), ("dimension", dims | set(model.coords))):
        for name in RESERVED_NAMES:
            if name in names:
                raise UnsupportedModelError(
                    f"The model has a {kind} named {name!r}, which the report uses for a dimension of its own "
                    f"(reserved: {', '.join(RESERVED_NAMES)}). Rename it in the model, for example to {name + '_'!r}."
                )


def _nodes(variable: Any) -> Iterator[Any]:
    """Yield the nodes above a variable, inner graphs included."""
    graphs, seen = [[variable]], set()
    while graphs:
        for ancestor in ancestors(graphs.pop()):
            if ancestor.owner is None or ancestor.owner in seen:
                continue
            seen.add(ancestor.owner)
            yield ancestor.owner
            inner = getattr(ancestor.owner.op, "fgraph", None)
            if inner is not None:
                graphs.append(list(inner.outputs))


def _is_improper(op: Any) -> bool:
    from pymc.distributions.continuous import FlatRV, HalfFlatRV

    return isinstance(op, FlatRV | HalfFlatRV)


def _refuse_operations(model: Any, variable: Any, has_simulator: bool, replaced: Set[Any], density_only: bool) -> None:
    from pymc.distributions.custom import CustomDistRV
    from pymc.distributions.distribution import PartialObservedRV
    from pymc.distributions.simulator import SimulatorRV
    from pymc.variational.minibatch_rv import MinibatchRandomVariable

    name = repr(variable.name)
    if any(is_generator(ancestor) for ancestor in ancestors([model.rvs_to_values[variable]])):
        raise UnsupportedModelError(
            f"Not certified: the data of {name} are drawn anew at each evaluation (pm.Minibatch), so that its log "
            "density is random. Pass the whole data to the model that is checked, without pm.Minibatch and "
            "total_size=; draws of the other model may be passed as posterior=."
        )
    for node in _nodes(variable):
        op = node.op
        if _is_improper(op) and not has_simulator and node not in replaced:
            raise UnsupportedModelError(
                f"Variable {name} has or depends on an improper prior (pm.Flat or pm.HalfFlat), which cannot be drawn "
                "from. Give it a proper prior, such as pm.Normal or pm.HalfNormal with a wide scale; or use "
                f"{AT_DRAWS}; or, for a hyperparameter, simulate_from='localised', which puts a density fitted to "
                "your data in its place."
            )
        if isinstance(op, SimulatorRV):
            raise UnsupportedModelError(
                f"Variable {name} is a pm.Simulator: its log density is itself random. "
                "Write the likelihood as a distribution with a density (pm.CustomDist with dist= or logp=)."
            )
        if isinstance(op, MinibatchRandomVariable) and not density_only:
            raise UnsupportedModelError(
                f"Variable {name} has total_size= (minibatches): its density is rescaled and has no simulator. "
                "Pass all data and leave total_size out."
            )
        if isinstance(op, PartialObservedRV) and not density_only:
            raise UnsupportedModelError(
                f"The data of {variable.name.removesuffix('_unobserved')!r} are partially observed (NaN or masked "
                "values), and PyMC has one density of what is there and what is missing. Leave incomplete rows out, or "
                "give their observed parts variables of their own."
            )
        if isinstance(op, CustomDistRV) and lacks_random(op) and not has_simulator:
            raise UnsupportedModelError(
                f"Variable {name} is or depends on a pm.CustomDist (DensityDist) without random=: it cannot be "
                f"simulated. Pass random=, or define it by dist=; or pass {WITH_SIMULATOR}."
            )


def _ancestors_by_value(variables: list[Any]) -> set[Any]:
    """Return the variables whose values (not only whose shapes) enter."""
    from pytensor.tensor.shape import Shape, Shape_i

    seen: set[Any] = set()
    stack = list(variables)
    while stack:
        variable = stack.pop()
        if variable in seen:
            continue
        seen.add(variable)
        if variable.owner is not None and not isinstance(variable.owner.op, Shape | Shape_i):
            stack.extend(variable.owner.inputs)
    return seen


def _refuse_data_dependence(model: Any) -> None:
    observed = set(model.observed_RVs)
    for variable in model.free_RVs:
        above = sorted(v.name for v in _ancestors_by_value([variable]) & observed)
        if above:
            raise UnsupportedModelError(
                f"The prior of free variable {variable.name!r} depends on the observed variable {above[0]!r}: "
                "prior and likelihood cannot be separated. Make the dependence go through a free variable."
            )
    entering = _ancestors_by_value(list(model.basic_RVs))
    owners: dict[Any, str] = {}
    for variable in model.observed_RVs:
        value = model.rvs_to_values[variable]
        if owners.setdefault(value, variable.name) != variable.name:
            raise UnsupportedModelError(
                f"{owners[value]!r} and {variable.name!r} have one variable for their data ({value.name!r}), for which "
                "PyMC has no log density. Pass each of them a pm.Data, or an array, of its own."
            )
        if value in entering:
            raise UnsupportedModelError(
                f"The data of {variable.name!r} ({value.name!r}) also enter the model as a covariate, so that they "
                "cannot be replaced by simulated data. Pass the covariate as separate pm.Data."
            )


def _refuse_shared_generators(model: Any) -> None:
    basic = set(model.basic_RVs)
    owner_of: dict[Any, str] = {}
    for variable in model.basic_RVs:
        stack, seen = list(variable.owner.inputs), set()
        while stack:
            ancestor = stack.pop()
            if ancestor in seen or ancestor in basic:
                continue
            seen.add(ancestor)
            if is_generator(ancestor) and ancestor.owner is None:
                other = owner_of.setdefault(ancestor, variable.name)
                if other != variable.name:
                    raise UnsupportedModelError(
                        f"Variables {other!r} and {variable.name!r} use the same random generator (rng=), so that "
                        "their draws would not be independent. Leave rng= out."
                    )
            if ancestor.owner is not None:
                stack.extend(ancestor.owner.inputs)


def _refuse_kernel(model: Any, kernel: Any) -> None:
    kernel, _ = split_name(kernel)
    if not isinstance(kernel, str):
        for part in kernel if isinstance(kernel, Sequence) else (kernel,):
            if callable(part) and not isinstance(part, type):
                require_call("kernel", part, ("model",))
        return
    discrete = [v.name for v in model.free_RVs if np.dtype(model.rvs_to_values[v].type.dtype).kind in "iub"]
    if kernel in ("nuts", "hmc") and discrete:
        raise UnsupportedKernelError(
            f"kernel={kernel!r} needs gradients, but the free variable {discrete[0]!r} is discrete. Leave kernel= out "
            "(PyMC then assigns a step method to each variable), or sum the variable out of the model."
        )


def _refuse_random_shapes(model: Any) -> None:
    from pymc.exceptions import NotConstantValueError
    from pymc.pytensorf import constant_fold

    variables = list(model.basic_RVs)
    graph = detach(variables, constant=True)
    for variable, copy in zip(variables, graph.outputs, strict=True):
        try:
            shape = tuple(int(length) for length in constant_fold(tuple(copy.shape)))
        except NotConstantValueError:
            raise UnsupportedModelError(
                f"The shape of {variable.name!r} depends on random values: states and data would differ in size from "
                "draw to draw. Give it a fixed shape."
            ) from None
        if variable in model.observed_RVs:
            value = evaluate(model.rvs_to_values[variable])
            if shape != value.shape:
                raise UnsupportedModelError(
                    f"Draws of {variable.name!r} have shape {shape}, its data {value.shape}: simulated data would not "
                    "be like the real data. Give data and parameters of the distribution the same shape."
                )
