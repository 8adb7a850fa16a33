"""Linear algebra in compiled densities that PyTensor leaves to Python, in C.

Where PyTensor is not linked to a BLAS library, as when it comes from a wheel, it calls SciPy's from Python: 10 to 25
µs for a matrix of any size, which is copied where its columns are contiguous, as those of a transpose are. Two such
products are half of the gradient of a regression on fifty rows.

A diagonal matrix (`AllocDiag`) it writes as an indexed assignment, but not inside the gradient of a Cholesky factor,
which has two: there each is a compiled function of its own that indexes in Python, 100 µs for 30 x 30.

Elements of a matrix at constant places, such as `effects[group, 0]`, NumPy takes from Python, and adds to in the
gradient, 10 to 20 µs each. The same of all its elements in a row is in C
(`bread.backends.pymc.density.pytensor_fixes.indexing`).

Sums are taken in another order, so that values differ by rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.rewriting.basic import in2out, node_rewriter
from pytensor.tensor.basic import AllocDiag
from pytensor.tensor.blas import Gemv
from pytensor.tensor.blockwise import Blockwise

from bread.backends.pymc.density.pytensor_fixes.indexing import indexed
from bread.backends.pymc.density.pytensor_fixes.matrix_vector import MatrixVector
from bread.backends.pymc.versions import INDEXED, OUTER

LARGEST = 300  # rows of a diagonal matrix: of more, what is done with it takes longer than making it
LARGEST_PRODUCT = 20_000  # elements of a matrix whose products BLAS does not do faster
# After the rewrites that find such products, and diagonal matrices; before loops are fused, and `Blockwise` taken off.
POSITION = 48.0


def in_c(_: Any, node: Any) -> list[Any] | None:
    """Return the same number from operations in C; None where it is already one."""
    if isinstance(node.op, Gemv):
        return _product(*node.inputs)
    if isinstance(node.op, OUTER):
        return _outer(*node.inputs)
    if isinstance(node.op, INDEXED):
        return indexed(node)
    is_batch = isinstance(node.op, Blockwise)
    operation = node.op.core_op if is_batch else node.op
    if not isinstance(operation, AllocDiag) or operation.offset != 0 or not (is_batch or node.inputs[0].type.ndim == 1):
        return None
    return _diagonal(*node.inputs)


def _product(y: Any, alpha: Any, matrix: Any, x: Any, beta: Any) -> list[Any] | None:
    """Return ``beta * y + alpha * matrix @ x``; lengths that are not known may be short."""
    inputs = (y, alpha, matrix, x, beta)
    rows, columns = (1 if length is None else length for length in matrix.type.shape)
    if rows * columns > LARGEST_PRODUCT or any(one.type.dtype != "float64" for one in inputs):
        return None
    return [MatrixVector()(*inputs)]


def _outer(matrix: Any, alpha: Any, x: Any, y: Any) -> list[Any]:
    """Return ``matrix + alpha * outer(x, y)``."""
    return [(matrix + alpha * x[:, None] * y[None, :]).astype(matrix.type.dtype)]


def _diagonal(vectors: Any) -> list[Any] | None:
    """Return diagonal matrices, shape (..., n, n), as a choice between vectors, shape (..., n), and 0."""
    length = vectors.type.shape[-1]
    if length is None:
        number = pt.cumsum(pt.ones_like(vectors), axis=-1)  # 1 to the length, in C
        is_diagonal = pt.eq(number[..., :, None], number[..., None, :])
    elif length > LARGEST:
        return None
    else:
        is_diagonal = pt.constant(np.eye(length, dtype=bool))
    return [pt.switch(is_diagonal, vectors[..., None, :], np.zeros((), vectors.type.dtype))]


_REWRITTEN = [Gemv, AllocDiag, Blockwise, *INDEXED, *([OUTER] if OUTER else [])]
IN_C = (in2out(node_rewriter(_REWRITTEN)(in_c), name="linear_algebra_in_c"), POSITION)
