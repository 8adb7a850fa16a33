"""Log density and gradient of a `bread.paths.mixture.MixtureReference` of several components, in C.

NumPy takes about twenty microseconds for each component, more than the gradient of a small model. One component alone
costs little more there than here, and stays in NumPy.
"""

from __future__ import annotations

import numpy as np

from bread.backends.base import FloatArray
from bread.paths.mixture import Component, MixtureReference

NAME = "bread_mixture"
LARGEST = 40_000  # numbers of all matrices, beyond which NumPy's products are faster than these loops


def packed(reference: MixtureReference) -> FloatArray | None:
    """Return all numbers of a reference in one vector, in the order in which the C code reads them.

    None for a single component, and for one whose matrices are too large.
    """
    components = reference.components
    n_numbers = sum(part.size for one in components for part in (one.matrix, one.directions) if part is not None)
    if len(components) == 1 or n_numbers > LARGEST:
        return None
    with np.errstate(divide="ignore"):
        constants = np.log(reference.weights) + [one.log_normaliser for one in components]
    parts: list[FloatArray] = [np.array([reference.dim, len(components)], dtype=np.float64)]
    for constant, one in zip(constants, components, strict=True):
        parts += _component(one, float(constant))
    return np.concatenate([part.ravel() for part in parts])


def _component(one: Component, constant: float) -> list[FloatArray]:
    rank = 0 if one.directions is None or one.stretch is None else len(one.stretch)
    head = np.array([constant, float(one.matrix is not None), rank, float(one.degrees is not None)])
    parts = [head, one.mean, one.scale]
    if one.degrees is not None:
        parts.append(one.degrees)
    if one.matrix is not None:
        parts += [one.matrix.T, one.matrix]  # by columns for W v, by rows for W' of a pull: both go along memory
    if rank:
        assert one.directions is not None and one.stretch is not None
        parts += [one.directions.T, 1.0 / one.stretch - 1.0]
    return parts


CODE = """
// v + D diag(along) D' v, the directions one after another
static void bread_mixture_low_rank(int dim, int rank, const double* directions, const double* along, const double* v,
                                   double* out)
{
    for (int k = 0; k < dim; ++k) out[k] = v[k];
    for (int r = 0; r < rank; ++r) {
        const double* direction = directions + (size_t)r * dim;
        double product = 0.0;
        for (int k = 0; k < dim; ++k) product += v[k] * direction[k];
        product *= along[r];
        for (int k = 0; k < dim; ++k) out[k] += product * direction[k];
    }
}

__attribute__((noinline)) static double bread_mixture(
    const double* q, const double* pack, const double* other, const double* weights, double* out)
{
    const int dim = (int)pack[0], n = (int)pack[1];
    const double* next = pack + 2;
    std::vector<double> logs(n), slopes((size_t)n * dim), memory(2 * dim);
    double* v = memory.data();
    double* z = v + dim;
    for (int i = 0; i < n; ++i) {
        const double constant = next[0];
        const int is_full = (int)next[1], rank = (int)next[2], is_heavy = (int)next[3];
        const double* mean = next + 4;
        const double* scale = mean + dim;
        const double* degrees = scale + dim;
        const double* columns = degrees + (is_heavy ? dim : 0);
        const double* rows = columns + (size_t)dim * dim;
        const double* along = columns + (size_t)rank * dim;
        next = is_full ? rows + (size_t)dim * dim : (rank ? along + rank : columns);
        double* slope = slopes.data() + (size_t)i * dim;

        for (int k = 0; k < dim; ++k) v[k] = (q[k] - mean[k]) / scale[k];
        if (is_full) {
            for (int k = 0; k < dim; ++k) z[k] = 0.0;
            for (int j = 0; j < dim; ++j)
                for (int k = 0; k < dim; ++k) z[k] += columns[(size_t)j * dim + k] * v[j];
        } else {
            bread_mixture_low_rank(dim, rank, columns, along, v, z);
        }
        double value = 0.0;
        for (int k = 0; k < dim; ++k) {
            if (is_heavy && !std::isinf(degrees[k])) {
                const double nu = degrees[k], square = z[k] * z[k];
                value -= 0.5 * (nu + 1.0) * std::log1p(square / nu);
                v[k] = -(nu + 1.0) * z[k] / (nu + square);
            } else {
                value -= 0.5 * z[k] * z[k];
                v[k] = -z[k];
            }
        }
        if (is_full) {
            for (int k = 0; k < dim; ++k) slope[k] = 0.0;
            for (int j = 0; j < dim; ++j)
                for (int k = 0; k < dim; ++k) slope[k] += rows[(size_t)j * dim + k] * v[j];
        } else {
            bread_mixture_low_rank(dim, rank, columns, along, v, slope);
        }
        for (int k = 0; k < dim; ++k) slope[k] /= scale[k];
        logs[i] = value + constant;
    }

    double largest = logs[0], total = 0.0;
    for (int i = 1; i < n; ++i) if (!(logs[i] <= largest)) largest = logs[i];
    for (int k = 0; k < dim; ++k) out[k] = 0.0;
    for (int i = 0; i < n; ++i) {
        const double share = std::exp(logs[i] - largest);
        total += share;
        for (int k = 0; k < dim; ++k) out[k] += share * slopes[(size_t)i * dim + k];
    }
    for (int k = 0; k < dim; ++k) out[k] = weights[0] * (out[k] / total) + weights[1] * other[k];
    return largest + std::log(total);
}
"""
