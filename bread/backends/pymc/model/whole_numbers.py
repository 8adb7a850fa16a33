"""Whole numbers that PyTensor computes with in few bits.

It stores a Python integer in as few bits as hold it: 25 in eight, in which its square is 113 and not 625. Densities
compute with parameters as they are, so that ``pm.HalfStudentT(nu=3, sigma=25)`` has another scale, without a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import ancestors, io_toposort

from bread.backends.pymc.model.reading import evaluate

_NARROW = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
_MOST_NAMED = 4


def is_narrow(variable: Any) -> bool:
    """Return whether a variable is a whole number of few bits, or an array of them, that may overflow."""
    if not isinstance(variable, Constant | SharedVariable) or getattr(variable.type, "dtype", "") not in _NARROW:
        return False
    return bool(np.any(np.abs(np.asarray(evaluate(variable), dtype=np.int64)) > 1))


def widened(terms: Sequence[Any]) -> list[Any] | None:
    """Return the terms with all such numbers in 64 bits; None where there are none.

    An operation that needs the types that it has keeps them.
    """
    new: dict[Any, Any] = {one: pt.constant(evaluate(one), dtype="int64") for one in ancestors(terms) if is_narrow(one)}
    if not new:
        return None
    for node in io_toposort([], list(terms)):
        inputs = [new.get(one, one) for one in node.inputs]
        if all(one is other for one, other in zip(inputs, node.inputs, strict=True)):
            continue
        try:
            copies = node.clone_with_new_inputs(inputs, strict=False).outputs
        except Exception:
            continue
        new.update(zip(node.outputs, copies, strict=True))
    return [new.get(term, term) for term in terms]


def overflow(variable: Any, others: Sequence[Any], value: float, wide: float) -> str:
    """Say what overflows in the density of a variable, and what to write.

    Parameters
    ----------
    variable : Variable
        A variable of the model, or a Potential.
    others : sequence of Variable
        All variables of the model: the numbers of those that it depends on are not its own.
    value, wide : float
        Its log density as PyTensor computes it, and in 64 bits.
    """
    above = ancestors(variable.owner.inputs, blockers=[one for one in others if one is not variable])
    numbers = sorted({int(number) for one in above if is_narrow(one) for number in np.ravel(evaluate(one))})
    named = [number for number in numbers if abs(number) > 1][:_MOST_NAMED]
    written = ", ".join(map(str, named)) or "its whole numbers"
    instead = ", ".join(f"{number}." for number in named) or "floats"
    return (
        f"The log density of {variable.name!r} overflows: PyTensor stores the whole numbers {written} in few bits, too "
        f"few for their squares and products. It is {value:.6g} where the distribution has {wide:.6g}. Write {instead} "
        f"in place of {written}, here and in every other model with this distribution."
    )
