"""Small targets, and right and wrong kernels on them, for the battery. Each is a function of a target."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from bread.debugging.target import Target

COVARIANCE = np.array([[1.0, 0.9, 0.3], [0.9, 1.5, 0.2], [0.3, 0.2, 0.8]])
PRECISION = np.linalg.inv(COVARIANCE)
FACTOR = np.linalg.cholesky(COVARIANCE)
MEAN = np.array([1.0, -2.0, 0.5])
SHAPES = np.array([0.7, 3.0])
LAST = 4  # largest number of the discrete target


def normal(spread=1.0):
    """Correlated normal law; ``spread`` other than 1 makes the simulator wrong."""
    return Target(
        "normal",
        3,
        lambda x: -0.5 * (((x - MEAN) @ PRECISION) * (x - MEAN)).sum(-1),
        lambda n, rng: MEAN + spread * rng.normal(size=(n, 3)) @ FACTOR.T,
        lambda x: -PRECISION @ (x - MEAN),
    )


def skewed(gradient_sign=1.0):
    """Logarithms of Gamma draws."""
    return Target(
        "skewed",
        2,
        lambda x: (SHAPES * x - np.exp(x)).sum(-1),
        lambda n, rng: np.log(rng.gamma(SHAPES, size=(n, 2))),
        lambda x: gradient_sign * (SHAPES - np.exp(x)),
    )


def walls():
    """Uniform on [0, 1], where the density does not vanish, beside Beta(3, 2)."""

    def log_density(x):
        inside = ((x >= 0.0) & (x <= 1.0)).all(-1)
        b = np.where(inside, x[..., 1], 0.5)
        return np.where(inside, 2.0 * np.log(b) + np.log1p(-b), -np.inf)[()]

    def gradient(x):
        return np.array([0.0, 2.0 / x[1] - 1.0 / (1.0 - x[1])])

    def simulate(n, rng):
        return np.column_stack([rng.random(n), rng.beta(3.0, 2.0, n)])

    return Target("walls", 2, log_density, simulate, gradient, (), (0.0, 0.0), (1.0, 1.0))


def masses():
    """Two dependent numbers from 1 to 4, of unequal masses."""
    i, j = np.meshgrid(np.arange(1, LAST + 1), np.arange(1, LAST + 1), indexing="ij")
    return 0.4 * i - gammaln(j) - 0.5 * np.abs(i - j)


def discrete(offset=0.0):
    """The law of `masses`; ``offset`` other than 0 makes the simulator wrong."""
    table = masses()
    p = np.exp(table).ravel() / np.exp(table).sum()

    values = {(float(i + 1), float(j + 1)): table[i, j] for i in range(LAST) for j in range(LAST)}

    def log_density(x):
        return values.get((float(x[0]), float(x[1])), -np.inf)

    def simulate(n, rng):
        return np.column_stack(np.unravel_index(rng.choice(p.size, size=n, p=p), table.shape)) + 1.0 + offset

    return Target("discrete", 2, log_density, simulate, None, (True, True), (1.0, 1.0), (float(LAST),) * 2)


def metropolis(target, scale=0.8, *, accept=True):
    """Random-walk Metropolis, by +-1 in discrete coordinates; ``accept=False`` always accepts."""
    is_discrete = ~target.is_continuous

    def step(x, rng):
        move = scale * rng.normal(size=len(x))
        if is_discrete.any():
            move = np.where(rng.random(len(x)) < 0.5, -1.0, 1.0) * (rng.integers(len(x)) == np.arange(len(x)))
        new = x + move
        ratio = target.log_density(new) - target.log_density(x) if accept else 0.0
        return new if np.log(rng.random()) < ratio else x

    return step


def gibbs(target, *, order="random"):
    """Conditional draws of the normal law: one coordinate at random, or all in fixed order."""

    def step(x, rng):
        for i in range(3) if order == "fixed" else [rng.integers(3)]:
            gap = PRECISION[i] @ (x - MEAN) - PRECISION[i, i] * (x[i] - MEAN[i])
            x[i] = MEAN[i] - gap / PRECISION[i, i] + rng.normal() / np.sqrt(PRECISION[i, i])
        return x

    return step


def hmc(target, step_size=0.3, *, correct=True):
    """Five leapfrog steps; ``correct=False`` accepts all."""

    def step(x, rng):
        p = rng.normal(size=len(x))
        q, before = x, target.log_density(x) - 0.5 * p @ p
        p = p + 0.5 * step_size * target.gradient(q)
        for k in range(5):
            q = q + step_size * p
            p = p + (step_size if k < 4 else 0.5 * step_size) * target.gradient(q)
        return q if not correct or np.log(rng.random()) < target.log_density(q) - 0.5 * p @ p - before else x

    return step


def slice_sampler(target):
    """One coordinate at random, by shrinkage of an interval around the state."""

    def step(x, rng):
        i = rng.integers(len(x))
        height = target.log_density(x) - rng.exponential()
        low = x[i] - 2.0 * rng.random()
        high = low + 2.0
        new = x.copy()
        while True:
            new[i] = rng.uniform(low, high)
            if target.log_density(new) >= height:
                return new
            if new[i] < x[i]:
                low = new[i]
            else:
                high = new[i]

    return step


def redraws_at_walls(target):
    """Proposals beyond a wall are drawn again, uncorrected."""

    def step(x, rng):
        new = x + 0.4 * rng.normal(size=2)
        while not np.isfinite(target.log_density(new)):
            new = x + 0.4 * rng.normal(size=2)
        return new if np.log(rng.random()) < target.log_density(new) - target.log_density(x) else x

    return step


def ends_uncorrected(target):
    """At an end of the support the only neighbour is proposed with probability one, uncorrected."""

    def step(x, rng):
        i = rng.integers(2)
        new = x.copy()
        new[i] += 1.0 if x[i] == 1 else -1.0 if x[i] == LAST else rng.choice([-1.0, 1.0])
        return new if np.log(rng.random()) < target.log_density(new) - target.log_density(x) else x

    return step


class Carrying:
    """Metropolis that carries its log density; ``is_stale``: not renewed by its second move, along one coordinate."""

    def __init__(self, target, *, is_stale=False):
        self._target, self._is_stale = target, is_stale

    def start(self, position, rng):
        return position, self._target.log_density(position)

    def step(self, carry, rng):
        x, old = carry
        for move in (0.5 * rng.normal(size=len(x)), 0.5 * rng.normal() * (np.arange(len(x)) == 0)):
            new = self._target.log_density(x + move)
            if np.log(rng.random()) < new - old:
                x = x + move
                old = old if self._is_stale and np.count_nonzero(move) == 1 else new
        return x, old

    def position(self, carry):
        return carry[0]

    def log_density(self, carry):
        return carry[1]


class Adapting:
    """Metropolis whose step size follows its acceptances: from chain to chain, or with a ``rate`` within each."""

    def __init__(self, target, rate=None):
        self._target, self._rate, self._shared = target, rate, 0.0

    def start(self, position, rng):
        return position, 0.0

    def step(self, carry, rng):
        x, own = carry
        log_scale = self._shared if self._rate is None else own
        new = x + np.exp(log_scale) * rng.normal(size=len(x))
        accepted = np.log(rng.random()) < self._target.log_density(new) - self._target.log_density(x)
        log_scale = np.clip(log_scale + (self._rate or 0.1) * (1.0 if accepted else -0.5), -4.0, 3.0)
        self._shared = log_scale
        return (new if accepted else x), log_scale

    def position(self, carry):
        return carry[0]


class OwnSeed(Carrying):
    """The generator that is given is not used: each chain makes its own from the same seed."""

    def start(self, position, rng):
        self._rng = np.random.default_rng(7)
        return super().start(position, rng)

    def step(self, carry, rng):
        return super().step(carry, self._rng)


def from_outside(target):
    """Random numbers of NumPy's global generator."""

    def step(x, rng):
        new = x + np.random.normal(size=len(x))  # noqa: NPY002
        return new if np.log(rng.random()) < target.log_density(new) - target.log_density(x) else x

    return step


def fails_at_times(target):
    def step(x, rng):
        if rng.random() < 0.01:
            raise np.linalg.LinAlgError("not positive definite")
        return x

    return step


RIGHT = {
    "Metropolis, normal": (normal, metropolis),
    "Metropolis, walls": (walls, metropolis),
    "Metropolis, discrete": (discrete, metropolis),
    "Metropolis that carries its density": (skewed, Carrying),
    "Gibbs at random": (normal, gibbs),
    "HMC": (skewed, hmc),
    "slice": (walls, slice_sampler),
}
