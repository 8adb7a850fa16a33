"""Log density and gradient of a `bread.paths.product.ProductReference`, in C."""

from __future__ import annotations

import numpy as np

from bread.backends.base import FloatArray
from bread.paths.product import ProductReference

NAME = "bread_product"


def packed(reference: ProductReference) -> FloatArray:
    """Return all numbers of a reference in one vector, in the order in which the C code reads them."""
    dim, n_laws = reference.weights.shape
    parts = [
        [dim, n_laws, reference.log_determinant], reference.centre, reference.matrix.T, reference.matrix,
        reference.log_factors, reference.means, reference.rates,
    ]  # fmt: skip
    return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])


# Matrices are read along memory: by columns for W v, by rows for W' of a pull.
CODE = """
// log density and derivative of one coordinate's mixture
static double bread_product_law(
    double z, int n, const double* logs, const double* means, const double* rates, double* slope)
{
    double largest = -INFINITY;
    for (int k = 0; k < n; ++k) {
        const double t = (z - means[k]) * rates[k], term = logs[k] - 0.5 * t * t;
        if (!(term <= largest)) largest = term;
    }
    double total = 0.0, pull = 0.0;
    for (int k = 0; k < n; ++k) {
        const double t = (z - means[k]) * rates[k], share = std::exp(logs[k] - 0.5 * t * t - largest);
        total += share;
        pull -= share * t * rates[k];
    }
    *slope = pull / total;
    return largest + std::log(total);
}

__attribute__((noinline)) static double bread_product(
    const double* q, const double* pack, const double* other, const double* weights, double* out)
{
    const int dim = (int)pack[0], n = (int)pack[1];
    const double* centre = pack + 3;
    const double* columns = centre + dim;
    const double* rows = columns + (size_t)dim * dim;
    const double* logs = rows + (size_t)dim * dim;
    const double* means = logs + (size_t)dim * n;
    const double* rates = means + (size_t)dim * n;
    std::vector<double> z(dim);
    for (int j = 0; j < dim; ++j) {
        const double v = q[j] - centre[j];
        for (int k = 0; k < dim; ++k) z[k] += columns[(size_t)j * dim + k] * v;
    }
    for (int k = 0; k < dim; ++k) out[k] = weights[1] * other[k];
    double value = pack[2];
    for (int j = 0; j < dim; ++j) {
        const size_t at = (size_t)j * n;
        double slope;
        value += bread_product_law(z[j], n, logs + at, means + at, rates + at, &slope);
        slope *= weights[0];
        for (int k = 0; k < dim; ++k) out[k] += slope * rows[(size_t)j * dim + k];
    }
    return value;
}
"""
