"""Hamiltonian kernels with a static path and a dense metric, and what goes wrong in them."""

from __future__ import annotations

import numpy as np

from bread.debugging.target import Target
from tests.support.mutants.case import Case, Mutant, spread_of


def covariance_of(target):
    """Covariance of exact draws, from normal scores so that tails do no harm."""
    draws = target.simulate(4000, np.random.default_rng(3))
    spread = spread_of(target)
    clipped = np.clip((draws - np.median(draws, axis=0)) / spread, -3.0, 3.0) * spread
    return np.cov(clipped.T)


class HMC:
    """Momentum p ~ N(0, M), M the inverse of the target's covariance S = C C'; L leapfrog steps; Metropolis' test.

    ``defect`` names the line that is changed; none by default.
    """

    def __init__(self, target, defect=None, *, step_size=0.5, n_steps=4, covariance=None):
        self._target, self._defect = target, defect
        self._step_size, self._n_steps = step_size, n_steps
        self._covariance = covariance_of(target) if covariance is None else covariance
        self._factor = np.linalg.cholesky(self._covariance)
        self._to_momentum = np.linalg.inv(self._factor).T  # p = C^-T z has covariance S^-1
        if defect == "triangle":
            self._to_momentum = np.linalg.inv(self._factor)

    def draw_momentum(self, rng):
        return self._to_momentum @ rng.standard_normal(self._target.dim)

    def kinetic(self, p):
        return 0.5 * p @ self._covariance @ p

    def __call__(self, x, rng):
        defect, gradient, density = self._defect, self._target.gradient, self._target.log_density
        momentum = p = self.draw_momentum(rng)
        size = self._step_size
        if defect == "step by position":
            size = size * (0.5 + 1.0 / (1.0 + np.abs(x).max()))
        start, y = density(x), x
        slope = gradient(x)
        metric = self._covariance
        if defect == "metric not inverted":
            metric = np.diag(1.0 / np.diag(self._covariance)) * np.diag(self._covariance).min() ** 2 * 0.25
        for i in range(self._n_steps):
            p = p + 0.5 * size * slope
            y = y + size * (metric @ p)
            slope = gradient(y)
            if defect != "half step" or i < self._n_steps - 1:
                p = p + 0.5 * size * slope
        before, after = self.kinetic(momentum), self.kinetic(p)
        if defect == "kinetic of position":
            before, after = self.kinetic(x), self.kinetic(y)
        if defect == "potential only":
            before = after = 0.0
        ratio = density(y) - after - start + before
        return y if np.log(rng.random()) < ratio else x


def hmc(defect, **options):
    """Return a builder of the kernel with this defect."""
    return lambda target, is_bad: Case(target, HMC(target, defect if is_bad else None, **options))


def one_gradient_short(target, is_bad):
    """The gradient of the target lacks a term; kernel and density go on as if it did not."""
    wrong = Target(
        target.name, target.dim, target.log_density, target.simulate,
        lambda x: target.gradient(x) * np.where(np.arange(target.dim) == 1, 0.5, 1.0),
    )  # fmt: skip
    told = wrong if is_bad else target
    return Case(told, HMC(told))


def resonance(target, is_bad):
    """A path of half a period of a normal law, exactly: every transition is a reflection at the mean.

    On the law itself the exact flow is a rotation: x -> mean + cos(t) (x - mean) + sin(t) C z.
    """
    mean, factor = np.array([1.0, -2.0, 0.5]), np.linalg.cholesky(covariance_of_normal())
    angle = np.pi if is_bad else 1.3

    def step(x, rng):
        return mean + np.cos(angle) * (x - mean) + np.sin(angle) * (factor @ rng.standard_normal(3))

    return Case(target, step)


def covariance_of_normal():
    """The covariance of the target "correlated normal"."""
    from bread.debugging.continuous_targets import COVARIANCE

    return COVARIANCE


class Persistent:
    """Momentum kept from step to step: refreshed in part, negated on rejection."""

    def __init__(self, target, *, keep, negates=True, step_size=0.7):
        self._hmc = HMC(target, step_size=step_size)
        self._target, self._keep, self._negates, self._step_size = target, keep, negates, step_size

    def start(self, position, rng):
        return np.array(position), self._hmc.draw_momentum(rng)

    def position(self, carry):
        return carry[0]

    def step(self, carry, rng):
        x, p = carry
        target, size, metric = self._target, self._step_size, self._hmc._covariance  # noqa: SLF001
        if self._keep < 1.0:
            p = self._keep * p + np.sqrt(1.0 - self._keep**2) * self._hmc.draw_momentum(rng)
        half = p + 0.5 * size * target.gradient(x)
        y = x + size * (metric @ half)
        q = half + 0.5 * size * target.gradient(y)
        ratio = target.log_density(y) - self._hmc.kinetic(q) - target.log_density(x) + self._hmc.kinetic(p)
        if np.log(rng.random()) < ratio:
            return y, q
        return x, -p if self._negates else p


def momentum_not_refreshed(target, is_bad):
    return Case(target, Persistent(target, keep=1.0 if is_bad else 0.5), is_reversible=False)


def momentum_not_negated(target, is_bad):
    return Case(target, Persistent(target, keep=0.9, negates=not is_bad, step_size=1.6), is_reversible=False)


def divergence_on_the_way(target, is_bad):
    """A path is given up once the energy has risen by two nats on the way, which is not so seen from its other end.

    The good twin gives up where any two energies of the path differ by more than that: the same from both ends.
    """
    kernel, limit, n_steps = HMC(target), 0.7, 5
    size, metric = 0.9, kernel._covariance  # noqa: SLF001

    def step(x, rng):
        p = kernel.draw_momentum(rng)
        energy = kernel.kinetic(p) - target.log_density(x)
        highest = lowest = first = energy
        y = x
        for _ in range(n_steps):
            p = p + 0.5 * size * target.gradient(y)
            y = y + size * (metric @ p)
            p = p + 0.5 * size * target.gradient(y)
            energy = kernel.kinetic(p) - target.log_density(y)
            highest, lowest = max(highest, energy), min(lowest, energy)
            if not highest - (first if is_bad else lowest) < limit:
                return x
        return y if np.log(rng.random()) < first - energy else x

    return Case(target, step)


class Multinomial:
    """A path of n + 1 states, of which one is drawn by its weight (Betancourt 2017, A.3.1).

    The state that it begins at lies at a random place of the path. ``is_bad``: it always lies at the beginning, as in
    BlackJAX's `multinomial_hmc`, so that from the state that is drawn the path would be another one.
    """

    def __init__(self, target, is_bad, *, step_size=0.9, n_steps=4):
        self._hmc = HMC(target)
        self._target, self._is_bad = target, is_bad
        self._step_size, self._n_steps = step_size, n_steps

    def _walk(self, x, p, n_steps, size):
        """Return the states and energies of n steps from (x, p)."""
        target, metric = self._target, self._hmc._covariance  # noqa: SLF001
        states, minus_energies = [], []
        for _ in range(n_steps):
            p = p + 0.5 * size * target.gradient(x)
            x = x + size * (metric @ p)
            p = p + 0.5 * size * target.gradient(x)
            states.append(x)
            minus_energies.append(target.log_density(x) - self._hmc.kinetic(p))
        return states, minus_energies

    def __call__(self, x, rng):
        p = self._hmc.draw_momentum(rng)
        n_back = 0 if self._is_bad else int(rng.integers(self._n_steps + 1))
        back, forth = (
            self._walk(x, p, n, size)
            for n, size in ((n_back, -self._step_size), (self._n_steps - n_back, self._step_size))
        )
        states = [x, *back[0], *forth[0]]
        log_weights = np.array([self._target.log_density(x) - self._hmc.kinetic(p), *back[1], *forth[1]])
        weights = np.exp(np.where(np.isnan(log_weights), -np.inf, log_weights) - np.nanmax(log_weights))
        return states[rng.choice(len(states), p=weights / weights.sum())]


def forward_only(target, is_bad):
    """Return a multinomial kernel whose path begins at the state, or holds it at a random place."""
    return Case(target, Multinomial(target, is_bad))


SMOOTH = ("correlated normal", "curved", "log-gamma")
MUTANTS = (
    Mutant("wrong-triangle", "hmc", "momentum by the wrong triangle of the Cholesky factor", hmc("triangle"), SMOOTH,
           "law", "momenta have another law than the energy says; invisible where the metric is diagonal"),
    Mutant("kinetic-of-position", "hmc", "kinetic energy of the position", hmc("kinetic of position"), SMOOTH, "law",
           "the ratio is of another function"),
    Mutant("half-step", "hmc", "the last half step of the momentum is missing",
           hmc("half step", step_size=1.0, n_steps=2),
           ("correlated normal", "log-gamma", "curved"), "law",
           "the path is not its own mirror image"),
    Mutant("potential-only", "hmc", "the ratio leaves the kinetic energies out", hmc("potential only"), SMOOTH, "law",
           "the flow keeps the sum, not the potential"),
    Mutant("step-by-position", "hmc", "the step size depends on where the path begins", hmc("step by position"),
           ("log-gamma", "curved", "student t"), "law", "the way back has another step size"),
    Mutant("metric-not-inverted", "hmc", "positions move by another matrix than the energy's",
           hmc("metric not inverted"), SMOOTH, "nothing",
           "the leapfrog with any matrix keeps volumes and is reversible; the ratio corrects the rest"),
    Mutant("gradient-short", "hmc", "the gradient of one coordinate is halved", one_gradient_short, SMOOTH, "gradient",
           "the leapfrog with any force keeps volumes and is reversible: only the gradient itself is wrong"),
    Mutant("resonance", "hmc", "the path is half a period of the target", resonance, ("correlated normal",), "motion",
           "reflection at the mean leaves the distribution invariant; a chain has two states"),
    Mutant("momentum-not-refreshed", "hmc", "the momentum is drawn once and kept", momentum_not_refreshed, SMOOTH,
           "motion", "with the momentum drawn at the start every step leaves the joint distribution invariant"),
    Mutant("momentum-not-negated", "hmc", "kept momenta are not negated on rejection", momentum_not_negated,
           ("log-gamma", "curved", "funnel"), "law", "a rejected move is no involution then"),
    Mutant("divergence-one-sided", "hmc", "paths are given up where the energy rises above the start",
           divergence_on_the_way, ("log-gamma", "funnel", "curved"), "law",
           "seen from the other end the path may stand; of no effect while no path gets there"),
    Mutant("forward-only", "hmc", "a multinomial path always goes forward from the state", forward_only,
           ("log-gamma", "funnel"), "law",
           "from the state that is drawn the path would be another one, and so its weights"),
)  # fmt: skip
