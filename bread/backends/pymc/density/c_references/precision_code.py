"""Log density and gradient of a `bread.paths.precision.PrecisionReference`, in C."""

from __future__ import annotations

import numpy as np

from bread.backends.base import FloatArray
from bread.backends.pymc.density.c_references import product_code
from bread.paths.precision import SMALLEST_PRECISION, PrecisionReference
from bread.paths.sums import LARGEST_EXPONENT, Functions

NAME = "bread_precision"


def packed(reference: PrecisionReference) -> FloatArray:
    """Return all numbers of a reference in one vector, in the order in which the C code reads them."""
    precision, linear = reference.precision, reference.linear
    parts = [
        [reference.dim, len(reference.drivers), len(precision.places), len(linear.places)],
        reference.drivers, reference.others, reference.rows, reference.columns, precision.numbers, precision.values,
        linear.places, linear.numbers, linear.values, *_functions(precision.functions), *_functions(linear.functions),
        product_code.packed(reference.marginal),
    ]  # fmt: skip
    return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])


def _functions(functions: Functions) -> tuple[FloatArray, ...]:
    head = np.array([len(functions.exponents), functions.largest_degree], dtype=np.float64)
    parts = (functions.centres, functions.widths, functions.is_held, functions.exponents, functions.degrees)
    return head, *(np.asarray(part, dtype=np.float64) for part in parts)


# From the precision matrix P = L L' and the inverse of L: mean, residual, and the derivative of the log density by P.
CODE = (
    product_code.CODE
    + f"""
static const double bread_largest_exponent = {LARGEST_EXPONENT!r}, bread_smallest_precision = {SMALLEST_PRECISION!r};
"""
    + """
// functions at u and their derivatives by it; returns where in the pack they end
static const double* bread_precision_functions(
    const double* pack, int k, const double* u, std::vector<double>& values, std::vector<double>& slopes)
{
    const int f = (int)pack[0], size = (int)pack[1] + 1;
    const double* centres = pack + 2;
    const double* widths = centres + k;
    const double* held = widths + k;
    const double* exponents = held + k;
    const double* degrees = exponents + (size_t)f * k;
    values.resize(f);
    slopes.resize((size_t)f * k);

    // polynomials of all degrees in each coordinate, and their derivatives
    std::vector<double> table(size > 1 ? 2 * (size_t)k * size : 0);
    double* rates = table.data() + (size_t)k * size;
    for (int d = 0; d < k && size > 1; ++d) {
        double x = (u[d] - centres[d]) / widths[d], rate = 1.0 / widths[d], first = 0.0, second = 1.0;
        if (held[d] != 0.0 && !(std::fabs(x) < 1.0)) {
            x = x < 0.0 ? -1.0 : 1.0;
            rate = 0.0;
        }
        double* row = table.data() + (size_t)d * size;
        double* by_x = rates + (size_t)d * size;
        for (int p = 0; p < size; ++p) {
            row[p] = p == 0 ? 1.0 : p == 1 ? x : 2.0 * x * row[p - 1] - row[p - 2];
            by_x[p] = p == 0 ? 0.0 : rate * p * second;
            if (p > 0) {
                const double next = 2.0 * x * second - first;
                first = second;
                second = next;
            }
        }
    }
    for (int t = 0; t < f; ++t) {
        const double* exponent = exponents + (size_t)t * k;
        const double* degree = degrees + (size_t)t * k;
        double* slope = slopes.data() + (size_t)t * k;
        double power = 0.0, product = 1.0;
        for (int d = 0; d < k; ++d) power += exponent[d] * u[d];
        const double changes = std::fabs(power) < bread_largest_exponent;
        if (power > bread_largest_exponent) power = bread_largest_exponent;
        if (power < -bread_largest_exponent) power = -bread_largest_exponent;
        const double value = std::exp(power);
        for (int d = 0; d < k && size > 1; ++d) product *= table[(size_t)d * size + (int)degree[d]];
        values[t] = value * product;
        for (int d = 0; d < k; ++d) {
            slope[d] = changes * values[t] * exponent[d];
            if (size == 1 || degree[d] == 0.0) continue;
            double rest = value * rates[(size_t)d * size + (int)degree[d]];
            for (int e = 0; e < k; ++e)
                if (e != d) rest *= table[(size_t)e * size + (int)degree[e]];
            slope[d] += rest;
        }
    }
    return degrees + (size_t)f * k;
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
    const double* numbers = columns + m;
    const double* multiples = numbers + m;
    const double* places = multiples + m;
    const double* linear_numbers = places + s;
    const double* linear_multiples = linear_numbers + s;
    const double* functions = linear_multiples + s;

    std::vector<double> memory(3 * k + 6 * (size_t)n + 2 * (size_t)n * n);
    double* u = memory.data();
    double* by_u = u + k;
    double* own = by_u + k;
    double* y = own + k;
    double* linear = y + n;
    double* mean = linear + n;
    double* away = mean + n;
    double* residual = away + n;
    double* pull = residual + n;
    double* factor = pull + n;
    double* inverse = factor + (size_t)n * n;

    for (int d = 0; d < k; ++d) u[d] = q[(int)drivers[d]];
    for (int j = 0; j < n; ++j) y[j] = q[(int)others[j]];
    std::vector<double> values, slopes, linear_values, linear_slopes;
    const double* linear_functions = bread_precision_functions(functions, k, u, values, slopes);
    const double* marginal = bread_precision_functions(linear_functions, k, u, linear_values, linear_slopes);
    for (int t = 0; t < m; ++t)
        factor[(size_t)rows[t] * n + (int)columns[t]] += multiples[t] * values[(int)numbers[t]];
    for (int t = 0; t < s; ++t) linear[(int)places[t]] += linear_multiples[t] * linear_values[(int)linear_numbers[t]];
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
        for (int j = 0; j < n; ++j) {
            const int held = std::isfinite(diagonal[j]) && diagonal[j] > bread_smallest_precision
                && std::isfinite(linear[j] / diagonal[j]);
            if (!held) diagonal[j] = 0.0;
            factor[(size_t)j * n + j] = held ? std::sqrt(diagonal[j]) : 1.0;
            mean[j] = held ? linear[j] / diagonal[j] : 0.0;
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
    std::vector<double> by_function(values.size()), by_linear(linear_values.size());
    for (int t = 0; t < m; ++t) {
        const int i = (int)rows[t], j = (int)columns[t];
        if (!is_full && (i != j || diagonal[i] == 0.0)) continue;
        by_function[(int)numbers[t]] += multiples[t] * factor[(size_t)i * n + j];
    }
    for (int t = 0; t < s; ++t) {
        const int j = (int)places[t];
        if (is_full || diagonal[j] != 0.0) by_linear[(int)linear_numbers[t]] += linear_multiples[t] * away[j];
    }
    for (size_t t = 0; t < values.size(); ++t)
        for (int d = 0; d < k; ++d) by_u[d] += by_function[t] * slopes[t * k + d];
    for (size_t t = 0; t < linear_values.size(); ++t)
        for (int d = 0; d < k; ++d) by_u[d] += by_linear[t] * linear_slopes[t * k + d];
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
