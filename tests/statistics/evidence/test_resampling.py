"""Resampling: numbers of children, free and given that one particle survives."""

import numpy as np
import pytest
from numpy.random import default_rng

from bread.errors import InvalidArgumentError
from bread.statistics.evidence.resampling import SCHEMES, ancestors, ancestors_of_kept

SHARES = np.array([0.42, 0.05, 0.0, 0.33, 0.2])
N = 8000
MOST_ERRORS = 5.0


def children(chosen):
    return np.array([(np.asarray(chosen) == i).sum(axis=1) for i in range(len(SHARES))]).T


def draws(function, scheme):
    rng = default_rng(3)
    with np.errstate(divide="ignore"):
        return np.array([function(np.log(SHARES), scheme, rng) for _ in range(N)])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_mean_number_of_children(scheme):
    counts = children(draws(ancestors, scheme))
    error = counts.std(axis=0) / np.sqrt(N)
    assert (np.abs(counts.mean(axis=0) - 5 * SHARES) <= MOST_ERRORS * error).all()
    if scheme == "systematic":
        assert (np.abs(counts - 5 * SHARES) < 1).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_given_that_the_first_survives(scheme):
    """The law is the free one with weights proportional to the children of particle 0, and so are its means."""
    free = children(draws(ancestors, scheme))
    weights = free[:, 0] / (5 * SHARES[0])
    wanted = weights[:, None] * free
    kept = draws(ancestors_of_kept, scheme)
    assert (kept[:, 0] == 0).all()
    found = children(kept)
    error = np.sqrt((wanted.var(axis=0) + found.var(axis=0)) / N)
    assert (np.abs(found.mean(axis=0) - wanted.mean(axis=0)) <= MOST_ERRORS * error).all()
    # Control: a first child that is put in by force has too few brothers.
    forced = draws(ancestors, scheme)
    forced[:, 0] = 0
    gap = children(forced).mean(axis=0)[0] - wanted.mean(axis=0)[0]
    assert (scheme == "multinomial") == (abs(gap) < MOST_ERRORS * error[0])


def test_unknown_scheme():
    with pytest.raises(InvalidArgumentError, match="stratified"):
        ancestors(np.zeros(3), "stratified", default_rng(1))
