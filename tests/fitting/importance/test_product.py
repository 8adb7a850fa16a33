"""Independent mixtures: fitted to draws of sparse laws, and adapted to their densities; a Gaussian law is far off."""

from __future__ import annotations

from itertools import product as every

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.special import logsumexp

from bread.fitting.gaussian.families import fit_full
from bread.fitting.gaussian.gaussian_mixtures import counted, resampled
from bread.fitting.importance import adapted_product
from bread.fitting.importance.adaptation import Family, adapt
from bread.fitting.importance.adapted_product import product_adapted, product_near
from bread.fitting.importance.product import FEWEST, fit_product
from bread.fitting.search.work import FitWork
from bread.paths.product import ProductReference

N_DRAWS = 8000
DIM = 6


class SpikeAndSlab:
    """Regression on six covariates, a narrow and a wide normal law for each slope: the posterior has 64 normal laws."""

    def __init__(self, seed=1):
        rng = default_rng(seed)
        design = rng.normal(size=(40, DIM))
        self.gram = design.T @ design
        self.score = design.T @ (design @ np.array([2.0, -1.0, 0.3, 0.0, 0.0, 0.0]) + rng.normal(size=40))
        chosen = np.array(list(every((0.05, 2.0), repeat=DIM)))
        share = np.where(chosen > 1.0, 0.3, 0.7)
        precision = self.gram + np.eye(DIM) / chosen[:, None, :] ** 2
        self.means = np.linalg.solve(precision, np.tile(self.score, (len(chosen), 1))[..., None])[..., 0]
        self.factors = np.linalg.cholesky(np.linalg.inv(precision))
        levels = (
            np.log(share / chosen).sum(axis=1) - 0.5 * np.linalg.slogdet(precision)[1] + 0.5 * self.means @ self.score
        )
        self.log_evidence = logsumexp(levels)
        self.weights = np.exp(levels - self.log_evidence)

    def log_density(self, path, states):
        laws = [np.log(p / s) - 0.5 * (states / s) ** 2 for p, s in ((0.7, 0.05), (0.3, 2.0))]
        fit = states @ self.score - 0.5 * np.einsum("ni,ij,nj->n", states, self.gram, states)
        return np.logaddexp(*laws).sum(axis=1) + fit

    def log_ratio(self, path, states):
        return self.log_density(path, states) - path.reference.log_density(states)

    def draw(self, n, rng):
        which = rng.choice(len(self.weights), n, p=self.weights)
        return self.means[which] + np.einsum("nij,nj->ni", self.factors[which], rng.standard_normal((n, DIM)))

    def work(self, root=1):
        return FitWork(self, np.zeros(DIM, dtype=bool), root, 0)

    def divergence(self, law):
        """Jeffreys divergence (nats) and its standard error, by exact draws."""
        own, exact = law.sample(N_DRAWS, default_rng(2)), self.draw(N_DRAWS, default_rng(3))
        start, end = (self.log_density(None, states) - law.log_density(states) for states in (own, exact))
        return end.mean() - start.mean(), np.sqrt((end.var() + start.var()) / N_DRAWS)


TARGET = SpikeAndSlab()


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "limit"), [(500, 0.6), (2000, 0.25)])
def test_a_fit_to_draws_is_near(n, limit):
    """4 standard errors; a Gaussian law fitted to them is the control."""
    draws = TARGET.draw(n, default_rng(1))
    value, error = TARGET.divergence(fit_product(draws))
    assert value + 4.0 * error < limit
    value, error = TARGET.divergence(fit_full(draws, np.zeros(DIM, dtype=bool)))
    assert value - 4.0 * error > 1.0, "control"


@pytest.mark.statistical
def test_a_fit_that_begins_at_another_is_as_near():
    draws = TARGET.draw(2000, default_rng(1))
    beginning = fit_product(SpikeAndSlab(2).draw(2000, default_rng(1)))
    value, error = TARGET.divergence(fit_product(draws, beginning))
    assert value + 4.0 * error < 0.3


@pytest.mark.statistical
@pytest.mark.parametrize("root", [1, 2, 3])
def test_importance_sampling_comes_nearer_than_the_draws_it_begins_at(root):
    draws = TARGET.draw(150, default_rng(root))
    before, _ = TARGET.divergence(fit_product(draws))
    value, error = TARGET.divergence(product_adapted(TARGET.work(root), draws))
    assert value + 4.0 * error < min(0.45, before)


@pytest.mark.statistical
def test_it_is_adapted_again_on_other_data(monkeypatch):
    """From where a chain goes; None where that chain, or what comes of it, is nowhere near."""
    work, beside = TARGET.work(), SpikeAndSlab(2)
    law = fit_product(beside.draw(2000, default_rng(1)))

    class Evolved:
        states = TARGET.draw(160, default_rng(5))

    monkeypatch.setattr(FitWork, "evolve", lambda *arguments, **named: Evolved)
    value, error = TARGET.divergence(product_near(work, law, None, 3.0))
    assert value + 4.0 * error < 0.45
    assert product_near(work, law, None, -1.0) is None


def test_few_draws_or_still_ones_make_no_fit(monkeypatch):
    draws = TARGET.draw(FEWEST, default_rng(1))
    assert isinstance(fit_product(draws), ProductReference)
    assert fit_product(draws[:-1]) is None
    draws[:, 2] = 1.0
    assert fit_product(draws) is None
    monkeypatch.setattr(adapted_product, "LARGEST_DIM", DIM - 1)
    assert product_adapted(TARGET.work(), TARGET.draw(500, default_rng(1))) is None


def test_counts_are_draws_that_occur_so_often():
    draws, counts = TARGET.draw(700, default_rng(1)), default_rng(2).integers(0, 4, 700)
    is_there = counts > 0
    found = fit_product(draws[is_there], counts=counts[is_there])
    expected = fit_product(np.repeat(draws, counts, axis=0))
    far = 3.0 * draws
    np.testing.assert_allclose(found.log_density(far), expected.log_density(far), rtol=1e-6)
    assert not np.allclose(fit_product(draws[is_there]).log_density(far), expected.log_density(far), rtol=1e-3)


class Normal:
    """N(0, 1) twice, times exp(3); random numbers of rounds."""

    def joint(self, states):
        return 3.0 - np.log(2.0 * np.pi) - 0.5 * (states**2).sum(axis=1)

    def rng(self, part, index=0):
        return default_rng((int(part), index))


@pytest.mark.statistical
@pytest.mark.parametrize("kept", [1, 2, 8])
def test_draws_of_the_last_rounds_count(kept):
    """Their number, and the log evidence (nats) that they give; four standard errors of at most 0.06 for one round."""
    sizes, evidences = [], []

    def fitted(states, weights, like):
        sizes.append(len(states))
        np.testing.assert_allclose(weights.sum(), 1.0)
        return law(1.0 + 0.5 / (1 + len(sizes)))

    def completed(found, log_evidence, index):
        evidences.append(log_evidence)
        return found

    adapt(Normal(), Family(500, fitted, completed, n_rounds=5, n_kept=kept), law(2.0), 2)
    assert sizes == [500 * min(number + 1, kept) for number in range(len(sizes))] and len(sizes) >= 2
    np.testing.assert_allclose(evidences, 3.0, atol=4 * 0.06)


def law(scale):
    """N(1, scale^2) twice."""
    ones = np.ones((2, 1))
    return ProductReference(np.ones(2), np.eye(2), ones, 0.0 * ones, scale * ones)


def test_counted_states_are_those_that_are_resampled():
    states, weights = default_rng(1).normal(size=(300, 2)), default_rng(2).uniform(size=300) ** 8
    found, counts = counted(states, weights, 1000)
    assert counts.sum() == 1000 and (counts > 0).all() and len(found) < 300
    np.testing.assert_array_equal(np.repeat(found, counts.astype(int), axis=0), resampled(states, weights, 1000))
