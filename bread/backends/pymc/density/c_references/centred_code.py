"""Log density and gradient of a `bread.paths.centred.CentredReference`, in C."""

from __future__ import annotations

import numpy as np

from bread.backends.base import FloatArray
from bread.paths.centred import CentredReference

NAME = "bread_centred"


def packed(reference: CentredReference) -> FloatArray:
    """Return all numbers of a reference in one vector, in the order in which the C code reads them."""
    scales = reference.scales
    by = reference.by[:, scales]
    normal = reference.normal
    head = [reference.dim, len(scales), len(reference.links), len(normal.places), reference.log_normaliser]
    links = [np.r_[link.by, len(link.sources), link.sources, link.targets] for link in reference.links]
    parts = [head, scales, by.sum(axis=0), by, reference.mean, reference.matrix, *normal, *links]
    return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])


CODE = """
__attribute__((noinline)) static double bread_centred(
    const double* q, const double* pack, const double* other, const double* weights, double* out)
{
    const int dim = (int)pack[0], k = (int)pack[1], n_links = (int)pack[2], m_normal = (int)pack[3];
    const double* scales = pack + 5;
    const double* counts = scales + k;
    const double* by = counts + k;
    const double* mean = by + (size_t)dim * k;
    const double* matrix = mean + dim;
    const double* places = matrix + (size_t)dim * dim;
    const double* location = places + m_normal;
    const double* width = location + m_normal;
    const double* skew = width + m_normal;
    const double* tail = skew + m_normal;
    const double* links = tail + m_normal;
    std::vector<double> memory(3 * dim + 2 * m_normal);
    double* factors = memory.data();
    double* away = factors + dim;
    double* pull = away + dim;
    double* slopes = pull + dim;
    double* of_logs = slopes + m_normal;

    double value = pack[4], square = 0.0;
    for (int i = 0; i < k; ++i) value += counts[i] * q[(int)scales[i]];
    for (int j = 0; j < dim; ++j) {
        double log_factor = 0.0;
        for (int i = 0; i < k; ++i) log_factor += by[(size_t)j * k + i] * q[(int)scales[i]];
        factors[j] = log_factor == 0.0 ? 1.0 : std::exp(log_factor);
        away[j] = q[j] * factors[j] - mean[j];
        pull[j] = 0.0;
    }
    const double* link = links;
    for (int l = 0; l < n_links; ++l) {
        const int n = (int)link[1];
        for (int m = 2; m < 2 + n; ++m) away[(int)link[m + n]] += q[(int)link[0]] * q[(int)link[m]];
        link += 2 + 2 * n;
    }
    for (int i = 0; i < m_normal; ++i) {
        const int place = (int)places[i];
        const double y = (q[place] - location[i]) / width[i], root = 1.0 + y * y;
        const double angle = tail[i] * std::asinh(y) - skew[i], by_x = tail[i] / (width[i] * std::sqrt(root));
        const double size = std::fabs(angle), log_cosh = size + std::log1p(std::exp(-2.0 * size)) - 0.6931471805599453;
        away[place] = std::sinh(angle) - mean[place];
        slopes[i] = std::cosh(angle) * by_x;
        of_logs[i] = std::tanh(angle) * by_x - y / (width[i] * root);
        value += log_cosh - 0.5 * std::log1p(y * y) + std::log(tail[i] / width[i]);
    }
    for (int i = 0; i < dim; ++i) {
        const double* row = matrix + (size_t)i * dim;
        double z = 0.0;
        for (int j = 0; j <= i; ++j) z += row[j] * away[j];
        for (int j = 0; j <= i; ++j) pull[j] -= z * row[j];
        square += z * z;
    }
    for (int i = 0; i < m_normal; ++i) {
        const int place = (int)places[i];
        pull[place] = pull[place] * slopes[i] + of_logs[i];
    }
    for (int j = 0; j < dim; ++j) out[j] = pull[j] * factors[j];
    for (int i = 0; i < k; ++i) {
        double slope = counts[i];
        for (int j = 0; j < dim; ++j) slope += out[j] * q[j] * by[(size_t)j * k + i];
        out[(int)scales[i]] += slope;
    }
    link = links;
    for (int l = 0; l < n_links; ++l) {
        const int c = (int)link[0], n = (int)link[1];
        for (int m = 2; m < 2 + n; ++m) {
            const int source = (int)link[m], target = (int)link[m + n];
            out[c] += pull[target] * q[source];
            out[source] += pull[target] * q[c];
        }
        link += 2 + 2 * n;
    }
    for (int j = 0; j < dim; ++j) out[j] = weights[0] * out[j] + weights[1] * other[j];
    return value - 0.5 * square;
}
"""
