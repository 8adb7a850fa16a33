"""The number of components of a mixture by BIC, where not all numbers are tried."""

import numpy as np
import pytest
from scipy import stats

from bread.fitting.gaussian import gaussian_mixtures
from bread.paths.mixture import Component, MixtureReference

AT = (np.arange(600) + 0.5) / 600
CASES = {
    "normal": stats.norm.ppf(AT),
    "skewed": stats.skewnorm(-6).ppf(AT),
    "heavy tails": stats.t(3).ppf(AT),
    "two modes": np.concatenate([stats.norm(-4).ppf(AT), stats.norm(3, 0.5).ppf(AT)]),
    "four narrow modes": np.concatenate([stats.norm(place, 0.1).ppf(AT[::4]) for place in (-6, -2, 2, 6)]),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_the_best_of_all_numbers(name, monkeypatch):
    points, tried = CASES[name][:, None], []
    every = {n: gaussian_mixtures.gaussian_mixture(points, n) for n in range(1, 7)}
    monkeypatch.setattr(gaussian_mixtures, "gaussian_mixture", lambda points, n: tried.append(n) or every[n])
    found = gaussian_mixtures.best_mixture(points, 6)
    best = min(every, key=lambda n: every[n].bic(points))
    assert found is every[best]
    assert tried == list(range(1, min(best + gaussian_mixtures.ENOUGH_WORSE, 6) + 1))


def reference(found):
    """Return a fitted mixture as the law of a driver."""
    laws = zip(found.means_, found.covariances_, strict=True)
    return MixtureReference(
        tuple(Component(mean, np.sqrt(covariance[0, :1])) for mean, covariance in laws), found.weights_
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("other", CASES)
def test_one_of_other_data_is_nearly_as_good_a_start(name, other):
    """0.03 nats a point are what a wrong number of components costs here; the worst start alone costs 0.9."""
    points = 2.5 + 3.0 * CASES[name][:, None]
    like = reference(gaussian_mixtures.best_mixture(CASES[other][:, None], 4))
    best, near = gaussian_mixtures.best_mixture(points, 4), gaussian_mixtures.mixture_near(points, 4, like)
    assert best.score(points) - near.score(points) < 0.03


def test_it_is_moved_and_stretched_before_it_is_improved():
    points = np.random.default_rng(1).multivariate_normal([3.0, -2.0], [[4.0, 1.9], [1.9, 1.0]], 500)
    points = np.concatenate([points, points[:250] * 0.2 + [40.0, 10.0]])
    like = gaussian_mixtures.best_mixture(points @ np.array([[0.3, 0.1], [0.0, 0.2]]) + 7.0, 4)
    components = []
    for mean, covariance in zip(like.means_, like.covariances_, strict=True):
        scale = np.sqrt(np.diag(covariance))
        factor = np.linalg.cholesky(covariance / np.outer(scale, scale))
        components.append(Component(mean, scale, matrix=np.linalg.inv(factor)))
    near = gaussian_mixtures.mixture_near(points, 4, MixtureReference(tuple(components), like.weights_))
    best = gaussian_mixtures.best_mixture(points, 4)
    assert near.n_iter_ <= 3, "it begins where it ends: the law of other data is an affine map of this one"
    assert near.score(points) == pytest.approx(best.score(points), abs=0.01)


def test_points_without_a_spread_are_no_error():
    like = reference(gaussian_mixtures.best_mixture(CASES["two modes"][:, None], 4))
    found = gaussian_mixtures.mixture_near(np.full((100, 1), 2.0), 4, like)
    assert found.means_ == pytest.approx(2.0)
