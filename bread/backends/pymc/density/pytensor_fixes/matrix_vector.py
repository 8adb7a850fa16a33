"""The product of a matrix and a vector, in C."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.link.c.op import COp

from bread.backends.pymc.density.c_references.dot_code import DOT

_CODE = (
    DOT
    + """
// out = beta * y + alpha * a @ x; steps in numbers. y is not read where beta is 0.
__attribute__((noinline)) static void bread_matrix_vector(
    double* out, const double* y, npy_intp y_step, double alpha, const double* a, npy_intp row, npy_intp column,
    const double* x, npy_intp x_step, double beta, npy_intp n, npy_intp m
) {
    if (row == 1 && n > 1) {  // contiguous columns: some thousand rows at once, whose sums stay in the cache
        for (npy_intp first = 0; first < n; first += 2048) {
            const npy_intp last = first + 2048 < n ? first + 2048 : n;
            for (npy_intp i = first; i < last; ++i) out[i] = 0.0;
            for (npy_intp j = 0; j < m; ++j) {
                const double by = x[j * x_step];
                const double* at = a + j * column;
                for (npy_intp i = first; i < last; ++i) out[i] += by * at[i];
            }
        }
    } else if (column == 1 && x_step == 1 && m >= 8) {
        for (npy_intp i = 0; i < n; ++i) out[i] = bread_dot(a + i * row, x, m);
    } else {
        for (npy_intp i = 0; i < n; ++i) {
            double sum = 0.0;
            for (npy_intp j = 0; j < m; ++j) sum += a[i * row + j * column] * x[j * x_step];
            out[i] = sum;
        }
    }
    if (beta == 0.0) {
        for (npy_intp i = 0; i < n; ++i) out[i] = alpha * out[i];
    } else {
        for (npy_intp i = 0; i < n; ++i) out[i] = beta * y[i * y_step] + alpha * out[i];
    }
}
"""
)


class MatrixVector(COp):
    """(y, alpha, A, x, beta) -> ``beta * y + alpha * A @ x``, of doubles; PyTensor's `Gemv`, which is not in place."""

    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply[Any]:
        """Return the node of a vector, a number, a matrix, a vector and a number."""
        y, alpha, matrix, x, beta = (pt.as_tensor_variable(one) for one in inputs)
        return Apply(self, [y, alpha, matrix, x, beta], [y.type()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        """Compute with NumPy, where nothing is compiled."""
        y, alpha, matrix, x, beta = inputs
        product = alpha * (matrix @ x)
        outputs[0][0] = np.asarray(product if beta == 0.0 else beta * y + product)

    def c_support_code(self, **_: Any) -> str:
        """Return the function that computes."""
        return _CODE

    def c_code_cache_version(self) -> tuple[int, ...]:
        """Return a number of the code itself, so that no module of other code is taken from the cache."""
        call = self.c_code(None, "", ("",) * 5, ("",), {"fail": ""})
        return (zlib.crc32((self.c_support_code() + call).encode()),)

    def c_code(self, node: Any, name: str, inputs: Any, outputs: Any, sub: Any) -> str:
        """Return the code of one call."""
        y, alpha, matrix, x, beta = inputs
        (out,) = outputs
        return f"""
        npy_intp n_{name} = PyArray_DIMS({matrix})[0], m_{name} = PyArray_DIMS({matrix})[1];
        if (PyArray_DIMS({y})[0] != n_{name} || PyArray_DIMS({x})[0] != m_{name}) {{
            PyErr_Format(PyExc_ValueError, "a matrix of shape (%zd, %zd) cannot multiply a vector of length %zd and be "
                "added to one of length %zd", (Py_ssize_t)n_{name}, (Py_ssize_t)m_{name},
                (Py_ssize_t)PyArray_DIMS({x})[0], (Py_ssize_t)PyArray_DIMS({y})[0]);
            {sub["fail"]}
        }}
        if (!{out} || PyArray_DIMS({out})[0] != n_{name} || !PyArray_IS_C_CONTIGUOUS({out})) {{
            Py_XDECREF({out});
            {out} = (PyArrayObject*)PyArray_EMPTY(1, &n_{name}, NPY_DOUBLE, 0);
            if (!{out}) {{ {sub["fail"]} }}
        }}
        bread_matrix_vector(
            (double*)PyArray_DATA({out}), (const double*)PyArray_DATA({y}), PyArray_STRIDES({y})[0] / 8,
            *(const double*)PyArray_DATA({alpha}), (const double*)PyArray_DATA({matrix}),
            PyArray_STRIDES({matrix})[0] / 8, PyArray_STRIDES({matrix})[1] / 8, (const double*)PyArray_DATA({x}),
            PyArray_STRIDES({x})[0] / 8, *(const double*)PyArray_DATA({beta}), n_{name}, m_{name});
        """
