"""Log density and gradient of a `bread.paths.conditional.ConditionalReference`, in C."""

from __future__ import annotations

import numpy as np

from bread.backends.base import FloatArray
from bread.backends.pymc.density.c_references.dot_code import DOT
from bread.paths.conditional import ADDITIVE, ConditionalReference

NAME = "bread_conditional"


def packed(reference: ConditionalReference) -> FloatArray | None:
    """Return all numbers of a reference in one vector, in the order in which the C code reads them.

    None where the law of the drivers is not a mixture of Gaussians with matrices, as fits make it.
    """
    n, k = len(reference.centre), len(reference.drivers)
    (m, _), n_functions = reference.knots.shape, reference.coefficients.shape[1]
    others = np.delete(np.arange(n + k), reference.drivers)
    laws = []
    for log, one in zip(np.log(reference.marginal.weights), reference.marginal.components, strict=True):
        if one.degrees is not None or one.matrix is None:
            return None
        laws.append([log + one.log_normaliser, *one.mean, *(one.matrix / one.scale).ravel()])
    parts = [
        [n + k, k, m, len(laws), n_functions, reference.log_normaliser, ADDITIVE], reference.drivers, others,
        reference.centre, reference.matrix, reference.origin, reference.spread, reference.knots,
        reference.coefficients, laws,
    ]  # fmt: skip
    return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])


# The gradient goes backwards from the density: by the functions of u first, then by what multiplies coefficients.
CODE = (
    DOT
    + """
__attribute__((noinline)) static double bread_conditional(
    const double* q, const double* pack, const double* other, const double* weights, double* out)
{
    const int dim = (int)pack[0], k = (int)pack[1], m = (int)pack[2], laws = (int)pack[3], f = (int)pack[4];
    const int n = dim - k, s = m + 1 + k, is_mixed = f > 2 * n;
    const double normaliser = pack[5], additive = pack[6];
    const double* drivers = pack + 7;
    const double* others = drivers + k;
    const double* centre = others + n;
    const double* matrix = centre + n;
    const double* origin = matrix + (size_t)n * n;
    const double* spread = origin + k;
    const double* knots = spread + k;
    const double* coefficients = knots + (size_t)m * k;
    const double* marginal = coefficients + (size_t)s * f;

    std::vector<double> memory(2 * k + (size_t)(1 + k) * s + 2 * (size_t)f + 5 * n + laws * (size_t)(1 + k) + 2 * k);
    double* u = memory.data();
    double* x = u + k;
    double* terms = x + k;
    double* slopes = terms + s;
    double* values = slopes + (size_t)k * s;
    double* by_value = values + f;
    double* away = by_value + f;
    double* y = away + n;
    double* residual = y + n;
    double* pull = residual + n;
    double* across = pull + n;
    double* logs = across + n;
    double* pulls = logs + laws;
    double* z = pulls + (size_t)laws * k;
    double* by_x = z + k;

    for (int d = 0; d < k; ++d) {
        u[d] = q[(int)drivers[d]];
        x[d] = (u[d] - origin[d]) / spread[d];
    }
    for (int i = 0; i < m; ++i) {
        double summed = 0.0, cubes = 0.0;
        for (int d = 0; d < k; ++d) {
            const double gap = x[d] - knots[(size_t)i * k + d], square = gap * gap;
            summed += square;
            cubes += square * std::fabs(gap);
        }
        const double distance = std::sqrt(summed);
        terms[i] = summed * distance + additive * cubes;
        for (int d = 0; d < k; ++d) {
            const double gap = x[d] - knots[(size_t)i * k + d];
            slopes[(size_t)d * s + i] = 3.0 * (distance + additive * std::fabs(gap)) * gap;
        }
    }
    terms[m] = 1.0;
    for (int d = 0; d < k; ++d) {
        terms[m + 1 + d] = x[d];
        slopes[(size_t)d * s + m + 1 + d] = 1.0;
    }
    for (int i = 0; i < s; ++i) {
        const double term = terms[i];
        const double* row = coefficients + (size_t)i * f;
        for (int j = 0; j < f; ++j) values[j] += term * row[j];
    }

    double square = 0.0, logarithms = 0.0;
    for (int j = 0; j < n; ++j) away[j] = q[(int)others[j]] - centre[j];
    for (int j = 0; j < n; ++j) {
        y[j] = bread_dot(matrix + (size_t)j * n, away, n) - values[j];
    }
    for (int j = 0; j < n; ++j) {
        const double rate = std::exp(-values[n + j]);
        const double* row = values + 2 * n + (size_t)j * (j - 1) / 2;
        residual[j] = (is_mixed ? y[j] + bread_dot(row, y, j) : y[j]) * rate;
        pull[j] = residual[j] * rate;
        square += residual[j] * residual[j];
        logarithms += values[n + j];
    }
    for (int j = 0; j < n; ++j) across[j] = pull[j];
    if (is_mixed)
        for (int j = 1; j < n; ++j) {
            const double* row = values + 2 * n + (size_t)j * (j - 1) / 2;
            double* slope = by_value + 2 * n + (size_t)j * (j - 1) / 2;
            for (int l = 0; l < j; ++l) {
                across[l] += pull[j] * row[l];
                slope[l] = -pull[j] * y[l];
            }
        }
    for (int j = 0; j < n; ++j) {
        by_value[j] = across[j];
        by_value[n + j] = residual[j] * residual[j] - 1.0;
    }

    double largest = -INFINITY;
    for (int i = 0; i < laws; ++i) {
        const double* law = marginal + (size_t)i * (1 + k + k * k);
        double norm = 0.0;
        for (int d = 0; d < k; ++d) {
            z[d] = 0.0;
            for (int e = 0; e < k; ++e) z[d] += law[1 + k + d * k + e] * (u[e] - law[1 + e]);
            norm += z[d] * z[d];
        }
        for (int e = 0; e < k; ++e) {
            double sum = 0.0;
            for (int d = 0; d < k; ++d) sum -= law[1 + k + d * k + e] * z[d];
            pulls[(size_t)i * k + e] = sum;
        }
        logs[i] = law[0] - 0.5 * norm;
        if (!(logs[i] <= largest)) largest = logs[i];
    }
    double own = largest, total = 0.0;
    if (laws > 1 && std::isfinite(largest)) {
        for (int i = 0; i < laws; ++i) total += std::exp(logs[i] - largest);
        own = largest + std::log(total);
    }

    for (int j = 0; j < dim; ++j) out[j] = 0.0;
    for (int j = 0; j < n; ++j)
        for (int l = 0; l < n; ++l) out[(int)others[l]] -= across[j] * matrix[(size_t)j * n + l];
    for (int i = 0; i < s; ++i) {
        const double sum = bread_dot(coefficients + (size_t)i * f, by_value, f);
        for (int d = 0; d < k; ++d) by_x[d] += slopes[(size_t)d * s + i] * sum;
    }
    for (int d = 0; d < k; ++d) {
        double slope = by_x[d] / spread[d];
        for (int i = 0; i < laws; ++i)
            slope += (laws > 1 ? std::exp(logs[i] - own) : 1.0) * pulls[(size_t)i * k + d];
        out[(int)drivers[d]] = slope;
    }
    for (int j = 0; j < dim; ++j) out[j] = weights[0] * out[j] + weights[1] * other[j];
    return own + normaliser - 0.5 * square - logarithms;
}
"""
)
