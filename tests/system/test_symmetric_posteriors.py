"""Data sets simulated at draws of the fit, where the posterior mean lies between modes or in the hole of a ring."""

import numpy as np
import pytest
from numpy.random import SeedSequence

import bread
from bread.backends.base import Kernel
from bread.paths.kinds import PriorPath
from bread.report.container import read_group
from bread.running.pilots.fitted_hyperparameters import HeldDraws
from bread.statistics.bounds.certificate import error_by_simulation, error_interval
from tests.support.marks import slow_but
from tests.support.symmetric_models import SHARE, SYMMETRIC, in_one_part

QUICK = {
    "simulate_from": "fitted", "path": "prior", "tune": 40, "simulations": 12, "init_steps": 50, "draws": 250,
    "cores": 1, "progressbar": False,
}  # fmt: skip
TEMPERATURES = {"ring": (8, 32), "product": (16, 64), "clusters": (16, 64)}
MAX_ERROR = 0.5
FALSE_ALARMS = ("bug", "mismatch", "disagreement")


def judge(name, seed, **changes):
    """Return the verdict of a check, and which certified draws on the real data lie in one part of the posterior."""
    model = SYMMETRIC[name]
    settings = QUICK | {"n_temperatures": TEMPERATURES[name], "max_error": MAX_ERROR, "random_seed": seed} | changes
    report = bread.check(model, **settings)
    posterior = read_group(report, "posterior")
    states = np.stack([posterior[each].values.ravel() for each in model.coordinates], axis=1)
    return bread.verdict(report), in_one_part(name, states)


def stuck(name, seed):
    """Return exact posterior draws of one part alone, as four chains that agree with each other."""
    model = SYMMETRIC[name]
    states = model.draw_posterior(model.observed_data, 3000, np.random.default_rng(seed))
    if name == "clusters":
        states = np.sort(states, axis=1)  # every order of labels is as likely: this is a draw of one order
    states = states[in_one_part(name, states)][:1200].reshape(4, 300, model.dim)
    return {each: states[..., i] for i, each in enumerate(model.coordinates)}


def assert_right(verdict, inside, name, *, may_mismatch=False):
    """No false alarm; certified draws hold the share that the symmetry says, up to V and 4 standard errors."""
    assert verdict.status not in FALSE_ALARMS or (may_mismatch and verdict.status == "mismatch"), verdict
    assert verdict.n_missed_modes == 0
    noise = 4 * np.sqrt(SHARE[name] * (1 - SHARE[name]) / len(inside))
    if verdict:
        assert abs(inside.mean() - SHARE[name]) < verdict.error_limit + noise
    assert 0.3 * SHARE[name] < inside.mean() < 1 - 0.3 * SHARE[name]  # here annealing finds all parts, with any verdict


@pytest.mark.statistical
@pytest.mark.parametrize("name", slow_but(["ring"], SYMMETRIC))
def test_a_fit_of_the_whole_posterior(name):
    verdict, inside = judge(name, 1)
    assert verdict.status == "converged"
    assert_right(verdict, inside, name)


@pytest.mark.statistical
@pytest.mark.parametrize("name", slow_but(["product"], SYMMETRIC))
def test_a_fit_that_was_stuck_in_one_part_never_converges(name):
    verdict, inside = judge(name, 1, posterior=stuck(name, 1))
    assert verdict.status == "disagreement" and verdict.comparison == "disagreement"
    assert 0.3 * SHARE[name] < inside.mean() < 1 - 0.3 * SHARE[name]


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", SYMMETRIC)
def test_no_false_verdict_with_ten_seeds(name):
    """A mismatch is said at p <= 0.05: more than 3 of 20 have probability 0.016 where nothing is wrong."""
    n_mismatches = 0
    for seed in range(1, 11):
        verdict, inside = judge(name, seed)
        n_mismatches += verdict.status == "mismatch"
        assert_right(verdict, inside, name, may_mismatch=True)
        verdict, _ = judge(name, seed, posterior=stuck(name, seed))
        n_mismatches += verdict.status == "mismatch"
        assert verdict.status not in ("converged", "bug"), verdict
        # Is the missed mass beyond what annealed draws are off by (V), and 4 standard errors of 250 draws?
        is_beyond = verdict.error_limit + 4.0 * 0.5 / np.sqrt(250) < 1.0 - SHARE[name]
        assert verdict.comparison == "disagreement" or (verdict.comparison == "difference" and not is_beyond), verdict
    assert n_mismatches <= 3


def error_on_real_data(model, n_temperatures, step_size, n=400):
    """Return V of the real data, with limits, from exact posterior draws: the truth that a check estimates."""
    kernel = Kernel(np.array([1.0]), {"step_size": np.array([step_size]), "inverse_metric": np.ones((1, model.dim))})
    path, betas = PriorPath(), np.linspace(0.0, 1.0, n_temperatures) ** 2
    rows = model.rows({name: np.repeat(value[None], n, axis=0) for name, value in model.observed_data.items()})
    seeds = [SeedSequence(4, spawn_key=(i,)).spawn(3) for i in range(n)]
    initial = {
        "forward": rows.draw_base(path, [each[0] for each in seeds]),
        "reverse": model.draw_posterior(model.observed_data, n, np.random.default_rng(4)),
    }
    weights = {
        way: rows.anneal(
            path, betas, kernel, direction=way, initial=initial[way], seeds=[each[number] for each in seeds]
        ).log_weight.reshape(-1, 4)
        for number, way in enumerate(("forward", "reverse"), start=1)
    }
    return error_interval(error_by_simulation(weights["forward"], weights["reverse"]))


class HeldAtMean(HeldDraws):
    """The planted fault: one estimate for all data sets."""

    def __init__(self, fit, names, root):
        super().__init__(fit, names, root)
        flat = fit.flat_draws()
        self.means = {name: flat[name].mean(axis=0) for name in names}

    def of(self, simulation, index, attempt=0):
        return self.means


@pytest.mark.statistical
def test_held_at_the_mean_data_sets_are_too_easy_and_the_verdict_is_false(monkeypatch):
    """The negative control: the mean of (a, b) is about (0, 0), so that every data set is noise about 0.

    On these V is small. On the real data, where the posterior has two halves, it is not.
    """
    changes = {"n_temperatures": (8, 32), "max_error": 0.28}
    assert judge("product", 1, **changes)[0].status != "converged"
    monkeypatch.setattr("bread.running.check.runner.HeldDraws", HeldAtMean)
    at_mean, _ = judge("product", 1, **changes)
    assert at_mean.status == "converged"
    truth = min(error_on_real_data(SYMMETRIC["product"], 32, step).lower for step in (0.1, 0.2, 0.3))
    assert truth > at_mean.error_limit
