"""Conditional sequential Monte Carlo (particle Gibbs) on a linear Gaussian state space model, and what goes wrong.

x_1 ~ N(0, 1), x_t ~ N(0.9 x_{t-1}, 0.7^2), y_t ~ N(x_t, 0.5^2), four times; the law of the path given y is normal.
"""

from __future__ import annotations

import numpy as np

from bread.debugging.target import Target
from tests.support.mutants.case import Case, Mutant

Y = np.array([1.5, 0.2, -1.8, -0.5])
LENGTH, KEEP, STEP_SD, NOISE_SD = 4, 0.9, 0.7, 0.5
N_PARTICLES = 6


def path_law():
    """The law of the path given the data."""
    difference = np.eye(LENGTH) - KEEP * np.eye(LENGTH, k=-1)
    scales = np.array([1.0, *[STEP_SD] * (LENGTH - 1)])
    precision = difference.T @ np.diag(scales**-2) @ difference + np.eye(LENGTH) / NOISE_SD**2
    covariance = np.linalg.inv(precision)
    mean = covariance @ Y / NOISE_SD**2
    factor = np.linalg.cholesky(covariance)
    constant = 0.5 * LENGTH * np.log(2.0 * np.pi) + np.log(np.diag(factor)).sum()
    return Target(
        "path of a state space model", LENGTH,
        lambda x: -0.5 * (((x - mean) @ precision) * (x - mean)).sum(-1) - constant,
        lambda n, rng: mean + rng.standard_normal((n, LENGTH)) @ factor.T,
        lambda x: -(x - mean) @ precision,
    )  # fmt: skip


def conditional_particles(defect=None):
    """Return the step: particle 0 is the old path and survives; the new path is drawn by the last weights."""

    def step(x, rng):
        paths = np.empty((N_PARTICLES, LENGTH))
        log_weights = np.zeros(N_PARTICLES)
        for t in range(LENGTH):
            if t > 0:
                w = np.exp(log_weights - log_weights.max())
                w /= w.sum()
                size = 1.0 / (w @ w)
                resamples = size > 0.5 * N_PARTICLES if defect == "size" else size < 0.5 * N_PARTICLES
                if resamples:
                    ancestors = np.minimum(np.searchsorted(np.cumsum(w), rng.random(N_PARTICLES)), N_PARTICLES - 1)
                    if defect != "not kept":
                        ancestors[0] = 0
                    if defect == "aliasing":
                        for i, ancestor in enumerate(ancestors):
                            paths[i, :t] = paths[ancestor, :t]
                    else:
                        paths[:, :t] = paths[ancestors, :t]
                    log_weights = log_weights[ancestors] if defect == "weights" else np.zeros(N_PARTICLES)
            centre, sd = (KEEP * paths[:, t - 1], STEP_SD) if t > 0 else (0.0, 1.0)
            paths[:, t] = centre + sd * rng.standard_normal(N_PARTICLES)
            if defect != "not kept" or t == 0:
                paths[0, t] = x[t]
            log_weights = log_weights - 0.5 * ((Y[t] - paths[:, t]) / NOISE_SD) ** 2
        if defect == "choice":
            return paths[rng.integers(N_PARTICLES)]
        w = np.exp(log_weights - log_weights.max())
        return paths[min(int(np.searchsorted(np.cumsum(w / w.sum()), rng.random())), N_PARTICLES - 1)]

    return step


def particles(defect):
    """Return a builder of the kernel with this defect."""
    return lambda _, is_bad: Case(path_law(), conditional_particles(defect if is_bad else None))


MUTANTS = (
    Mutant("aliasing", "particles", "paths are copied in place, over ancestors that are still needed",
           particles("aliasing"), ("own",), "law", "some particles inherit from a path that was just overwritten"),
    Mutant("path-not-kept", "particles", "the old path need not survive", particles("not kept"), ("own",), "law",
           "the step forgets its state, with the law of few particles and not of many"),
    Mutant("weights-kept", "particles", "weights are not set to one after resampling", particles("weights"), ("own",),
           "law", "the past counts twice"),
    Mutant("last-choice", "particles", "the new path is chosen without weights", particles("choice"), ("own",), "law",
           "the last observation is left out"),
    Mutant("effective-size", "particles", "resampling where the effective size is large, not small",
           particles("size"), ("own",), "nothing",
           "any rule by the weights is right with weights that follow it; only variance is lost"),
)  # fmt: skip
