"""How graphs are compiled: one PyTensor mode for the whole backend, and copies of graphs that nothing can change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.replace import graph_replace
from pytensor.tensor.random.type import RandomGeneratorType

try:  # PyTensor 3
    from pytensor.graph.traversal import graph_inputs
except ImportError:  # PyTensor 2
    from pytensor.graph.basic import graph_inputs  # type: ignore[attr-defined, no-redef]


def compile_mode() -> str | None:
    """Return the PyTensor mode in which every function of this backend is compiled.

    Where PyTensor's default is Numba (PyTensor 3), the C linker is used instead if there is a C++ compiler: the
    first call of a gradient then takes seconds, where just-in-time compilation took ten times as long (a
    logistic regression: 4 s against 42 s). A mode or linker that the user chose (``PYTENSOR_FLAGS``,
    ``pytensor.config``) is respected.

    Returns
    -------
    str or None
        A value for ``mode=`` of ``pytensor.function`` and of PyMC's functions; None stands for the default.
    """
    is_default = pytensor.config.mode == "Mode" and pytensor.config.linker == "auto"
    return "CVM" if is_default and pytensor.config.cxx else None


def compile_function(inputs: Sequence[Any], outputs: Sequence[Any]) -> Callable[..., list[Any]]:
    """Compile ``outputs`` as a pure function of ``inputs``; random generators among the inputs are used up."""
    arguments = [
        pytensor.In(variable, mutable=True) if isinstance(variable.type, RandomGeneratorType) else variable
        for variable in inputs
    ]
    function: Callable[..., list[Any]] = pytensor.function(
        arguments, list(outputs), mode=compile_mode(), on_unused_input="ignore"
    )
    return function


@dataclass(frozen=True)
class DetachedGraph:
    """Copies of graphs that no later change of the user's model can reach.

    Attributes
    ----------
    outputs : list of Variable
        The copies; the variables between are copies too.
    generators : list of Variable
        One input for every random generator of the graphs, in a fixed order.
    """

    outputs: list[Any]
    generators: list[Any]


def is_generator(variable: Any) -> bool:
    """Return whether a variable is a random generator."""
    return isinstance(variable.type, RandomGeneratorType)


def detach(outputs: Sequence[Any], *, constant: bool = False) -> DetachedGraph:
    """Copy graphs: shared random generators become inputs, other shared variables keep their present value.

    Parameters
    ----------
    outputs : sequence of Variable
    constant : bool
        Whether shared arrays become constants (for the analysis of shapes) or private shared variables (cheaper
        to compile). Lengths of dimensions and other whole scalars become constants in any case.
    """
    replacements: dict[Any, Any] = {}
    generators = []
    for variable in graph_inputs(outputs):
        if not isinstance(variable, SharedVariable) or variable in replacements:
            continue
        if is_generator(variable):
            replacements[variable] = variable.type()
            generators.append(replacements[variable])
        else:
            replacements[variable] = _copy_shared(variable, constant)
    if not replacements:
        return DetachedGraph(list(outputs), [])
    return DetachedGraph(graph_replace(list(outputs), replacements, strict=False), generators)


def _copy_shared(variable: SharedVariable, constant: bool) -> Any:
    value = variable.get_value(borrow=False)
    is_length = np.ndim(value) == 0 and np.issubdtype(np.asarray(value).dtype, np.integer)
    if constant or is_length:
        return variable.type.make_constant(value, name=variable.name)
    shape = getattr(variable.type, "shape", None)
    if shape is not None and isinstance(value, np.ndarray):
        return pytensor.shared(value, name=variable.name, shape=shape)
    return pytensor.shared(value, name=variable.name)
