"""Log density and gradient of a `bread.paths.precision.PrecisionReference`, in C."""

from __future__ import annotations

import numpy as np

from bread.backends.base import FloatArray
from bread.backends.pymc.density import product_code
from bread.paths.precision import LARGEST_EXPONENT, SMALLEST_PRECISION, PrecisionReference, Sums

NAME = "bread_precision"


def packed(reference: PrecisionReference) -> FloatArray:
    """Return all numbers of a reference in one vector, in the order in which the C code reads them."""
    precision, linear = reference.precision, reference.linear
    parts = [
        [reference.dim, len(reference.drivers), len(precision.places), len(linear.places)],
        reference.drivers, reference.others, reference.rows, reference.columns, *_sums(precision),
        linear.places, *_sums(linear), product_code.packed(reference.marginal),
    ]  # fmt: skip
    return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])


def _sums(sums: Sums) -> tuple[FloatArray, FloatArray]:
    return sums.values, sums.exponents


# From the precision matrix P = L L' and the inverse of L: mean, residual, and the derivative of the log density by P.
CODE = (
    product_code.CODE
    + f"""
static const double bread_largest_exponent = {LARGEST_EXPONENT!r}, bread_smallest_precision = {SMALLEST_PRECISION!r};
"""
    + """
// terms of sums of exponentials, and which of them change with u
static void bread_precision_terms(
    int n, int k, const double* values, const double* exponents, const double* u, double* terms, double* changes)
{
    for (int t = 0; t < n; ++t) {
        double power = 0.0;
        for (int d = 0; d < k; ++d) power += exponents[(size_t)t * k + d] * u[d];
        changes[t] = std::fabs(power) < bread_largest_exponent;
        if (power > bread_largest_exponent) power = bread_largest_exponent;
        if (power < -bread_largest_exponent) power = -bread_largest_exponent;
        terms[t] = values[t] * std::exp(power);
    }
}

// the Cholesky factor in place, in the lower triangle; 0 where the matrix has none
static int bread_precision_factor(int n, double* a)
{
    for (int j = 0; j < n; ++j) {
        double* row = a + (size_t)j * n;
        for (int i = 0; i <= j; ++i) {
            const double* other = a + (size_t)i * n;
            double sum = row[i];
            for (int l = 0; l < i; ++l) sum -= row[l] * other[l];
            if (i < j) {
                row[i] = sum / other[i];
            } else {
                if (!(sum > 0.0) || std::isinf(sum)) return 0;
                row[j] = std::sqrt(sum);
            }
        }
    }
    return 1;
}

__attribute__((noinline)) static double bread_precision(
    const double* q, const double* pack, const double* other, const double* weights, double* out)
{
    const int dim = (int)pack[0], k = (int)pack[1], m = (int)pack[2], s = (int)pack[3], n = dim - k;
    const double* drivers = pack + 4;
    const double* others = drivers + k;
    const double* rows = others + n;
    const double* columns = rows + m;
    const double* values = columns + m;
    const double* exponents = values + m;
    const double* places = exponents + (size_t)m * k;
    const double* linear_values = places + s;
    const double* linear_exponents = linear_values + s;
    const double* marginal = linear_exponents + (size_t)s * k;

    std::vector<double> memory(3 * k + 6 * (size_t)n + 2 * (size_t)(m + s) + 2 * (size_t)n * n);
    double* u = memory.data();
    double* by_u = u + k;
    double* own = by_u + k;
    double* y = own + k;
    double* linear = y + n;
    double* mean = linear + n;
    double* away = mean + n;
    double* residual = away + n;
    double* pull = residual + n;
    double* terms = pull + n;
    double* changes = terms + m;
    double* linear_terms = changes + m;
    double* linear_changes = linear_terms + s;
    double* factor = linear_changes + s;
    double* inverse = factor + (size_t)n * n;

    for (int d = 0; d < k; ++d) u[d] = q[(int)drivers[d]];
    for (int j = 0; j < n; ++j) y[j] = q[(int)others[j]];
    bread_precision_terms(m, k, values, exponents, u, terms, changes);
    bread_precision_terms(s, k, linear_values, linear_exponents, u, linear_terms, linear_changes);
    for (int t = 0; t < m; ++t) factor[(size_t)rows[t] * n + (int)columns[t]] += terms[t];
    for (int t = 0; t < s; ++t) linear[(int)places[t]] += linear_terms[t];
    std::vector<double> diagonal(n);
    for (int j = 0; j < n; ++j) diagonal[j] = factor[(size_t)j * n + j];

    int is_full = bread_precision_factor(n, factor);
    if (is_full) {
        for (int j = 0; j < n; ++j) {
            double sum = linear[j];
            for (int l = 0; l < j; ++l) sum -= factor[(size_t)j * n + l] * mean[l];
            mean[j] = sum / factor[(size_t)j * n + j];
        }
        for (int j = n - 1; j >= 0; --j) {
            double sum = mean[j];
            for (int l = j + 1; l < n; ++l) sum -= factor[(size_t)l * n + j] * mean[l];
            mean[j] = sum / factor[(size_t)j * n + j];
            if (!std::isfinite(mean[j])) is_full = 0;
        }
    }
    if (!is_full) {
        for (size_t i = 0; i < (size_t)n * n; ++i) factor[i] = 0.0;
        for (int t = 0; t < m; ++t)
            if (rows[t] != columns[t] || !(diagonal[(int)rows[t]] > bread_smallest_precision)) changes[t] = 0.0;
        for (int j = 0; j < n; ++j) {
            const double one = diagonal[j] > bread_smallest_precision ? diagonal[j] : bread_smallest_precision;
            factor[(size_t)j * n + j] = std::sqrt(one);
            mean[j] = linear[j] / one;
        }
    }
    for (int j = 0; j < n; ++j) away[j] = y[j] - mean[j];

    double value = -0.5 * n * std::log(2.0 * M_PI);
    for (int j = 0; j < n; ++j) {
        const double* row = factor + (size_t)j * n;
        for (int l = 0; l <= j; ++l) residual[l] += row[l] * away[j];
        value += std::log(row[j]);
    }
    for (int j = 0; j < n; ++j) {
        const double* row = factor + (size_t)j * n;
        for (int l = 0; l <= j; ++l) pull[j] += row[l] * residual[l];
        value -= 0.5 * residual[j] * residual[j];
    }
    // inverse of L, by columns: inverse[j * n + i] is element (i, j), so that columns lie along memory
    for (int j = 0; j < n; ++j) {
        double* column = inverse + (size_t)j * n;
        column[j] = 1.0 / factor[(size_t)j * n + j];
        for (int i = j + 1; i < n; ++i) {
            double sum = 0.0;
            for (int l = j; l < i; ++l) sum -= factor[(size_t)i * n + l] * column[l];
            column[i] = sum / factor[(size_t)i * n + i];
        }
    }
    // by places of the matrix, into the lower triangle of the factor, which is not needed again
    for (int i = 0; i < n; ++i)
        for (int j = 0; j <= i; ++j) {
            const double* first = inverse + (size_t)i * n;
            const double* second = inverse + (size_t)j * n;
            double sum = 0.0;
            for (int l = i; l < n; ++l) sum += first[l] * second[l];
            factor[(size_t)i * n + j] = (sum - y[i] * y[j] + mean[i] * mean[j]) * (i == j ? 0.5 : 1.0);
        }
    for (int t = 0; t < m; ++t) {
        if (changes[t] == 0.0) continue;
        const double slope = terms[t] * factor[(size_t)rows[t] * n + (int)columns[t]];
        for (int d = 0; d < k; ++d) by_u[d] += slope * exponents[(size_t)t * k + d];
    }
    for (int t = 0; t < s; ++t) {
        if (linear_changes[t] == 0.0) continue;
        const double slope = linear_terms[t] * away[(int)places[t]];
        for (int d = 0; d < k; ++d) by_u[d] += slope * linear_exponents[(size_t)t * k + d];
    }
    const double alone[2] = {1.0, 0.0};
    value += bread_product(u, marginal, u, alone, own);
    for (int d = 0; d < k; ++d) {
        const int at = (int)drivers[d];
        out[at] = weights[0] * (by_u[d] + own[d]) + weights[1] * other[at];
    }
    for (int j = 0; j < n; ++j) {
        const int at = (int)others[j];
        out[at] = -weights[0] * pull[j] + weights[1] * other[at];
    }
    return value;
}
"""
)
