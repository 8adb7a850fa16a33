"""Arrays in the order of C before what adds or multiplies, so that the order in memory does not show in the last bit.

NumPy adds the rows of an array in another order where its columns are contiguous. Which they are depends on whether
an operation before was done in place, and that differs between a function and its unpickled copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import in2out, node_rewriter
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import Subtensor
from pytensor.tensor.type import TensorType

POSITION = 48.8  # after all that changes operations; before those in place
_ELEMENT_BY_ELEMENT = (Elemwise, DimShuffle, Reshape, Shape, Shape_i, SpecifyShape, Subtensor)


class Contiguous(Op):
    """The same array in the order of C."""

    __props__ = ()
    view_map = {0: [0]}  # noqa: RUF012

    def make_node(self, *inputs: Any) -> Apply[Any]:
        """Return the node of one array."""
        (array,) = inputs
        return Apply(self, [array], [array.type()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        """Copy it where it is in another order."""
        outputs[0][0] = np.asarray(inputs[0], order="C")


def _ordered(_: Any, node: Any) -> list[Any] | None:
    """Return the same operation of contiguous arrays; None where they are, or their order does not matter."""
    if isinstance(node.op, (*_ELEMENT_BY_ELEMENT, Contiguous)):
        return None
    inputs = [Contiguous()(one) if _may_be_ordered(one) else one for one in node.inputs]
    if all(one is other for one, other in zip(inputs, node.inputs, strict=True)):
        return None
    outputs: list[Any] = node.op.make_node(*inputs).outputs
    return outputs


def _may_be_ordered(variable: Any) -> bool:
    is_array = isinstance(variable.type, TensorType) and variable.type.ndim > 1 and not isinstance(variable, Constant)
    return is_array and (variable.owner is None or not isinstance(variable.owner.op, Contiguous))


CONTIGUOUS = (in2out(node_rewriter(None)(_ordered), name="contiguous"), POSITION)
