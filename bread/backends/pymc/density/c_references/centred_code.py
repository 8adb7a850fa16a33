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
    head = [reference.dim, len(scales), len(reference.links), reference.log_normaliser]
    links = [np.r_[link.by, len(link.sources), link.sources, link.targets] for link in reference.links]
    parts = [head, scales, by.sum(axis=0), by, reference.mean, reference.matrix, *links]
    return np.concatenate([np.asarray(part, dtype=np.float64).ravel() for part in parts])


CODE = """
__attribute__((noinline)) static double bread_centred(
    const double* q, const double* pack, const double* other, const double* weights, double* out)
{
    const int dim = (int)pack[0], k = (int)pack[1], n_links = (int)pack[2];
    const double* scales = pack + 4;
    const double* counts = scales + k;
    const double* by = counts + k;
    const double* mean = by + (size_t)dim * k;
    const double* matrix = mean + dim;
    const double* links = matrix + (size_t)dim * dim;
    std::vector<double> memory(3 * dim);
    double* factors = memory.data();
    double* away = factors + dim;
    double* pull = away + dim;

    double value = pack[3], square = 0.0;
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
    for (int i = 0; i < dim; ++i) {
        const double* row = matrix + (size_t)i * dim;
        double z = 0.0;
        for (int j = 0; j <= i; ++j) z += row[j] * away[j];
        for (int j = 0; j <= i; ++j) pull[j] -= z * row[j];
        square += z * z;
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
