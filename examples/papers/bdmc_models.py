"""The models of BDMC's testbed, clustering, low rank and binary attributes, with a block Gibbs sampler.

Rows of data are independent given the parameters; each has latents of its own. By temperature, the state holds
parameters and latents; row by row it holds the parameters, and the latents are summed out of each row's density. The
kernel draws latents given parameters, then parameters given latents: on the parameters alone it is reversible.
"""

from __future__ import annotations

import itertools
import sys
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp

from bread.backends.base import FloatArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # `tests` of this repository, not an installed one
from tests.models.reference.model import ReferenceModel

LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class BlockGibbs:
    """Draw the latents, then the parameters, each from its law given the other at the inverse temperature."""

    numbers: tuple[int, int]
    name: str = "block Gibbs"
    moves_label: bool = False
    is_tunable: bool = False
    draws_exactly: bool = True

    def n_random(self, dim):
        """Return how many normal and uniform numbers a sweep takes."""
        return self.numbers

    def transition(self, run):
        """Return the sweeps; in reverse the parameters are drawn first."""
        model, (y,) = run.target.formulae, run.target.statistics["y"]

        def step(i, states):
            beta, normals, uniforms = float(run.betas[i]), run.random.normals[i], run.random.uniforms[i]
            parameters, latents = model.split(states)
            if latents is None:  # they are forgotten, so that the sweep is its own reversal
                latents = model.draw_latents(parameters, y, beta, normals, uniforms)
                return model.join(model.draw_parameters(latents, y, beta, normals), None)
            if run.direction == "forward":
                latents = model.draw_latents(parameters, y, beta, normals, uniforms)
                return model.join(model.draw_parameters(latents, y, beta, normals), latents)
            parameters = model.draw_parameters(latents, y, beta, normals)
            return model.join(parameters, model.draw_latents(parameters, y, beta, normals, uniforms))

        return step


@dataclass(frozen=True, eq=False)
class LatentModel(ReferenceModel):
    """Rows with latents of their own; ``y`` may be the first of ``n_rows``."""

    y: Any
    n_rows: int
    n_components: int
    has_latents: bool  # in the state
    scale: float
    noise: float
    kernel: Any
    per_observation: ClassVar[tuple[str, ...]] = ("y",)
    parameters: ClassVar = {"x": ("coordinate",)}
    observed: ClassVar = {"y": ("observation", "feature")}
    draw_prior_latents: ClassVar[Any]  # of a generator

    @property
    def n_features(self):
        """Columns of the data."""
        return self.y.shape[1]

    @property
    def n_parameters(self):
        """Coordinates of the parameters, which come first."""
        return self.n_components * self.n_features

    @property
    def coordinates(self):
        """Parameters, then latents."""
        return tuple(f"x[{i}]" for i in range(self.n_parameters + self.has_latents * self.n_latents))

    @property
    def observed_data(self):
        """The rows."""
        return {"y": self.y}

    @property
    def coords(self):
        """Numbers of rows and columns."""
        return {"observation": np.arange(len(self.y)), "feature": np.arange(self.n_features)}

    def summarise(self, data):
        """Return the data."""
        return {"y": data["y"]}

    def split(self, states):
        """Return the parameters (..., component, feature) and the latents, or None."""
        parameters = states[..., : self.n_parameters]
        parameters = parameters.reshape(*states.shape[:-1], self.n_components, self.n_features)
        return parameters, states[..., self.n_parameters :] if self.has_latents else None

    def join(self, parameters, latents):
        """Return states."""
        flat = parameters.reshape(*parameters.shape[:-2], -1)
        return flat if latents is None else np.concatenate([flat, latents], axis=-1)

    def log_prior(self, states):
        """Return the log density of parameters and latents."""
        parameters, latents = self.split(states)
        values = _log_normal((parameters**2).sum((-2, -1)), self.n_parameters, self.scale)
        return values if latents is None else values + self.log_prior_of_latents(latents)

    def log_likelihood(self, states, statistics):
        """Return the log density of the rows."""
        return self.log_density_of_rows(*self.split(states), statistics["y"][0])

    def gradient_log_density(self, beta, states, statistics):
        """Not used: the kernel draws from conditional laws."""
        raise NotImplementedError("block Gibbs needs no gradient")

    def draw_posterior_of(self, statistics, n, generator):
        """Not known."""
        raise NotImplementedError("exact draws come with simulated data alone")

    def draw_state(self, generator, fixed: Mapping[str, Any]):
        """Draw parameters and latents."""
        if "x" in fixed:
            return np.asarray(fixed["x"])
        parameters = self.scale * generator.standard_normal((self.n_components, self.n_features))
        return self.join(parameters, self.draw_prior_latents(generator) if self.has_latents else None)

    def draw_data(self, parameters, generator):
        """Draw the rows given parameters and latents."""
        means = self.means(*self.split(np.asarray(parameters["x"])))
        return {"y": means + self.noise * generator.standard_normal(means.shape)}

    def constrain(self, states):
        """Return the state."""
        return {"x": states}

    def unconstrain(self, parameters):
        """Return the state."""
        return np.asarray(parameters["x"])

    @property
    @abstractmethod
    def n_latents(self) -> int:
        """Coordinates of all latents."""

    @abstractmethod
    def means(self, parameters, latents) -> FloatArray:
        """Return the means of the rows."""


class Clustering(LatentModel):
    """y_ij ~ N(theta_{z_i, j}, noise^2), z_i uniform, theta_kj ~ N(0, scale^2)."""

    @property
    def n_latents(self):
        """One label a row."""
        return self.n_rows

    @property
    def n_labels(self):
        """Values of a label."""
        return self.n_components

    def centres(self, parameters):
        """Return the centre that each label stands for."""
        return parameters

    def means(self, parameters, latents):
        """Return the centres of the rows."""
        return self.centres(parameters)[latents.astype(int)]

    def log_prior_of_latents(self, latents):
        """Labels are uniform."""
        return -self.n_rows * np.log(self.n_labels)

    def draw_prior_latents(self, generator):
        """Draw labels."""
        return generator.integers(self.n_labels, size=self.n_rows).astype(float)

    def _log_densities(self, parameters, y):
        """Return the log density of each row in each cluster, (..., component, row)."""
        centres = self.centres(parameters)
        distance = (y**2).sum(-1) - 2 * centres @ y.T + (centres**2).sum(-1)[..., None]
        return _log_normal(distance, self.n_features, self.noise)

    def log_density_of_rows(self, parameters, latents, y):
        """Return the log density of all rows, labels given or summed out."""
        each = self._log_densities(parameters, y)
        if latents is None:
            return (logsumexp(each, axis=-2) - np.log(self.n_labels)).sum(-1)
        labels = latents[..., None, : len(y)].astype(int)
        return np.take_along_axis(each, labels, axis=-2)[..., 0, :].sum(-1)

    def draw_latents(self, parameters, y, beta, normals, uniforms):
        """Draw the labels given the centres; rows that are not there yet from the prior."""
        logs = np.zeros((len(parameters), self.n_labels, self.n_rows))
        logs[..., : len(y)] = beta * self._log_densities(parameters, y)
        below = np.cumsum(np.exp(logs - logs.max(axis=-2, keepdims=True)), axis=-2)
        return (uniforms[:, None] * below[:, -1:] > below).sum(-2).astype(float)

    def draw_parameters(self, latents, y, beta, normals):
        """Draw the centres given the labels."""
        is_in = latents[:, None, : len(y)] == np.arange(self.n_components)[:, None]
        precision = self.scale**-2 + beta * self.noise**-2 * is_in.sum(-1)[..., None]
        mean = beta * self.noise**-2 * (is_in.astype(float) @ y) / precision
        return mean + normals.reshape(mean.shape) / np.sqrt(precision)

    def log_evidence_of_rows(self, statistics):
        """Sum over all assignments of labels, with the centres integrated out: small data only."""
        (y,) = statistics["y"]
        terms = []
        for labels in itertools.product(range(self.n_components), repeat=len(y)):
            same = np.equal.outer(labels, labels)
            terms.append(log_normal_columns(y, self.scale**2 * same + self.noise**2 * np.eye(len(y))))
        return np.array([logsumexp(terms) - len(y) * np.log(self.n_labels)])


class Attributes(Clustering):
    """y_ij ~ N(sum_k z_ik a_kj, noise^2), z_ik ~ Bernoulli(1/2), a_kj ~ N(0, scale^2): a label is a row of z."""

    @property
    def n_labels(self):
        """Rows of zeros and ones."""
        return 2**self.n_components

    @property
    def patterns(self):
        """All rows of zeros and ones, (label, component)."""
        return (np.arange(self.n_labels)[:, None] >> np.arange(self.n_components)) % 2.0

    def centres(self, parameters):
        """Return the sum of the features of each label."""
        return self.patterns @ parameters

    def log_density_of_rows(self, parameters, latents, y):
        """Return the log density of all rows, attributes given or summed out."""
        if latents is None:
            return super().log_density_of_rows(parameters, None, y)
        z = self.patterns[latents[..., : len(y)].astype(int)]
        return _log_normal(_squares(z, parameters, y), y.size, self.noise)

    def draw_parameters(self, latents, y, beta, normals):
        """Draw the features given the attributes."""
        z, weight = self.patterns[latents[:, : len(y)].astype(int)], beta / self.noise**2
        transposed = z.swapaxes(-1, -2)
        precision = self.scale**-2 * np.eye(self.n_components) + weight * transposed @ z
        columns = normals.reshape(-1, self.n_components, self.n_features)
        return _draw_normal(precision, weight * transposed @ y, columns)

    def log_evidence_of_rows(self, statistics):
        """Sum over all attributes, with the features integrated out: small data only."""
        (y,), terms = statistics["y"], []
        for labels in itertools.product(self.patterns, repeat=len(statistics["y"][0])):
            z = np.array(labels)
            terms.append(log_normal_columns(y, self.scale**2 * z @ z.T + self.noise**2 * np.eye(len(y))))
        return np.array([logsumexp(terms) - len(y) * np.log(self.n_labels)])


class LowRank(LatentModel):
    """y_ij ~ N(u_i . v_j, noise^2), u_ik ~ N(0, 1), v_kj ~ N(0, scale^2)."""

    @property
    def n_latents(self):
        """One number for each row and component."""
        return self.n_rows * self.n_components

    def means(self, parameters, latents):
        """Return the products."""
        return self._factors(latents) @ parameters

    def _factors(self, latents):
        return latents.reshape(*latents.shape[:-1], self.n_rows, self.n_components)

    def log_prior_of_latents(self, latents):
        """Factors are standard normal."""
        return _log_normal((latents**2).sum(-1), self.n_latents, 1.0)

    def draw_prior_latents(self, generator):
        """Draw factors."""
        return generator.standard_normal(self.n_latents)

    def log_density_of_rows(self, parameters, latents, y):
        """Return the log density of all rows, factors given or integrated out."""
        if latents is not None:
            u = self._factors(latents)[..., : len(y), :]
            return _log_normal(_squares(u, parameters, y), y.size, self.noise)
        transposed = parameters.swapaxes(-1, -2)
        products = y @ transposed
        precision = np.eye(self.n_components) + parameters @ transposed / self.noise**2
        scatter = products.swapaxes(-1, -2) @ products / self.noise**2
        squares = (y**2).sum() - np.trace(np.linalg.solve(precision, scatter), axis1=-2, axis2=-1)
        return _log_normal(squares, y.size, self.noise) - 0.5 * len(y) * np.linalg.slogdet(precision)[1]

    def draw_latents(self, parameters, y, beta, normals, uniforms):
        """Draw the factors of rows given the parameters; of rows that are not there yet from the prior."""
        weight, n = beta / self.noise**2, len(y)
        u = self._factors(normals[:, self.n_parameters :]).copy()
        precision = np.eye(self.n_components) + weight * parameters @ parameters.swapaxes(-1, -2)
        u[:, :n] = _draw_normal(precision, weight * parameters @ y.T, u[:, :n].swapaxes(-1, -2)).swapaxes(-1, -2)
        return u.reshape(len(u), -1)

    def draw_parameters(self, latents, y, beta, normals):
        """Draw the parameters given the factors."""
        weight, u = beta / self.noise**2, self._factors(latents)[:, : len(y)]
        transposed = u.swapaxes(-1, -2)
        precision = self.scale**-2 * np.eye(self.n_components) + weight * transposed @ u
        z = normals[:, : self.n_parameters].reshape(-1, self.n_components, self.n_features)
        return _draw_normal(precision, weight * transposed @ y, z)

    def log_evidence_of_rows(self, statistics):
        """Integrate over the parameters on a grid: rank 1 and two columns only."""
        axis = np.linspace(-8.0, 8.0, 801) * self.scale
        grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 1, 2)
        values = replace(self, has_latents=False).log_density_of_rows(grid, None, statistics["y"][0])
        prior = _log_normal((grid**2).sum((-2, -1)), 2, self.scale)
        return np.array([logsumexp(values + prior) + 2 * np.log(axis[1] - axis[0])])


def _squares(u, parameters, y):
    """Return the sum of squares of y - u @ parameters, without an array of that size."""
    transposed = parameters.swapaxes(-1, -2)
    fitted = ((u.swapaxes(-1, -2) @ u) * (parameters @ transposed)).sum((-2, -1))
    return (y**2).sum() - 2 * (u * (y @ transposed)).sum((-2, -1)) + fitted


def _log_normal(squares, n, scale):
    return -0.5 * (squares / scale**2 + n * (LOG_2PI + 2 * np.log(scale)))


def log_normal_columns(y, covariance):
    """Return the log density of independent columns with mean 0."""
    _, log_determinant = np.linalg.slogdet(covariance)
    return -0.5 * ((y * np.linalg.solve(covariance, y)).sum() + y.shape[1] * (log_determinant + len(y) * LOG_2PI))


def _draw_normal(precision, linear, z):
    """Draw columns from N(precision^-1 linear, precision^-1)."""
    root = np.linalg.cholesky(precision)
    return np.linalg.solve(root.swapaxes(-1, -2), np.linalg.solve(root, linear) + z)
