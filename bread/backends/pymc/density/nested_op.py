"""Log density and gradient of a `bread.paths.nested.NestedReference`, compiled, and mixed with the model's.

NumPy takes twenty calls for what is a few hundred products: on a small model twice the time of its own compiled
gradient. Here it is one operation of PyTensor, in C code that its linker compiles and caches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply
from pytensor.link.c.op import COp

from bread.backends.base import FloatArray
from bread.backends.pymc.density.compiling import compile_mode
from bread.paths.nested import NestedReference


def packed(reference: NestedReference) -> FloatArray:
    """Return all numbers of a reference in one vector, in the order in which the C code reads them.

    The driver is a coordinate of the centre and of the matrix too, of zeros. The sum of the log standard deviations, of
    which the density needs nothing else, is one more function of u. The matrix comes by rows, and by columns.
    """
    n, pieces = len(reference.centre), reference.pieces
    functions = pieces.coefficients.reshape(*pieces.coefficients.shape[:2], 2 * n)
    total = pieces.coefficients[:, :, 1].sum(axis=-1, keepdims=True)
    matrix = np.insert(reference.matrix, reference.driver, 0.0, axis=1)
    laws = reference.marginal_laws
    head = [n, reference.driver, len(reference.knots), len(laws), reference.log_normaliser]
    parts = [
        head, reference.knots, pieces.origins, pieces.widths, laws, np.insert(reference.centre, reference.driver, 0.0),
        np.concatenate([functions, total], axis=-1), matrix, matrix.T,
    ]  # fmt: skip
    return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])


class NestedDensity(COp):
    """(position, packed reference, slope, weights) -> log q and ``weights[0] * grad log q + weights[1] * slope``."""

    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply[Any]:
        """Return the node of four vectors of doubles."""
        return Apply(self, list(inputs), [pt.dscalar(), pt.dvector()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        """Refuse: without a compiler `compiled_base` gives none."""
        raise NotImplementedError("NestedDensity runs compiled only.")

    def c_headers(self, **_: Any) -> list[str]:
        """Return the headers that the code needs."""
        return ["<cmath>", "<vector>"]

    def c_support_code(self, **_: Any) -> str:
        """Return the function that computes."""
        return _CODE

    def c_code_cache_version(self) -> tuple[int, ...]:
        """Return the version of the code: raise it with every change."""
        return (1,)

    def c_code(self, node: Any, name: str, inputs: Any, outputs: Any, sub: Any) -> str:
        """Return the code of one call."""
        q, pack, slope, weights = inputs
        value, gradient = outputs
        return f"""
        npy_intp dim_{name} = PyArray_DIMS({q})[0];
        Py_XDECREF({value});
        {value} = (PyArrayObject*)PyArray_EMPTY(0, NULL, NPY_DOUBLE, 0);
        Py_XDECREF({gradient});
        {gradient} = (PyArrayObject*)PyArray_EMPTY(1, &dim_{name}, NPY_DOUBLE, 0);
        if (!{value} || !{gradient}) {{ {sub["fail"]} }}
        if (!PyArray_ISCARRAY_RO({q}) || !PyArray_ISCARRAY_RO({pack}) || !PyArray_ISCARRAY_RO({slope})
            || !PyArray_ISCARRAY_RO({weights}) || PyArray_DIMS({slope})[0] != dim_{name}
            || ((double*)PyArray_DATA({pack}))[0] + 1 != dim_{name}) {{
            PyErr_SetString(PyExc_ValueError, "position and reference must be contiguous and of one dimension");
            {sub["fail"]}
        }}
        *(double*)PyArray_DATA({value}) = bread_nested(
            (const double*)PyArray_DATA({q}), (const double*)PyArray_DATA({pack}), (const double*)PyArray_DATA({slope}),
            (const double*)PyArray_DATA({weights}), (double*)PyArray_DATA({gradient}));
        """


_CODE = """
static double bread_nested(const double* q, const double* pack, const double* other, const double* weights, double* out)
{
    const int n = (int)pack[0], driver = (int)pack[1], m = (int)pack[2], laws = (int)pack[3], dim = n + 1;
    const double* knots = pack + 5;
    const double* origins = knots + m;
    const double* widths = origins + m + 1;
    const double* marginal = widths + m + 1;
    const double* centre = marginal + 4 * laws;
    const double* coefficients = centre + dim;
    const int size = 2 * n + 1;
    const double* matrix = coefficients + (size_t)(m + 1) * 4 * size;
    const double* columns = matrix + (size_t)n * dim;
    const double u = q[driver];

    int low = 0, high = m;  // the first knot that is not below u
    while (low < high) {
        const int middle = (low + high) / 2;
        if (knots[middle] < u) low = middle + 1; else high = middle;
    }
    const double width = widths[low], x = (u - origins[low]) / width;
    const int is_cubic = 0 < low && low < m;
    const double* c0 = coefficients + (size_t)low * 4 * size;
    const double* c1 = c0 + size;
    const double* c2 = c1 + size;
    const double* c3 = c2 + size;
    std::vector<double> memory(2 * size + 2 * n);
    double* law = memory.data();
    double* slope = law + size;
    double* residual = slope + size;
    double* pull = residual + n;
    for (int j = 0; j < size; ++j) {
        law[j] = is_cubic ? c0[j] + x * (c1[j] + x * (c2[j] + x * c3[j])) : c0[j] + x * c1[j];
        slope[j] = (is_cubic ? c1[j] + x * (2.0 * c2[j] + 3.0 * x * c3[j]) : c1[j]) / width;
    }

    for (int j = 0; j < n; ++j) residual[j] = 0.0;
    for (int k = 0; k < dim; ++k) {
        const double d = q[k] - centre[k];
        for (int j = 0; j < n; ++j) residual[j] += columns[(size_t)k * n + j] * d;
    }
    double square = 0.0, along = 0.0;
    for (int j = 0; j < n; ++j) {
        const double rate = std::exp(-law[n + j]);
        residual[j] = (residual[j] - law[j]) * rate;
        pull[j] = residual[j] * rate;
        square += residual[j] * residual[j];
        along += pull[j] * slope[j] + residual[j] * residual[j] * slope[n + j];
    }
    for (int k = 0; k < dim; ++k) out[k] = 0.0;
    for (int j = 0; j < n; ++j)
        for (int k = 0; k < dim; ++k) out[k] -= pull[j] * matrix[(size_t)j * dim + k];

    std::vector<double> logs(laws), pulls(laws);  // the law of u
    double largest = -INFINITY;
    for (int i = 0; i < laws; ++i) {
        const double rate = marginal[4 * i + 2], nu = marginal[4 * i + 3], z = rate * (u - marginal[4 * i + 1]);
        const int is_normal = std::isinf(nu);
        logs[i] = marginal[4 * i] - (is_normal ? 0.5 * z * z : 0.5 * (nu + 1.0) * std::log1p(z * z / nu));
        pulls[i] = is_normal ? -rate * z : -rate * (nu + 1.0) * z / (nu + z * z);
        if (!(logs[i] <= largest)) largest = logs[i];
    }
    double own = largest, own_slope = pulls[0];
    if (laws > 1 && std::isfinite(largest)) {
        double total = 0.0, weighted = 0.0;
        for (int i = 0; i < laws; ++i) {
            const double share = std::exp(logs[i] - largest);
            total += share;
            weighted += share * pulls[i];
        }
        own = largest + std::log(total);
        own_slope = weighted / total;
    }
    out[driver] = own_slope + along - slope[size - 1];
    for (int k = 0; k < dim; ++k) out[k] = weights[0] * out[k] + weights[1] * other[k];
    return own + pack[4] - 0.5 * square - law[size - 1];
}
"""


class CompiledNested:
    """Log density and gradient of one reference, as `bread.backends.pymc.density.gradients` calls them.

    Parameters
    ----------
    reference : NestedReference
    """

    def __init__(self, reference: NestedReference) -> None:
        self._reference, self._pack, self._function = reference, packed(reference), _function()
        self._nothing, self._alone = np.zeros(reference.dim), np.array([1.0, 0.0])

    def __reduce__(self) -> tuple[type[CompiledNested], tuple[NestedReference]]:
        """Leave out the compiled operation, of which every process has its own."""
        return CompiledNested, (self._reference,)

    def __call__(self, position: FloatArray) -> tuple[float, FloatArray]:
        """Return log density (nats) and gradient, shape (n,), at a position."""
        value, gradient = self._function(np.ascontiguousarray(position), self._pack, self._nothing, self._alone)
        return value.item(), gradient

    def mixed(self, position: FloatArray, slope: FloatArray, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return log density, and ``weights[0]`` times its gradient plus ``weights[1]`` times ``slope``.

        A model's compiled gradient may be a view with strides, such as PyTensor's of a Cholesky factor.
        """
        position, slope = np.ascontiguousarray(position), np.ascontiguousarray(slope)
        value, gradient = self._function(position, self._pack, slope, weights)
        return value.item(), gradient


def compiled_base(reference: object) -> CompiledNested | None:
    """Return log density and gradient of a reference, compiled; None where there is no compiler, or no code for it.

    A PyTensor mode that the user chose is respected: nothing is compiled there.
    """
    if not isinstance(reference, NestedReference) or compile_mode() is None:
        return None
    return CompiledNested(reference)


@cache
def _function() -> Callable[..., Any]:
    inputs = [pt.dvector() for _ in range(4)]
    function: Callable[..., Any] = pytensor.function(inputs, NestedDensity()(*inputs), mode=Mode("cvm", None))
    function.trust_input = True  # type: ignore[attr-defined]
    return function
