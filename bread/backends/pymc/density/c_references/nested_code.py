"""Log density and gradient of a `bread.paths.nested.NestedReference`, in C."""

from __future__ import annotations

import numpy as np

from bread.backends.base import FloatArray
from bread.paths.nested import NestedReference

NAME = "bread_nested"


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
    head = [n + 1, reference.driver, len(reference.knots), len(laws), reference.log_normaliser]
    parts = [
        head, reference.knots, pieces.origins, pieces.widths, laws, np.insert(reference.centre, reference.driver, 0.0),
        np.concatenate([functions, total], axis=-1), matrix, matrix.T,
    ]  # fmt: skip
    return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])


CODE = """
__attribute__((noinline)) static double bread_nested(
    const double* q, const double* pack, const double* other, const double* weights, double* out)
{
    const int dim = (int)pack[0], driver = (int)pack[1], m = (int)pack[2], laws = (int)pack[3], n = dim - 1;
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
