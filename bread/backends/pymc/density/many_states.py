"""The log density at many states in one call.

A compiled density takes a microsecond for each of its fifty to a hundred operations, whatever they do; a vectorised
one, of arrays with a leading axis, takes NumPy's few for thousands of states. What weighs draws evaluates thousands on
each data set.

Values differ from those of single calls by rounding. Some are taken singly too, and where one of these is another, or
the call fails, there is no answer, and all are taken singly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.logprob.utils import local_check_parameter_to_ninf_switch, local_remove_check_parameter
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.graph.rewriting.basic import in2out
from pytensor.graph.traversal import graph_inputs, io_toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.blockwise import Blockwise

from bread.backends.base import FloatArray
from bread.backends.pymc.density.compiling import InterpretedFunction, interpret_function, rewritten
from bread.backends.pymc.density.node_terms import BROKEN_REWRITES, parts_of
from bread.backends.pymc.density.pytensor_fixes.contiguous import CONTIGUOUS
from bread.backends.pymc.model.layout import StateLayout

FEWEST = 48  # states that a call for all of them is worth
MOST_NUMBERS = 30_000  # of states and data of one call of more states, so that what is computed stays in the cache
LARGEST = 2000  # numbers of a state and its data, or of an array that is computed of them: more keep a call busy
ALIKE = 1e-8  # relative to a value, and to 1
# Operations that PyTensor calls for one state after another, or not at all.
_BY_ITSELF = ("Scan", "IfElse", "OpFromGraph")
MOST_CALLS = 10  # of Python, 8 us each, that one operation may make for one state: a compiled density takes 100 us

Single = Callable[[FloatArray], tuple[float, float]]


class ManyStates:
    """Log prior and log likelihood of many states.

    Parameters
    ----------
    function : callable
        Of states (n, dim), and of values of ``shared``; returns both, each (n,) or a number.
    shared : sequence of SharedVariable
        What the terms depend on besides: data, mainly.
    size : int
        Numbers of one state and its data.
    """

    def __init__(self, function: InterpretedFunction, shared: Sequence[Any], size: int) -> None:
        self._function, self._shared = function, list(shared)
        self._rows = max(FEWEST, MOST_NUMBERS // size)

    def __call__(self, states: FloatArray, single: Single) -> FloatArray | None:
        """Return log prior and log likelihood (nats) at each state, shape (n, 2); None where to take them singly.

        Parameters
        ----------
        states : ndarray, shape (n, dim)
        single : callable
            Returns both at one state, shape (dim,).
        """
        if len(states) < FEWEST:
            return None
        try:
            parts = [self._called(states[low : low + self._rows]) for low in range(0, len(states), self._rows)]
            found = np.concatenate(parts)
            chosen = _to_compare(found)
            alone = np.array([single(states[row]) for row in chosen])
        except Exception:  # one state raises
            return None
        return found if _alike(found[chosen], alone) else None

    def _called(self, states: FloatArray) -> FloatArray:
        found = self._function(states, *(one.get_value(borrow=True) for one in self._shared))
        return np.stack([np.broadcast_to(np.asarray(one, dtype=np.float64), len(states)) for one in found], axis=1)


def build_many_states(
    values: Sequence[Any], terms: Sequence[Any], layout: StateLayout, n_data: int, *, check_bounds: bool
) -> ManyStates | None:
    """Return the terms as a function of many states; None where a call would be busy with one, or PyTensor cannot.

    Rewrites of a copy of the graphs may add in another order: so that all workers have the same bits, it is built once.

    Parameters
    ----------
    values : sequence of Variable
        The value variables of a model, in the order of the layout.
    terms : sequence of Variable
        Log prior and log likelihood, scalars.
    layout : StateLayout
    n_data : int
        Observed numbers.
    check_bounds : bool
        ``pymc.Model.check_bounds`` of the model.
    """
    if layout.dim + n_data > LARGEST:
        return None
    try:
        return _vectorised(values, without_checks(terms, check_bounds=check_bounds), layout, layout.dim + n_data)
    except Exception:  # PyTensor cannot vectorise, or not rewrite, some graphs
        return None


def _vectorised(values: Sequence[Any], terms: Sequence[Any], layout: StateLayout, size: int) -> ManyStates:
    """Return the function.

    Raises
    ------
    Exception
        PyTensor cannot, or an operation would see all states at once, or each by itself, or large arrays.
    """
    shared = [one for one in graph_inputs(list(terms)) if isinstance(one, SharedVariable)]
    inputs = [pt.tensor(one.name, dtype=one.type.dtype, shape=one.get_value(borrow=True).shape) for one in shared]
    own = [pt.tensor(dtype=one.type.dtype, shape=shape) for one, shape in zip(values, layout.shapes, strict=True)]
    # all shapes are known from here on: those of the data, too
    given = dict(zip([*values, *shared], [*own, *inputs], strict=True))
    terms = clone_replace(list(terms), given, rebuild_strict=False)
    size = max(size, _largest(own, terms))
    if size > LARGEST:
        raise NotImplementedError(f"{size} numbers of one state are too many.")
    states = pt.matrix("states", dtype="float64")
    outputs = vectorize_graph(list(terms), parts_of(states, (states.shape[0],), own, layout))
    without, rewrites = BROKEN_REWRITES, (CONTIGUOUS,)
    function = interpret_function([states, *inputs], list(outputs), without=without, rewrites=rewrites)
    return ManyStates(function, shared, size)


def _largest(values: Sequence[Any], terms: Sequence[Any]) -> int:
    """Return the elements of the largest array that is computed of values.

    Raises
    ------
    NotImplementedError
        An operation sees all states at once, or each by itself, or a shape is not known.
    """
    depending, largest = set(values), 0
    for node in io_toposort([], list(terms)):
        if isinstance(node.op, CheckAndRaise) or type(node.op).__name__ in _BY_ITSELF:
            raise NotImplementedError(f"{node.op} is not vectorised.")
        if depending.isdisjoint(node.inputs):
            continue
        depending.update(node.outputs)
        if _calls(node) > MOST_CALLS:
            raise NotImplementedError(f"{node.op} is called {_calls(node)} times for one state.")
        for shape in (getattr(one.type, "shape", ()) for one in node.outputs):
            if None in shape and len(shape) > 1:
                raise NotImplementedError(f"{node.op} has a shape that is not known: {shape}.")
            largest = max(largest, int(np.prod([length for length in shape if length is not None], dtype=np.int64)))
    return largest


def _calls(node: Any) -> int:
    """Return how often PyTensor calls Python for one node: once for each matrix or vector of a stack NumPy cannot take.

    So it is for each row of a multivariate normal.
    """
    if not isinstance(node.op, Blockwise) or node.op.gufunc_spec or getattr(node.op.core_op, "gufunc_spec", None):
        return 1
    stack = node.outputs[0].type.shape[: node.op.batch_ndim(node)]
    return int(np.prod([length or 1 for length in stack], dtype=np.int64))


def without_checks(terms: Sequence[Any], *, check_bounds: bool) -> list[Any]:
    """Return copies of graphs in which parameters out of bounds give density zero, or are not looked at.

    Vectorised, a check would ask all states together.
    """
    rule = local_check_parameter_to_ninf_switch if check_bounds else local_remove_check_parameter
    return rewritten(terms, in2out(rule, name="checks_of_parameters"))


def _to_compare(found: FloatArray) -> NDArray[np.intp]:
    """Return rows to compare with single calls: the first, the last, the largest and one in the middle."""
    total = np.where(np.isfinite(found).all(axis=1), found.sum(axis=1), -np.inf)
    order = np.argsort(total)
    return np.unique([0, len(found) - 1, order[-1], order[len(found) // 2]])


def _alike(one: FloatArray, other: FloatArray) -> bool:
    """Return whether values are the same but for rounding."""
    with np.errstate(invalid="ignore"):
        near = np.abs(one - other) <= ALIKE * (1.0 + np.abs(other))
    return bool((near | (one == other) | (np.isnan(one) & np.isnan(other))).all())
