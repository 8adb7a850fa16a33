"""A reference of the user's is tested before anything runs: right ones pass whatever their shape, wrong ones do not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import stats
from scipy.special import logsumexp

from bread.errors import InvalidArgumentError
from bread.fitting import user_references
from bread.fitting.user_references import examined
from bread.paths.user import UserReference

pytestmark = pytest.mark.statistical
OFFSETS = np.random.default_rng(9).normal(size=(40, 10))


class Law:
    """A reference of the user's, from two functions."""

    def __init__(self, sample, log_density):
        self.sample, self.log_density = sample, log_density


def independent(law, dim):
    return dim, Law(
        lambda n, rng: law.rvs(size=(n, dim), random_state=rng), lambda states: law.logpdf(states).sum(axis=-1)
    )


def joint(law, dim):
    return dim, Law(
        lambda n, rng: np.reshape(law.rvs(n, random_state=rng), (n, dim)),
        lambda states: np.reshape(law.logpdf(states), len(states)),
    )


def modes(means, sd):
    """Equally many draws of each of several modes."""
    n_modes, dim = means.shape

    def sample(n, rng):
        return means[rng.integers(n_modes, size=n)] + sd * rng.normal(size=(n, dim))

    def log_density(states):
        distance = ((states[:, None, :] - means) ** 2).sum(axis=-1) / sd**2
        return logsumexp(-0.5 * distance, axis=1) - dim * np.log(sd * np.sqrt(2.0 * np.pi)) - np.log(n_modes)

    return dim, Law(sample, log_density)


def funnel(dim):
    def sample(n, rng):
        scale = 3.0 * rng.normal(size=n)
        return np.column_stack([scale, np.exp(scale / 2.0)[:, None] * rng.normal(size=(n, dim - 1))])

    def log_density(states):
        others = stats.norm.logpdf(states[:, 1:], 0.0, np.exp(states[:, :1] / 2.0)).sum(axis=1)
        return stats.norm.logpdf(states[:, 0], 0.0, 3.0) + others

    return dim, Law(sample, log_density)


def ring():
    def sample(n, rng):
        radius, angle = 5.0 + 0.2 * rng.normal(size=n), rng.uniform(0.0, 2.0 * np.pi, n)
        return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

    def log_density(states):
        radius = np.hypot(*states.T)
        return stats.norm.logpdf(radius, 5.0, 0.2) - np.log(2.0 * np.pi * radius)

    return 2, Law(sample, log_density)


UNEQUAL = np.array([1e-4, 1e4])
CORRELATED = 0.9 ** np.abs(np.subtract.outer(np.arange(10), np.arange(10)))
RIGHT = {
    "normal": independent(stats.norm, 1),
    "scales of 1e-4 and 1e4": (
        2,
        Law(
            lambda n, rng: 1e3 + UNEQUAL * rng.normal(size=(n, 2)),
            lambda states: stats.norm.logpdf(states, 1e3, UNEQUAL).sum(axis=1),
        ),
    ),
    "correlated": joint(stats.multivariate_normal(np.zeros(10), CORRELATED), 10),
    "Student t": joint(stats.multivariate_t(np.zeros(5), CORRELATED[:5, :5], 2), 5),
    "Cauchy": independent(stats.cauchy, 1),
    "ten Cauchy": joint(stats.multivariate_t(np.zeros(10), np.eye(10), 1), 10),
    "half-Cauchy": independent(stats.halfcauchy, 2),
    "Pareto without a mean": independent(stats.pareto(0.3), 1),
    "Laplace": independent(stats.laplace, 5),
    "logistic": independent(stats.logistic, 10),
    "log gamma": independent(stats.loggamma(0.3), 3),
    "lognormal": independent(stats.lognorm(2.0), 2),
    "uniform": independent(stats.uniform, 3),
    "exponential": independent(stats.expon, 4),
    "half-normal": independent(stats.halfnorm, 5),
    "arcsine": independent(stats.beta(0.5, 0.5), 2),
    "two modes": modes(np.array([[-10.0], [10.0]]), 1.0),
    "eight modes": modes(10.0 * np.sign(OFFSETS[:8]), 1.0),
    "many modes": modes(9.0 * OFFSETS[:30, :2], 0.2),
    "modes that no law reaches": modes(20.0 * OFFSETS, 0.5),
    "funnel": funnel(5),
    "ring": ring(),
}
UNTOLD = {"modes that no law reaches"}
KNOWN = [name for name in RIGHT if name not in UNTOLD]


def changed(name, *, constant=0.0, scale=1.0, shift=0.0):
    dim, law = RIGHT[name]
    return dim, Law(
        lambda n, rng: shift + scale * law.sample(n, rng), lambda states: law.log_density(states) + constant
    )


def check(dim, law, seed=0):
    return examined(UserReference(law), dim, SeedSequence(seed))


@pytest.mark.parametrize("name", RIGHT)
def test_right_references_pass(name):
    assert bool(check(*RIGHT[name]).doubt) == (name in UNTOLD)


@pytest.mark.parametrize("constant", [-10.0, 3.0])
@pytest.mark.parametrize("name", KNOWN)
def test_a_constant_that_is_missing(name, constant):
    with pytest.raises(InvalidArgumentError, match="must be normalised") as refused:
        check(*changed(name, constant=constant))
    found = float(str(refused.value).split("integrates to exp(")[1].split(")")[0])
    assert abs(found - constant) < 0.3


@pytest.mark.parametrize("constant", [-0.1, 0.1])
@pytest.mark.parametrize("name", ["normal", "Student t", "Laplace", "uniform", "ring", "two modes"])
def test_a_small_constant(name, constant):
    with pytest.raises(InvalidArgumentError, match="must be normalised"):
        check(*changed(name, constant=constant))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("normal", {"scale": 1.1}),
        ("normal", {"shift": 0.1}),
        ("correlated", {"scale": 0.9}),
        ("Cauchy", {"scale": 2.0}),
        ("scales of 1e-4 and 1e4", {"scale": 0.9}),  # draws where the density is exp(-1e12)
        ("many modes", {"shift": 1.0}),
        ("eight modes", {"scale": 1.1, "constant": -10.0}),
        ("funnel", {"scale": 1.2}),
    ],
)
def test_draws_of_another_law(name, change):
    with pytest.raises(InvalidArgumentError, match="must follow log_density"):
        check(*changed(name, **change))


def test_draws_that_no_density_has():
    dim, normal = RIGHT["normal"]
    with pytest.raises(InvalidArgumentError, match=r"is -inf at \d+ of 20000"):
        check(dim, Law(normal.sample, lambda states: stats.expon.logpdf(states[:, 0])))
    with pytest.raises(InvalidArgumentError, match="25000 draws from two generators only 20000 differ"):
        check(dim, Law(lambda n, rng: normal.sample(n, np.random.default_rng(1)), normal.log_density))
    with pytest.raises(InvalidArgumentError, match="2 unconstrained coordinates, but returned 1"):
        check(2, normal)


def test_formulas_that_are_nan_outside_the_support():
    def log_density(states):
        return -np.log(states[:, 0]) - np.log(states[:, 0]) ** 2 / 2.0 - np.log(2.0 * np.pi) / 2.0  # lognormal

    assert not check(1, Law(lambda n, rng: rng.lognormal(size=(n, 1)), log_density)).doubt


def test_more_coordinates_than_a_law_is_fitted_in(monkeypatch):
    monkeypatch.setattr(user_references, "MOST_COORDINATES", 4)
    assert "more than 4 coordinates" in check(*changed("Laplace", constant=-10.0)).doubt


@pytest.mark.study
def test_right_references_pass_with_every_seed():
    """20 seeds each of 22 right references: none is refused at levels of 1e-5."""
    for name, (dim, law) in RIGHT.items():
        for seed in range(20):
            assert bool(check(dim, law, seed).doubt) == (name in UNTOLD), (name, seed)
