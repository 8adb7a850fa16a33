"""Log density and gradient of a `bread.paths.factors.FactorReference` whose drivers' law is one Gaussian, in C."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.backends.pymc.density.c_references import rotated_code
from bread.paths.factors import Couplings, FactorReference
from bread.paths.sums import LARGEST_EXPONENT

NAME = "bread_factors"


def packed(reference: FactorReference) -> FloatArray | None:
    """Return all numbers of a reference in one vector, in the order in which the C code reads them.

    None where that of the drivers' law is None (`bread.backends.pymc.density.c_references.rotated_code.packed`).
    """
    marginal = rotated_code.packed(reference.marginal)
    if marginal is None:
        return None
    own = reference.couplings
    classes, first = _alike(own)
    parts = [
        [own.dim, *own.inner.shape, own.outer.shape[1], len(own.rest), len(first)],
        own.inner, own.outer, own.rest, own.drivers, own.units, classes,
        *_powers(own.own.exponents, own.own.values[:, first, None]),
        *_powers(own.curvature.exponents, own.curvature.values[:, first]),
        *_powers(own.slopes.exponents, own.slopes.values), marginal,
    ]  # fmt: skip
    return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])


def _alike(couplings: Couplings) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the class of each u, those of one precision matrix whatever v and the rest are, and one of each class."""
    m = couplings.inner.shape[1]
    numbers = [np.moveaxis(part.values, 1, 0).reshape(m, -1) for part in (couplings.own, couplings.curvature)]
    _, first, classes = np.unique(np.concatenate(numbers, axis=1), axis=0, return_index=True, return_inverse=True)
    return classes.ravel(), first


def _powers(exponents: FloatArray, values: FloatArray) -> tuple[object, ...]:
    """Return the parts of some `bread.paths.factors.Powers`; values by rows, and by columns."""
    return [len(exponents)], exponents, values, np.swapaxes(values, 1, 2)


# Columns, of a row for each u or each class of those that are alike, lie along memory, so that loops are vectorised.
CODE = (
    rotated_code.CODE
    + f"""
static const double bread_largest_power = {LARGEST_EXPONENT!r};
"""
    + """
// Numbers (rows, columns) at the rest, by row and by column; returns where in the pack they end. A factor is 0 where
// its exponent is held.
static const double* bread_powers(
    const double* pack, int r, const double* rest, size_t size, double* now, double* turned,
    std::vector<double>& factors)
{
    const int f = (int)pack[0];
    const double* exponents = pack + 1;
    const double* values = exponents + (size_t)f * r;
    const double* by_column = values + f * size;
    factors.resize(f);
    for (int t = 0; t < f; ++t) {
        double power = 0.0;
        for (int d = 0; d < r; ++d) power += exponents[(size_t)t * r + d] * rest[d];
        const int is_held = !(std::fabs(power) < bread_largest_power);
        if (power > bread_largest_power) power = bread_largest_power;
        if (power < -bread_largest_power) power = -bread_largest_power;
        const double value = std::exp(power);
        factors[t] = is_held ? 0.0 : value;
        for (size_t i = 0; i < size; ++i) now[i] += value * values[t * size + i];
        for (size_t i = 0; i < size; ++i) turned[i] += value * by_column[t * size + i];
    }
    return by_column + f * size;
}

// Adds the derivative by the rest of what has derivatives `by` by the numbers, of which there is one exponential and
// `whole` is the sum of products with them, or several.
static void bread_pull_powers(
    const double* pack, int r, size_t size, const std::vector<double>& factors, double whole, const double* by,
    double* by_rest)
{
    const int f = (int)pack[0];
    const double* exponents = pack + 1;
    const double* values = exponents + (size_t)f * r;
    for (int t = 0; t < f; ++t) {
        if (factors[t] == 0.0) continue;
        double sum = whole;
        if (f > 1) {
            sum = 0.0;
            for (size_t i = 0; i < size; ++i) sum += values[t * size + i] * by[i];
            sum *= factors[t];
        }
        for (int d = 0; d < r; ++d) by_rest[d] += sum * exponents[(size_t)t * r + d];
    }
}

static int bread_at(int a, int b) { return a * (a + 1) / 2 + b; }

__attribute__((noinline)) static double bread_factors(
    const double* q, const double* pack, const double* other, const double* weights, double* out)
{
    const int dim = (int)pack[0], K = (int)pack[1], m = (int)pack[2], n = (int)pack[3], r = (int)pack[4];
    const int C = (int)pack[5], T = K * (K + 1) / 2, D = K * n + r;
    const double* inner = pack + 6;
    const double* outer = inner + (size_t)K * m;
    const double* rest_places = outer + (size_t)K * n;
    const double* drivers = rest_places + r;
    const double* units = drivers + D;
    const double* classes = units + r;
    const double* own_pack = classes + m;

    const size_t Cn = (size_t)C * n, mn = (size_t)m * n, Km = (size_t)K * m, Tm = (size_t)T * m;
    const size_t Tn = (size_t)T * n, TC = (size_t)T * C, Kn = (size_t)K * n;
    std::vector<double> memory(
        2 * r + dim + 2 * D + 3 * C + 2 * Cn + 2 * mn + 2 * Kn + 2 * Tn + 4 * TC + (size_t)K * C + 8 * Km + 3 * Tm);
    double* next = memory.data();
    #define BREAD_TAKE(name, size) double* name = next; next += (size)
    BREAD_TAKE(rest, r); BREAD_TAKE(by_rest, r); BREAD_TAKE(full, dim); BREAD_TAKE(w, D); BREAD_TAKE(by_w, D);
    BREAD_TAKE(own, C); BREAD_TAKE(own_turned, C); BREAD_TAKE(curvature, Cn); BREAD_TAKE(curvature_turned, Cn);
    BREAD_TAKE(slopes, mn); BREAD_TAKE(slopes_turned, mn);
    BREAD_TAKE(v, Kn); BREAD_TAKE(by_v, Kn); BREAD_TAKE(squares, Tn); BREAD_TAKE(by_squares, Tn);
    BREAD_TAKE(matrix, TC); BREAD_TAKE(factor, TC); BREAD_TAKE(inverse, TC); BREAD_TAKE(by_class, TC);
    BREAD_TAKE(reciprocal, (size_t)K * C);
    BREAD_TAKE(u, Km); BREAD_TAKE(linear, Km); BREAD_TAKE(mean, Km); BREAD_TAKE(away, Km); BREAD_TAKE(along, Km);
    BREAD_TAKE(by_linear, Km); BREAD_TAKE(pull, Km);
    BREAD_TAKE(factors, Tm); BREAD_TAKE(covariance, Tm); BREAD_TAKE(by_matrix, Tm); BREAD_TAKE(reciprocals, Km);
    BREAD_TAKE(log_volumes, C);
    #undef BREAD_TAKE
    (void)own_turned;

    double log_unit = 0.0;
    for (int d = 0; d < r; ++d) {
        rest[d] = q[(int)rest_places[d]];
        log_unit += units[d] * rest[d];
    }
    const double unit = std::exp(log_unit);
    for (size_t i = 0; i < Kn; ++i) v[i] = q[(int)outer[i]];
    for (size_t i = 0; i < Km; ++i) u[i] = q[(int)inner[i]];
    for (int i = 0; i < D; ++i) full[(int)drivers[i]] = q[(int)drivers[i]];
    for (size_t i = 0; i < Kn; ++i) full[(int)outer[i]] *= unit;
    for (int i = 0; i < D; ++i) w[i] = full[(int)drivers[i]];
    std::vector<double> own_factors, curvature_factors, slopes_factors;
    const double* curvature_pack = bread_powers(own_pack, r, rest, C, own, own_turned, own_factors);
    const double* slopes_pack =
        bread_powers(curvature_pack, r, rest, Cn, curvature, curvature_turned, curvature_factors);
    const double* marginal = bread_powers(slopes_pack, r, rest, mn, slopes, slopes_turned, slopes_factors);

    for (int a = 0; a < K; ++a)
        for (int b = 0; b <= a; ++b)
            for (int j = 0; j < n; ++j)
                squares[(size_t)bread_at(a, b) * n + j] = v[(size_t)a * n + j] * v[(size_t)b * n + j];
    for (int t = 0; t < T; ++t)
        for (int j = 0; j < n; ++j) {
            const double square = squares[(size_t)t * n + j];
            const double* column = curvature_turned + (size_t)j * C;
            double* to = matrix + (size_t)t * C;
            for (int c = 0; c < C; ++c) to[c] += square * column[c];
        }
    for (int a = 0; a < K; ++a)
        for (int j = 0; j < n; ++j) {
            const double one = v[(size_t)a * n + j];
            const double* column = slopes_turned + (size_t)j * m;
            double* to = linear + (size_t)a * m;
            for (int i = 0; i < m; ++i) to[i] += one * column[i];
        }

    // Cholesky factors of all classes
    std::vector<char> is_law(C, 1);
    for (int a = 0; a < K; ++a)
        for (int b = 0; b <= a; ++b) {
            double* to = factor + (size_t)bread_at(a, b) * C;
            const double* from = matrix + (size_t)bread_at(a, b) * C;
            for (int c = 0; c < C; ++c) to[c] = from[c] + (a == b ? own[c] : 0.0);
            for (int l = 0; l < b; ++l) {
                const double* one = factor + (size_t)bread_at(a, l) * C;
                const double* two = factor + (size_t)bread_at(b, l) * C;
                for (int c = 0; c < C; ++c) to[c] -= one[c] * two[c];
            }
            double* inverted = reciprocal + (size_t)b * C;
            if (a == b) {
                for (int c = 0; c < C; ++c) {
                    if (!(to[c] > 0.0) || std::isinf(to[c])) is_law[c] = 0;
                    to[c] = std::sqrt(is_law[c] ? to[c] : 1.0);
                    inverted[c] = 1.0 / to[c];
                    log_volumes[c] += std::log(to[c]);
                }
            } else {
                for (int c = 0; c < C; ++c) to[c] *= inverted[c];
            }
        }
    for (int b = 0; b < K; ++b) {
        for (int c = 0; c < C; ++c) inverse[(size_t)bread_at(b, b) * C + c] = reciprocal[(size_t)b * C + c];
        for (int a = b + 1; a < K; ++a) {
            double* to = inverse + (size_t)bread_at(a, b) * C;
            for (int l = b; l < a; ++l) {
                const double* one = factor + (size_t)bread_at(a, l) * C;
                const double* two = inverse + (size_t)bread_at(l, b) * C;
                for (int c = 0; c < C; ++c) to[c] -= one[c] * two[c];
            }
            for (int c = 0; c < C; ++c) to[c] *= reciprocal[(size_t)a * C + c];
        }
    }
    for (int i = 0; i < m; ++i) {
        const int c = (int)classes[i];
        for (int t = 0; t < T; ++t) factors[(size_t)t * m + i] = factor[(size_t)t * C + c];
        for (int a = 0; a < K; ++a) reciprocals[(size_t)a * m + i] = reciprocal[(size_t)a * C + c];
    }
    for (int a = 0; a < K; ++a)
        for (int b = 0; b <= a; ++b)
            for (int l = a; l < K; ++l) {
                const double* one = inverse + (size_t)bread_at(l, a) * C;
                const double* two = inverse + (size_t)bread_at(l, b) * C;
                double* to = by_class + (size_t)bread_at(a, b) * C;
                for (int c = 0; c < C; ++c) to[c] += one[c] * two[c];
            }
    for (int t = 0; t < T; ++t)
        for (int i = 0; i < m; ++i) covariance[(size_t)t * m + i] = by_class[(size_t)t * C + (int)classes[i]];

    // means
    for (int a = 0; a < K; ++a) {
        double* to = mean + (size_t)a * m;
        for (int i = 0; i < m; ++i) to[i] = linear[(size_t)a * m + i];
        for (int l = 0; l < a; ++l)
            for (int i = 0; i < m; ++i) to[i] -= factors[(size_t)bread_at(a, l) * m + i] * mean[(size_t)l * m + i];
        for (int i = 0; i < m; ++i) to[i] *= reciprocals[(size_t)a * m + i];
    }
    for (int a = K - 1; a >= 0; --a) {
        double* to = mean + (size_t)a * m;
        for (int l = a + 1; l < K; ++l)
            for (int i = 0; i < m; ++i) to[i] -= factors[(size_t)bread_at(l, a) * m + i] * mean[(size_t)l * m + i];
        for (int i = 0; i < m; ++i) to[i] *= reciprocals[(size_t)a * m + i];
    }
    double value = (double)Kn * log_unit - 0.5 * (double)Km * std::log(2.0 * M_PI);
    std::vector<char> is_own_law(m);
    for (int i = 0; i < m; ++i) {
        int is_one = is_law[(int)classes[i]];
        for (int a = 0; a < K; ++a) is_one = is_one && std::isfinite(mean[(size_t)a * m + i]);
        is_own_law[i] = (char)is_one;
        if (is_one) {
            value += log_volumes[(int)classes[i]];
            continue;
        }
        for (int a = 0; a < K; ++a) {  // standard normal
            mean[(size_t)a * m + i] = 0.0;
            for (int b = 0; b <= a; ++b) factors[(size_t)bread_at(a, b) * m + i] = a == b ? 1.0 : 0.0;
        }
    }
    for (size_t i = 0; i < Km; ++i) away[i] = u[i] - mean[i];
    for (int b = 0; b < K; ++b)
        for (int a = b; a < K; ++a)
            for (int i = 0; i < m; ++i)
                along[(size_t)b * m + i] += factors[(size_t)bread_at(a, b) * m + i] * away[(size_t)a * m + i];
    for (size_t i = 0; i < Km; ++i) value -= 0.5 * along[i] * along[i];

    const double alone[2] = {1.0, 0.0};
    value += bread_rotated(w, marginal, w, alone, by_w);
    for (int k = 0; k < dim; ++k) out[k] = weights[1] * other[k];
    if (!std::isfinite(value)) return -INFINITY;

    // by u, by matrices (twice those below diagonals) and by linear coefficients
    for (int a = 0; a < K; ++a) {
        for (int b = 0; b <= a; ++b)
            for (int i = 0; i < m; ++i)
                pull[(size_t)a * m + i] -= factors[(size_t)bread_at(a, b) * m + i] * along[(size_t)b * m + i];
        for (int i = 0; i < m; ++i) by_linear[(size_t)a * m + i] = is_own_law[i] ? away[(size_t)a * m + i] : 0.0;
        for (int b = 0; b <= a; ++b) {
            double* to = by_matrix + (size_t)bread_at(a, b) * m;
            const double* from = covariance + (size_t)bread_at(a, b) * m;
            const double share = a == b ? 0.5 : 1.0;
            const size_t x = (size_t)a * m, y = (size_t)b * m;
            for (int i = 0; i < m; ++i) to[i] = share * (from[i] + mean[x + i] * mean[y + i] - u[x + i] * u[y + i]);
        }
    }
    for (size_t k = 0; k < TC; ++k) by_class[k] = 0.0;
    for (int t = 0; t < T; ++t)
        for (int i = 0; i < m; ++i)
            if (is_own_law[i]) by_class[(size_t)t * C + (int)classes[i]] += by_matrix[(size_t)t * m + i];
    for (int t = 0; t < T; ++t)
        for (int c = 0; c < C; ++c) {
            const double one = by_class[(size_t)t * C + c];
            for (int j = 0; j < n; ++j) by_squares[(size_t)t * n + j] += one * curvature[(size_t)c * n + j];
        }
    for (int a = 0; a < K; ++a)
        for (int i = 0; i < m; ++i) {
            const double one = by_linear[(size_t)a * m + i];
            for (int j = 0; j < n; ++j) by_v[(size_t)a * n + j] += one * slopes[(size_t)i * n + j];
        }
    for (int a = 0; a < K; ++a)
        for (int b = 0; b <= a; ++b)
            for (int j = 0; j < n; ++j) {
                const double one = by_squares[(size_t)bread_at(a, b) * n + j];
                by_v[(size_t)a * n + j] += one * v[(size_t)b * n + j];
                by_v[(size_t)b * n + j] += one * v[(size_t)a * n + j];
            }

    // by the rest
    if (r > 0) {
        std::vector<double> by_pairs;
        double of_own = 0.0, of_curvature = 0.0, of_slopes = 0.0;
        std::vector<double> by_own(C, 0.0);
        for (int a = 0; a < K; ++a)
            for (int c = 0; c < C; ++c) by_own[c] += by_class[(size_t)bread_at(a, a) * C + c];
        for (int c = 0; c < C; ++c) of_own += by_own[c] * own[c];
        bread_pull_powers(own_pack, r, C, own_factors, of_own, by_own.data(), by_rest);
        for (size_t k = 0; k < TC; ++k) of_curvature += by_class[k] == 0.0 ? 0.0 : by_class[k] * matrix[k];
        if (curvature_pack[0] > 1) {
            by_pairs.assign(Cn, 0.0);
            for (int t = 0; t < T; ++t)
                for (int c = 0; c < C; ++c)
                    for (int j = 0; j < n; ++j)
                        by_pairs[(size_t)c * n + j] += by_class[(size_t)t * C + c] * squares[(size_t)t * n + j];
        }
        bread_pull_powers(curvature_pack, r, Cn, curvature_factors, of_curvature, by_pairs.data(), by_rest);
        for (size_t i = 0; i < Km; ++i) of_slopes += by_linear[i] == 0.0 ? 0.0 : by_linear[i] * linear[i];
        if (slopes_pack[0] > 1) {
            by_pairs.assign(mn, 0.0);
            for (int a = 0; a < K; ++a)
                for (int i = 0; i < m; ++i)
                    for (int j = 0; j < n; ++j)
                        by_pairs[(size_t)i * n + j] += by_linear[(size_t)a * m + i] * v[(size_t)a * n + j];
        }
        bread_pull_powers(slopes_pack, r, mn, slopes_factors, of_slopes, by_pairs.data(), by_rest);
    }

    for (int i = 0; i < D; ++i) full[(int)drivers[i]] = by_w[i];
    double stretch = (double)Kn;
    for (size_t i = 0; i < Kn; ++i) {
        double* one = full + (int)outer[i];
        *one *= unit;
        stretch += *one * v[i];
        *one += by_v[i];
    }
    for (int d = 0; d < r; ++d) full[(int)rest_places[d]] += by_rest[d] + stretch * units[d];
    for (size_t i = 0; i < Km; ++i) full[(int)inner[i]] = pull[i];
    for (int k = 0; k < dim; ++k) out[k] += weights[0] * full[k];
    return value;
}
"""
)
