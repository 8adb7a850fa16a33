"""Each planted bug does what it says, and its good twin does not: told by long runs, without the battery."""

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng

from bread.backends.base import Kernel
from bread.debugging.stepper import as_stepper
from bread.paths.kinds import PriorPath
from tests.support.mutants import MUTANTS
from tests.support.mutants.long_runs import LIMIT, chains, law_score, memory, restart_score, reversal_score

BY_PART = {part: [name for name, mutant in MUTANTS.items() if mutant.breaks == part] for part in (
    "law", "reversibility", "gradient", "cache", "history", "memory", "streams", "motion", "paths", "nothing",
)}  # fmt: skip
FAST = (
    "support-offset", "missing-jacobian", "normaliser-sign", "ratio-inverted", "reflected-step", "gibbs-together",
    "slice-one-sided", "wrong-triangle",
)  # fmt: skip
SMALL = ("half-against-itself",)  # see below
LONGER = {"u-turn-edge": 1000, "lkj-onion": 400, "momentum-not-negated": 400, "half-step": 600,
          "density-kept": 400, "aliasing": 400}  # fmt: skip


def law_is_broken_and_was_not(name, n_chains=200, n_steps=100):
    mutant = MUTANTS[name]
    if mutant.family == "nuts":
        n_steps //= 3
    n_chains = LONGER.get(name, n_chains)
    good = law_score(mutant.good(), n_chains=n_chains, n_steps=n_steps)
    bad = law_score(mutant.bad(), n_chains=n_chains, n_steps=n_steps)
    assert good < LIMIT < bad, f"good {good:.1f}, bad {bad:.1f} standard errors"


def test_there_are_enough_and_each_says_why():
    assert len(MUTANTS) >= 40
    families = {mutant.family for mutant in MUTANTS.values()}
    assert families >= {"simulator", "density", "tempering", "metropolis", "hmc", "nuts", "compound", "ensemble",
                        "particles", "adaptation", "randomness", "tests"}  # fmt: skip
    for mutant in MUTANTS.values():
        assert mutant.why and mutant.defect and mutant.targets
    assert sum(mutant.detectable for mutant in MUTANTS.values()) >= 40


@pytest.mark.statistical
@pytest.mark.parametrize("name", FAST)
def test_bugs_of_the_law_change_it(name):
    law_is_broken_and_was_not(name, n_chains=100, n_steps=50)


@pytest.mark.study
@pytest.mark.statistical
@pytest.mark.parametrize("name", [name for name in BY_PART["law"] if name not in SMALL])
def test_all_bugs_of_the_law_change_it(name):
    law_is_broken_and_was_not(name)


@pytest.mark.study
@pytest.mark.statistical
@pytest.mark.parametrize("name", BY_PART["nothing"] + BY_PART["gradient"] + BY_PART["motion"])
def test_bugs_that_leave_the_law_alone_do(name):
    mutant = MUTANTS[name]
    assert law_score(mutant.good()) < LIMIT
    assert law_score(mutant.bad()) < LIMIT


@pytest.mark.study
@pytest.mark.statistical
@pytest.mark.parametrize("name", BY_PART["reversibility"])
def test_bugs_of_reversibility_leave_the_law_alone(name):
    mutant = MUTANTS[name]
    assert law_score(mutant.bad(), n_steps=50) < LIMIT
    assert reversal_score(mutant.good(), n_chains=300) < LIMIT < reversal_score(mutant.bad(), n_chains=300)


@pytest.mark.statistical
@pytest.mark.parametrize("name", BY_PART["motion"])
@pytest.mark.slow
def test_chains_without_motion_remember_where_they_began(name):
    mutant = MUTANTS[name]
    assert memory(mutant.good()) < 0.1 < 0.3 < memory(mutant.bad())


@pytest.mark.parametrize("name", BY_PART["gradient"])
def test_bugs_of_the_gradient_are_seen_by_differences(name):
    for case, is_right in ((MUTANTS[name].good(), True), (MUTANTS[name].bad(), False)):
        draws = case.target.simulate(20, default_rng(1))
        step = 1e-6 * np.eye(case.target.dim)
        slope = [(case.target.log_density(draws + h) - case.target.log_density(draws - h)) / 2e-6 for h in step]
        assert np.allclose(np.stack(slope, axis=1), case.target.gradient(draws), atol=1e-4) == is_right


@pytest.mark.parametrize("name", [*BY_PART["cache"], "density-kept"])
def test_bugs_of_the_cache_carry_another_density(name):
    for case, is_right in ((MUTANTS[name].good(), True), (MUTANTS[name].bad(), False)):
        kernel, rng = case.kernel, default_rng(2)
        carry = kernel.start(case.target.simulate(1, rng)[0], rng)
        gaps = []
        for _ in range(20):
            carry = kernel.step(carry, rng)
            gaps.append(kernel.log_density(carry) - case.target.log_density(kernel.position(carry)))
        assert np.allclose(gaps, 0.0, atol=1e-9) == is_right


@pytest.mark.parametrize("name", BY_PART["history"])
def test_bugs_of_history_depend_on_other_chains(name):
    for case, is_right in ((MUTANTS[name].good(), True), (MUTANTS[name].bad(), False)):
        first = chains(case, 3, 30, seed=4)
        assert np.array_equal(first, chains(case, 3, 30, seed=4)) == is_right


@pytest.mark.statistical
@pytest.mark.parametrize("name", BY_PART["memory"])
def test_bugs_of_memory_make_a_restart_another_chain(name):
    assert restart_score(MUTANTS[name].good()) < 4.0 < 5.0 < restart_score(MUTANTS[name].bad())


def test_chains_with_a_seed_of_their_own_move_alike():
    for case, is_right in ((MUTANTS["shared-seed"].good(), True), (MUTANTS["shared-seed"].bad(), False)):
        kernel, moves = as_stepper(case.kernel), []
        for seed in range(40):
            rng = default_rng(seed)
            start = case.target.simulate(1, rng)[0]
            end = kernel.position(kernel.step(kernel.start(start, rng), rng))
            if not np.array_equal(end, start):
                moves.append(tuple((end - start).round(9)))
        assert (len(set(moves)) == len(moves)) == is_right


def test_draws_that_are_seeded_repeat_themselves():
    for case, is_right in ((MUTANTS["seeded-draws"].good(), True), (MUTANTS["seeded-draws"].bad(), False)):
        draws = case.target.simulate(64, default_rng(5))
        assert (len(np.unique(draws, axis=0)) == 64) == is_right


@pytest.mark.statistical
@pytest.mark.parametrize("name", BY_PART["paths"])
def test_bugs_of_tempering_bias_the_weights(name):
    """E[w] = Z forward and E[1 / w] = 1 / Z in reverse, Z known; 20,000 chains each, 5 standard errors."""
    n, betas, path = 20_000, np.linspace(0.0, 1.0, 5), PriorPath()
    frozen = Kernel(np.array([0.0, 1.0]), {})
    for is_bad in (False, True):
        model = MUTANTS[name].build(None, is_bad)
        data = model.observed_data
        posterior, log_z, rng = model.condition(data), model.log_evidence(data), default_rng(6)
        seeds = SeedSequence(7).spawn(2 * n)
        scores = []
        for direction, sign, starts in (
            ("forward", 1.0, model.draw_prior(n, rng)), ("reverse", -1.0, model.draw_posterior(data, n, rng)),
        ):  # fmt: skip
            own = seeds[:n] if direction == "forward" else seeds[n:]
            run = posterior.anneal(path, betas, frozen, direction=direction, initial=starts, seeds=own)
            log_w = (np.diff(betas) * run.log_ratio[:, :-1]).sum(axis=1)
            ratio = np.exp(sign * (log_w - log_z))
            scores.append(abs(ratio.mean() - 1.0) / (ratio.std() / np.sqrt(n)))
        assert (max(scores) > 5.0) == is_bad


@pytest.mark.statistical
def test_walkers_that_move_against_one_another_become_correlated_a_little():
    """The smallest of all effects: two walkers, each along the line through the other, at the same time.

    Given where the other was each keeps its law; together they do not, by a correlation of -0.01 that needs 10^5
    draws. The good twin moves the second against where the first went.
    """
    n = 300_000
    for is_bad in (False, True):
        rng = default_rng(8)
        walkers = np.log(rng.standard_exponential((2, n)))
        for _ in range(4):
            new = walkers.copy()
            for i in (0, 1):
                other = (walkers if is_bad else new)[1 - i]
                y = other + 0.5 * (1.0 + rng.random(n)) ** 2 * (walkers[i] - other)
                ratio = (y - np.exp(y)) - (walkers[i] - np.exp(walkers[i]))
                new[i] = np.where(np.log(rng.random(n)) < ratio, y, walkers[i])
            walkers = new
        z = np.corrcoef(walkers)[0, 1] * np.sqrt(n)
        assert (abs(z) > 4.0) == is_bad
