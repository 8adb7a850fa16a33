"""A fit in steps: it says which chains it wants, and is the same wherever and in whichever order they have run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bread.digests import digest
from bread.errors import DensityError
from bread.fitting.search.pilot_chains import run_chain
from bread.fitting.search.reference_fit import BegunFit, FitRequest, begin_fit, continue_fit, fit_reference
from bread.fitting.search.work import Part
from tests.models.reference import AbsoluteMean, HMCKernel, NormalMean

ONE = NormalMean(np.array([0.9, 1.5]), prior_sd=20.0, kernel=HMCKernel(5))
TWO = AbsoluteMean(np.array([1.1, 0.9, 1.2, 1.0]), kernel=HMCKernel(5))
REQUEST = FitRequest(1, np.zeros(1, dtype=bool), 60)
SEEDS = {"root": 3, "simulation": 0}


class Failing:
    """A posterior on which some chains of a fit fail as they adapt, and some as they run."""

    def __init__(self, posterior, adapting=(), running=()):
        self.posterior = posterior
        self.failing = {Part.ADAPT: adapting, Part.EVOLVE: running}

    def __getattr__(self, name):
        return getattr(self.posterior, name)

    def refuse(self, seed):
        part, index = seed.spawn_key[-2:]
        if index in self.failing.get(part, ()):
            raise DensityError(f"chain {index} failed")

    def adapt(self, path, beta, state, seed, n_steps, *, previous):
        self.refuse(seed)
        return self.posterior.adapt(path, beta, state, seed, n_steps, previous=previous)

    def evolve(self, path, kernel, beta, state, keep, seed):
        self.refuse(seed)
        return self.posterior.evolve(path, kernel, beta, state, keep, seed)


def conditioned(model):
    return model.condition(model.observed_data)


def in_steps(posterior, request, as_index=lambda index: index):
    """Return the fit, and the chains that it wanted at each step, which are run last first."""
    begun, wanted = begin_fit(posterior, request, **SEEDS), []
    while isinstance(begun, BegunFit):
        wanted.append(list(begun.wanted))
        run = {
            index: run_chain(posterior, begun.initial[index], as_index(index), request.n_steps, **SEEDS)
            for index in reversed(begun.wanted)
        }
        before = digest(begun)
        given = begun.with_chains(run[index] for index in begun.wanted)
        begun, again = (continue_fit(posterior, given, **SEEDS) for _ in range(2))
        assert digest(begun) == digest(again) and digest(replace(given, chains=given.chains[: -len(run)])) == before
    return begun, wanted


@pytest.mark.parametrize(
    ("model", "request_", "failing", "wanted"),
    [
        (ONE, REQUEST, {}, [[0, 1]]),
        (TWO, REQUEST, {}, [[0, 1], [2, 3]]),
        (ONE, REQUEST, {"adapting": (0,)}, [[0, 1], [2]]),
        (TWO, REQUEST, {"running": (1,)}, [[0, 1], [2], [3]]),
        (ONE, REQUEST, {"adapting": (0,), "running": (1,)}, [[0, 1], [2, 3]]),
        (TWO, REQUEST, {"adapting": (2, 3)}, [[0, 1], [2, 3]]),
        (ONE, replace(REQUEST, family="full"), {}, [[0, 1, 2, 3]]),
        (ONE, replace(REQUEST, n_chains=3), {}, [[0, 1, 2]]),
        (ONE, replace(REQUEST, n_chains=1), {}, [[0]]),
    ],
)
def test_chains_are_wanted_only_where_they_are_needed(model, request_, failing, wanted):
    """Half of them first, where these may be enough; a chain that failed is replaced by the next."""
    posterior = Failing(conditioned(model), **failing)
    fit, asked = in_steps(posterior, request_)
    assert asked == wanted
    alone = fit_reference(posterior, request_, **SEEDS)
    assert digest(fit) == digest(alone)
    assert fit.n_chains == sum(map(len, wanted))
    n_failed = sum(len(chains) for chains in failing.values())
    assert len(fit.draws) == REQUEST.n_steps * (fit.n_chains - n_failed)


def test_a_chain_with_other_random_numbers_is_noticed():
    """Negative control."""
    fit, _ = in_steps(conditioned(TWO), REQUEST)
    other, _ = in_steps(conditioned(TWO), REQUEST, as_index=lambda index: index + 4 * (index == 3))
    assert digest(fit) != digest(other)
    n = REQUEST.n_steps
    np.testing.assert_array_equal(fit.draws[: 3 * n], other.draws[: 3 * n])
    assert not np.array_equal(fit.draws[3 * n :], other.draws[3 * n :])


def test_what_a_chain_spent_before_it_failed_counts():
    begun = begin_fit(conditioned(ONE), REQUEST, **SEEDS)
    whole, running, adapting = (
        run_chain(Failing(conditioned(ONE), **failing), begun.initial[1], 1, REQUEST.n_steps, **SEEDS)
        for failing in ({}, {"running": (1,)}, {"adapting": (1,)})
    )
    assert whole.failure is None and len(whole.states) == REQUEST.n_steps
    assert running.failure == adapting.failure == "chain 1 failed"
    assert whole.n_gradients > running.n_gradients > adapting.n_gradients == 0 == len(running.states)


def test_where_every_chain_fails_the_last_error_is_told():
    posterior = Failing(conditioned(TWO), adapting=(0, 1, 2, 3))
    for fit in (fit_reference, lambda posterior, request, **_: in_steps(posterior, request)):
        with pytest.raises(DensityError, match="No pilot chain could run .* chain 3 failed"):
            fit(posterior, REQUEST, **SEEDS)
