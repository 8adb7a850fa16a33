"""Log densities of binary outcomes by one softplus each, whose gradient is right far out.

PyMC writes them as ``switch(y, log(p), log1p(-p))`` with ``p = sigmoid(x)``. PyTensor makes that two softplus of each
outcome, and two more sigmoids of a check that can only fail where x is no number. Before it differentiates PyTensor 2
leaves ``log1p(-p)`` alone, whose gradient is 0 / 0 from x = 37 on: NaN at y = 0, where a wide prior's draws are. The
values here are the same, bit by bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Constant
from pytensor.graph.rewriting.basic import node_rewriter, out2in
from pytensor.scalar.basic import GE, LE, Log, Log1p, Mul, Neg, Switch
from pytensor.scalar.math import Sigmoid, Softplus
from pytensor.tensor.elemwise import DimShuffle, Elemwise

from bread.backends.pymc.density.compiling import rewritten


def with_logistic_terms(terms: Sequence[Any]) -> list[Any]:
    """Return copies of graphs, already made stable, with such terms as a softplus of x times -1 or 1."""
    return rewritten(terms, out2in(_RULE, name="logistic_terms"))


def _as_softplus(_: Any, node: Any) -> list[Any] | None:
    """Return the same term from one softplus, or the same check of x itself; None where it is neither."""
    operation, output = node.op.scalar_op, node.outputs[0]
    if isinstance(operation, Switch):
        new = _of_outcomes(*node.inputs)
    elif isinstance(operation, Log1p):
        x = _logit_of_other(output)
        new = None if x is None else -pt.softplus(x)
    elif isinstance(operation, GE | LE):
        new = _check(operation, *node.inputs)
    else:
        return None
    is_same = new is not None and new.type.dtype == output.type.dtype and new.type.ndim == output.type.ndim
    return [output.type.filter_variable(new)] if is_same else None


_RULE = node_rewriter([Elemwise])(_as_softplus)


def _of_outcomes(outcome: Any, if_one: Any, if_zero: Any) -> Any | None:
    """Return log p where an outcome is not 0 and log(1 - p) where it is."""
    order = _order(if_one)
    if order is not None and order == _order(if_zero):  # one p of all outcomes
        if_one, if_zero = if_one.owner.inputs[0], if_zero.owner.inputs[0]
    x = _logit(if_one)
    is_same = x is _logit_of_other(if_zero)
    if x is None or not is_same:
        return None
    x = x if order is None else x.dimshuffle(order)
    sign = pt.switch(outcome, np.array(-1, x.type.dtype), np.array(1, x.type.dtype))
    return -pt.softplus(sign * x)


def _order(variable: Any) -> tuple[Any, ...] | None:
    """Return the new order of axes that a variable is made by, None without one."""
    is_shuffled = variable.owner is not None and isinstance(variable.owner.op, DimShuffle)
    return tuple(variable.owner.op.new_order) if is_shuffled else None


def _logit(log_p: Any) -> Any | None:
    """Return x of log(sigmoid(x)), or of -softplus(-x), None of something else."""
    p = _argument(log_p, Log)
    if p is not None:
        return _real(_argument(p, Sigmoid))
    minus = _argument(_negative(log_p), Softplus)
    return None if minus is None else _real(_negative(minus))


def _logit_of_other(log_q: Any) -> Any | None:
    """Return x of log1p(-sigmoid(x)), or of -softplus(x), None of something else."""
    minus_p = _argument(log_q, Log1p)
    return _real(_argument(_negative(log_q), Softplus) if minus_p is None else _argument(_negative(minus_p), Sigmoid))


def _check(operation: Any, p: Any, bound: Any) -> Any | None:
    """Return whether x is a number, for whether a sigmoid is at least 0 or at most 1; None of something else."""
    x = _real(_argument(p, Sigmoid))
    limit = None if x is None else _constant(bound)
    if limit is None:
        return None
    is_certain = limit <= 0.0 if isinstance(operation, GE) else limit >= 1.0
    return pt.invert(pt.isnan(x)) if is_certain else None


def _argument(variable: Any, kind: type) -> Any | None:
    """Return the argument of one operation on each element, None where a variable is not made by it."""
    if variable is None or variable.owner is None or not isinstance(variable.owner.op, Elemwise):
        return None
    return variable.owner.inputs[0] if isinstance(variable.owner.op.scalar_op, kind) else None


def _real(variable: Any) -> Any | None:
    """Return a variable of real numbers, None in place of another one."""
    return variable if variable is not None and variable.type.dtype.startswith("float") else None


def _negative(variable: Any) -> Any | None:
    """Return what a variable is minus 1 times, None where it is not."""
    found = _argument(variable, Neg)
    if found is not None or _argument(variable, Mul) is None:
        return found
    factors = [one for one in variable.owner.inputs if _constant(one) != -1.0]
    return factors[0] if len(factors) == 1 and len(variable.owner.inputs) == 2 else None


def _constant(variable: Any) -> float | None:
    """Return the number that all elements of a constant are, None where they are none or several."""
    while variable.owner is not None and isinstance(variable.owner.op, DimShuffle):
        variable = variable.owner.inputs[0]
    if not isinstance(variable, Constant):
        return None
    values = np.unique(variable.data)
    return float(values[0]) if len(values) == 1 else None
