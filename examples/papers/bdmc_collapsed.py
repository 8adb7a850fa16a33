"""Clustering and binary attributes over rows, the parameters integrated out, as in the paper: the state is labels.

A particle's weight is the density of the next row given rows and labels so far, its own label summed out. To be a ratio
of two densities of one state, target t holds labels of later rows too, each drawn given all rows and labels before it:
f_t(z) = p(z_{1:t}, y_{1:t}) prod_{l > t} p(z_l | z_{1:l-1}, y_{1:l}), so that f_t / f_{t-1} is that density. The kernel
draws labels of rows 1, ..., t from their conditional laws in order (the opposite order in reverse), then the others.
A label of binary attributes is one of all rows of zeros and ones.
"""

from __future__ import annotations

import numpy as np
from bdmc_models import Attributes
from numpy.random import default_rng

from bread.backends.base import AnnealRun, Kernel
from bread.lab.particles import Targets


class RowsSoFar:
    """The target that knows the first ``n`` rows; models say how a row depends on those that are counted."""

    def __init__(self, model, n):
        self.y, self.n, self.n_labels, self.n_components = model.y, n, model.n_labels, model.n_components
        self.scale, self.noise = model.scale, model.noise

    def _draw(self, i, states, uniforms, counts, sums):
        """Draw the label of row i given the others, and count it."""
        logs = self._log_densities(i, counts, sums)
        below = np.cumsum(np.exp(logs - logs.max(axis=-1, keepdims=True)), axis=-1)
        states[:, i] = (uniforms[:, i, None] * below[:, -1:] > below).sum(-1)
        self._put(i, states[:, i], counts, sums, 1)

    def _impute(self, states, first, uniforms):
        counts, sums = self._statistics(states, first)
        for i in range(first, len(self.y)):
            self._draw(i, states, uniforms, counts, sums)
        return states

    def draw_base(self, path, seeds):
        """Draw labels one after another, each given the rows so far."""
        return self._impute(np.zeros((len(seeds), len(self.y))), 0, _uniforms(seeds, len(self.y)))

    def log_ratio(self, path, states):
        """Return the log of the product of the densities of rows 1, ..., n."""
        counts, sums = self._statistics(states, 0)
        total = np.zeros(len(states))
        for i in range(self.n):
            logs = self._log_densities(i, counts, sums)
            total += np.logaddexp.reduce(logs, axis=-1) - np.log(self.n_labels)
            self._put(i, states[:, i], counts, sums, 1)
        return total

    def anneal(self, path, betas, kernel, *, direction, initial, seeds):
        """Move by the kernel once, or by its reversal."""
        uniforms, moved = _uniforms(seeds, len(self.y)), np.array(initial)
        counts, sums = self._statistics(moved, self.n)
        for i in range(self.n) if direction == "forward" else reversed(range(self.n)):
            self._put(i, moved[:, i], counts, sums, -1)
            self._draw(i, moved, uniforms, counts, sums)
        self._impute(moved, self.n, uniforms)
        before, after = (initial, moved) if direction == "forward" else (moved, initial)
        nothing = np.zeros(len(seeds), dtype=np.int64)
        ratios = np.column_stack([self.log_ratio(path, before), self.log_ratio(path, after)])
        return AnnealRun(
            ratios[:, 0], ratios, before, after, np.zeros((len(seeds), 2)), nothing, nothing, nothing, nothing, 0.0, ""
        )


class Clusters(RowsSoFar):
    """Rows counted are sizes (chain, component) and sums (chain, component, feature) of clusters."""

    def _log_densities(self, i, counts, sums):
        """Return the log density of row i in each cluster, (chain, component)."""
        precision = self.scale**-2 + counts / self.noise**2
        means, variance = sums / (self.noise**2 * precision)[..., None], 1 / precision + self.noise**2
        squares = ((self.y[i] - means) ** 2).sum(-1)
        return -0.5 * (squares / variance + self.y.shape[1] * np.log(2 * np.pi * variance))

    def _statistics(self, states, n):
        is_in = states[:, None, :n] == np.arange(self.n_components)[:, None]
        return is_in.sum(-1).astype(float), is_in.astype(float) @ self.y[:n]

    def _put(self, i, labels, counts, sums, sign):
        rows = np.arange(len(labels))
        counts[rows, labels.astype(int)] += sign
        sums[rows, labels.astype(int)] += sign * self.y[i]


class Features(RowsSoFar):
    """Rows counted are z'z (chain, component, component) and z'y (chain, component, feature) of their attributes z."""

    def __init__(self, model, n):
        super().__init__(model, n)
        self.patterns = model.patterns
        self.first, self.second = np.triu_indices(self.n_components)
        self.pairs = self.patterns[:, self.first] * self.patterns[:, self.second]  # (label, pair)

    def _quadratic(self, matrices):
        """Return z' m z for every label z and symmetric m, (chain, label)."""
        twice = np.where(self.first == self.second, 1.0, 2.0)
        return (matrices[:, self.first, self.second] * twice) @ self.pairs.T

    def _log_densities(self, i, counts, sums):
        """Return the log density of row i with each label, (chain, label): features are normal given rows counted."""
        covariance = np.linalg.inv(np.eye(self.n_components) / self.scale**2 + counts / self.noise**2)
        means = covariance @ sums / self.noise**2  # (chain, component, feature)
        variance = self.noise**2 + self._quadratic(covariance)
        squares = (self.y[i] ** 2).sum() - 2 * (means @ self.y[i]) @ self.patterns.T
        squares += self._quadratic(means @ means.swapaxes(-1, -2))
        return -0.5 * (squares / variance + self.y.shape[1] * np.log(2 * np.pi * variance))

    def _statistics(self, states, n):
        z = self.patterns[states[:, :n].astype(int)]
        transposed = z.swapaxes(-1, -2)
        return transposed @ z, transposed @ self.y[:n]

    def _put(self, i, labels, counts, sums, sign):
        z = self.patterns[labels.astype(int)]
        counts += sign * z[:, :, None] * z[:, None, :]
        sums += sign * z[:, :, None] * self.y[i]


def _uniforms(seeds, n):
    return np.array([default_rng(seed).random(n) for seed in seeds])


def collapsed_targets(model):
    """Return the targets of all rows of a `bdmc_models.Clustering` or its `Attributes`."""
    n, kind = len(model.y), Features if isinstance(model, Attributes) else Clusters
    return Targets([kind(model, i) for i in range(1, n + 1)], [Kernel(np.array([1.0]), {})] * n)
