"""How graphs are compiled, and copies of graphs that nothing can change.

Two modes serve the whole backend: densities and gradients, called millions of times, are compiled by
`compile_mode`; what is called once a draw or once a model is interpreted (`interpreted`, `interpret_function`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import cloudpickle
import numpy as np
import pytensor
from pytensor.compile.mode import Mode
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.traversal import graph_inputs, io_toposort
from pytensor.tensor.random.basic import BetaBinomialRV, BinomialRV, MultinomialRV
from pytensor.tensor.random.type import RandomGeneratorType

from bread.backends.pymc.density.pytensor_fixes.car import CONDITIONAL
from bread.backends.pymc.density.pytensor_fixes.linear_algebra import IN_C
from bread.backends.pymc.density.pytensor_fixes.number_by_number import ARRAYS, COUNTS
from bread.backends.pymc.density.pytensor_fixes.side_by_side import with_modules_side_by_side
from bread.backends.pymc.density.pytensor_fixes.truncated import TRUNCATED


def compile_mode() -> str | None:
    """Return the PyTensor mode in which densities and gradients are compiled.

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
    if not is_default or not pytensor.config.cxx:
        return None
    with warnings.catch_warnings():
        # Looked up once and kept; PyTensor 3 warns if it finds no library to link to, when first asked.
        warnings.simplefilter("ignore")
        _ = pytensor.config.blas__ldflags
    return "CVM"


def density_mode() -> Any:
    """Return that mode with modules compiled side by side, and in C the linear algebra that PyTensor leaves to Python.

    The default, or what the user chose, is returned as it is where it compiles no C code.
    """
    plain = compile_mode()
    mode = with_modules_side_by_side(plain)
    return mode if mode is plain else mode.register(IN_C)


@contextmanager
def interpreted() -> Iterator[None]:
    """Switch the C++ compiler off for functions that are built and called a few times.

    Building a function invokes the compiler even for an interpreted one (to fold constants). On models with a
    Cholesky factor this cuts the time to the first draw from 8-14 s to 0.3 s, at two or three times the cost of a
    later draw (0.2-2 ms).
    """
    import_module("pytensor.link.c.cvm")  # first imported without a compiler, it would stay switched off
    with pytensor.config.change_flags(cxx=""):
        yield


class InterpretedFunction:
    """A PyTensor function that no process compiles: a copy sent to a worker is interpreted there too.

    Unpickled as it is, it would be compiled in every worker: half a minute on a first run, and draws that differ
    in the last bit from those of the parent.
    """

    def __init__(self, function: Callable[..., list[Any]]) -> None:
        self._function = function

    def __call__(self, *arguments: Any) -> list[Any]:
        """Return the outputs."""
        return self._function(*arguments)

    def __getstate__(self) -> bytes:
        state: bytes = cloudpickle.dumps(self._function)
        return state

    def __setstate__(self, state: bytes) -> None:
        with interpreted():
            self._function = cloudpickle.loads(state)


def compile_density(vector: Any, outputs: Sequence[Any], check_bounds: bool) -> Callable[..., Any]:
    """Compile ``outputs`` as a function of ``vector``, whose argument must be of the right type: it is not checked.

    Parameters
    ----------
    vector : Variable
    outputs : sequence of Variable
    check_bounds : bool
        ``pymc.Model.check_bounds`` of the model that the graphs come from.
    """
    from pymc import Model
    from pymc.pytensorf import compile as compile_graph

    with Model(check_bounds=check_bounds):
        function: Callable[..., Any] = compile_graph(
            [vector], list(outputs), mode=density_mode(), on_unused_input="ignore"
        )
    function.trust_input = True  # type: ignore[attr-defined]
    return function


def interpret_function(
    inputs: Sequence[Any], outputs: Sequence[Any], *, without: Sequence[str] = (), rewrites: Sequence[Any] = ()
) -> InterpretedFunction:
    """Build ``outputs`` as a pure function of ``inputs``; random generators among the inputs are used up.

    All rewrites that make an expression stable run; only the compiler and the fusion of loops, which pays when
    compiled, are left out, and rewrites named in ``without``. Draws are the same whatever PyTensor's default mode is.
    ``rewrites`` are pairs of one more and its position.
    """
    arguments = [pytensor.In(variable, mutable=True) if is_generator(variable) else variable for variable in inputs]
    mode = (
        Mode("vm", "fast_run").excluding("fusion", *without).register(ARRAYS, COUNTS, TRUNCATED, CONDITIONAL, *rewrites)
    )
    outputs = _with_whole_counts(outputs)
    with interpreted():
        return InterpretedFunction(pytensor.function(arguments, list(outputs), mode=mode, on_unused_input="ignore"))


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


def first_line(error: Exception) -> str:
    """Return type and message of an exception without PyTensor's description of the graph."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].rstrip('.')}" if lines else type(error).__name__


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
    return DetachedGraph(replace(outputs, replacements), generators)


def rewritten(outputs: Sequence[Any], rewrite: Any) -> list[Any]:
    """Return copies of graphs after a rewrite, of the same inputs."""
    graph = FunctionGraph(outputs=list(outputs), clone=True, copy_inputs=False)
    rewrite.rewrite(graph)
    return list(graph.outputs)


def replace(outputs: Sequence[Any], replacements: Mapping[Any, Any]) -> list[Any]:
    """Copy graphs with some variables replaced by others of the same type.

    Replacements that are not met are ignored, and so is what lies above replaced variables only
    (PyTensor 2's ``graph_replace`` raises there).
    """
    new = dict(replacements)
    for node in io_toposort(list(replacements), list(outputs)):
        inputs = [new.get(variable, variable) for variable in node.inputs]
        if any(one is not other for one, other in zip(inputs, node.inputs, strict=True)):
            for variable, copy in zip(node.outputs, node.clone_with_new_inputs(inputs).outputs, strict=True):
                new.setdefault(variable, copy)
    return [new.get(variable, variable) for variable in outputs]


def _with_whole_counts(outputs: Sequence[Any]) -> list[Any]:
    """Cast numbers of trials to integers: NumPy's generators refuse floats, as which ``pm.Data`` stores a number."""
    new: dict[Any, Any] = {}
    for node in io_toposort([], list(outputs)):
        inputs = [new.get(variable, variable) for variable in node.inputs]
        if isinstance(node.op, BinomialRV | BetaBinomialRV | MultinomialRV) and inputs[2].type.dtype.startswith(
            "float"
        ):
            inputs[2] = inputs[2].astype("int64")  # the inputs are: generator, size, number of trials, ...
            copies = node.op.make_node(*inputs).outputs
        elif any(one is not other for one, other in zip(inputs, node.inputs, strict=True)):
            copies = node.clone_with_new_inputs(inputs).outputs
        else:
            continue
        new.update(zip(node.outputs, copies, strict=True))
    return [new.get(variable, variable) for variable in outputs]


def _copy_shared(variable: SharedVariable, constant: bool) -> Any:
    value = variable.get_value(borrow=False)
    is_length = np.ndim(value) == 0 and np.issubdtype(np.asarray(value).dtype, np.integer)
    if constant or is_length:
        return variable.type.make_constant(value, name=variable.name)
    shape = getattr(variable.type, "shape", None)
    if shape is not None and isinstance(value, np.ndarray):
        return pytensor.shared(value, name=variable.name, shape=shape)
    return pytensor.shared(value, name=variable.name)
