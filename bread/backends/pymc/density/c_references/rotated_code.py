"""Log density and gradient of a `bread.paths.rotated.RotatedReference` whose law is one Gaussian, in C."""

from __future__ import annotations

import numpy as np

from bread.backends.base import FloatArray
from bread.paths.mixture import MixtureReference
from bread.paths.rotated import RotatedReference

NAME = "bread_rotated"
LARGEST = 300  # coordinates of the law: with more NumPy's products are as fast


def packed(reference: RotatedReference) -> FloatArray | None:
    """Return all numbers of a reference in one vector, in the order in which the C code reads them.

    None where its law is no Gaussian with a matrix, as fits make it, or a large one. The matrix comes by rows, and by
    columns.
    """
    law, gauge = reference.law, reference.gauge
    if not isinstance(law, MixtureReference) or len(law.components) > 1:
        return None
    (one,) = law.components
    if one.degrees is not None or one.matrix is None or law.dim > LARGEST:
        return None
    matrix = one.matrix / one.scale
    parts = [
        [gauge.dim, *gauge.places.shape, len(gauge.others), law.dim, gauge.log_volume, one.log_normaliser],
        gauge.places, gauge.others, gauge.frame, one.mean, matrix, matrix.T,
    ]  # fmt: skip
    return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])


# W F = Q G: Gram and Schmidt, each column twice, as once leaves what rounding has added.
CODE = """
__attribute__((noinline)) static double bread_rotated(
    const double* q, const double* pack, const double* other, const double* weights, double* out)
{
    const int dim = (int)pack[0], K = (int)pack[1], P = (int)pack[2], free = (int)pack[3], n = (int)pack[4];
    const int m = K < P ? K : P;
    const double* places = pack + 7;
    const double* others = places + (size_t)K * P;
    const double* frame = others + free;
    const double* mean = frame + (size_t)P * P;
    const double* matrix = mean + n;
    const double* columns = matrix + (size_t)n * n;
    const size_t size = (size_t)P * (2 * K + 2 * m) + (size_t)m * (K + m) + 3 * (size_t)n;
    std::vector<double> memory(size, 0.0);
    double* turned = memory.data();           // (K, P): W F
    double* pulled = turned + (size_t)K * P;  // (K, P): the gradient by it
    double* g = pulled + (size_t)K * P;     // (m, P)
    double* by_g = g + (size_t)m * P;       // (m, P)
    double* basis = by_g + (size_t)m * P;   // (m, K): columns of Q
    double* twist = basis + (size_t)K * m;  // (m, m)
    double* y = twist + (size_t)m * m;
    double* z = y + n;
    double* by_y = z + n;

    for (int i = 0; i < K; ++i)
        for (int l = 0; l < P; ++l) {
            const double w = q[(int)places[(size_t)i * P + l]];
            for (int j = 0; j < P; ++j) turned[(size_t)i * P + j] += w * frame[(size_t)l * P + j];
        }
    for (int j = 0; j < m; ++j) {
        double* column = basis + (size_t)j * K;
        for (int i = 0; i < K; ++i) column[i] = turned[(size_t)i * P + j];
        for (int pass = 0; pass < 2; ++pass)
            for (int l = 0; l < j; ++l) {
                double shared = 0.0;
                for (int i = 0; i < K; ++i) shared += basis[(size_t)l * K + i] * column[i];
                for (int i = 0; i < K; ++i) column[i] -= shared * basis[(size_t)l * K + i];
            }
        double square = 0.0;
        for (int i = 0; i < K; ++i) square += column[i] * column[i];
        const double length = std::sqrt(square);
        for (int i = 0; i < K; ++i) column[i] /= length;
    }
    for (int r = 0; r < m; ++r)
        for (int i = 0; i < K; ++i)
            for (int j = 0; j < P; ++j) g[(size_t)r * P + j] += basis[(size_t)r * K + i] * turned[(size_t)i * P + j];

    int at = 0;
    double volume = pack[5];
    for (int i = 0; i < free; ++i) y[at++] = q[(int)others[i]];
    for (int r = 0; r < m; ++r) {
        y[at] = std::log(g[(size_t)r * P + r]);
        volume += (K - r) * y[at++];
    }
    for (int r = 0; r < m; ++r)
        for (int j = r + 1; j < P; ++j) y[at++] = g[(size_t)r * P + j];
    for (int k = 0; k < n; ++k) {
        const double d = y[k] - mean[k];
        for (int j = 0; j < n; ++j) z[j] += columns[(size_t)k * n + j] * d;
    }
    double square = 0.0;
    for (int j = 0; j < n; ++j) square += z[j] * z[j];
    const double value = pack[6] - 0.5 * square - volume;
    for (int k = 0; k < dim; ++k) out[k] = weights[1] * other[k];
    if (!std::isfinite(value)) return -INFINITY;
    for (int j = 0; j < n; ++j)
        for (int k = 0; k < n; ++k) by_y[k] -= z[j] * matrix[(size_t)j * n + k];

    at = free;
    for (int r = 0; r < m; ++r, ++at) by_g[(size_t)r * P + r] = (by_y[at] - (K - r)) / g[(size_t)r * P + r];
    for (int r = 0; r < m; ++r)
        for (int j = r + 1; j < P; ++j) by_g[(size_t)r * P + j] = by_y[at++];
    // a change of the state also turns Q: d G = Q' d(W F) - (Q' dQ) G, where Q' dQ is antisymmetric
    for (int r = 0; r < m; ++r)
        for (int l = 0; l < r; ++l) {
            double sum = 0.0;
            for (int j = 0; j < P; ++j)
                sum += by_g[(size_t)r * P + j] * g[(size_t)l * P + j] - by_g[(size_t)l * P + j] * g[(size_t)r * P + j];
            twist[(size_t)r * m + l] = sum;
        }
    for (int r = 0; r < m; ++r)
        for (int l = m - 1; l >= 0; --l) {  // X R' = twist
            double sum = twist[(size_t)r * m + l];
            for (int j = l + 1; j < m; ++j) sum -= twist[(size_t)r * m + j] * g[(size_t)l * P + j];
            twist[(size_t)r * m + l] = sum / g[(size_t)l * P + l];
        }
    for (int r = 0; r < m; ++r)
        for (int l = 0; l < m; ++l) by_g[(size_t)r * P + l] -= twist[(size_t)r * m + l];
    for (int i = 0; i < K; ++i)
        for (int r = 0; r < m; ++r)
            for (int j = 0; j < P; ++j) pulled[(size_t)i * P + j] += basis[(size_t)r * K + i] * by_g[(size_t)r * P + j];
    for (int i = 0; i < free; ++i) out[(int)others[i]] += weights[0] * by_y[i];
    for (int i = 0; i < K; ++i)
        for (int l = 0; l < P; ++l) {
            double sum = 0.0;
            for (int j = 0; j < P; ++j) sum += pulled[(size_t)i * P + j] * frame[(size_t)l * P + j];
            out[(int)places[(size_t)i * P + l]] += weights[0] * sum;
        }
    return value;
}
"""
