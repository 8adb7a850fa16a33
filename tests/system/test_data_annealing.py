"""`bread.lab.data_annealing` on conjugate models: exact evidence, limits, reports, refusals."""

import numpy as np
import pytest
from scipy.stats import binom, norm

import bread
from bread.errors import InvalidArgumentError, UnsupportedModelError
from bread.paths.kinds import PriorPath
from bread.report.compat import require_group
from bread.seeds import Purpose, seed_sequence
from tests.models.reference import HMCKernel, NormalMean
from tests.models.reference.models.beta_binomial import BetaBinomial
from tests.models.reference.models.gaussian_models import HierarchicalNormal, LinearRegression
from tests.support.direct_models import UncorrectedDrift, WideDataDraws, WidePriorDraws

Y = np.array([0.4, 1.9, 1.1, 0.7, 1.6, -0.3])
X = np.array([[0.3, -1.2], [1.1, 0.4], [-0.7, 0.9], [0.2, 1.5], [-1.4, 0.1], [0.8, -0.6]])
SUCCESSES, TRIALS = np.array([3, 0, 5, 2]), np.array([7, 4, 6, 9])
MEAN = NormalMean(Y, prior_sd=2.0)
MODELS = [MEAN, LinearRegression(Y, X, kernel=HMCKernel()), BetaBinomial(SUCCESSES, TRIALS)]
TERMS = [
    lambda state: norm.logpdf(Y, state[0]),
    lambda state: norm.logpdf(Y, X @ state),
    lambda state: binom.logpmf(SUCCESSES, TRIALS, 1 / (1 + np.exp(-state[0]))),
]
NAMES = [type(model).__name__ for model in MODELS]
SEED = 4


def run(model, **options):
    report = bread.lab.data_annealing(model, random_seed=SEED, progressbar=False, **options)
    return report, require_group(report, "data_annealing")


@pytest.mark.parametrize(("model", "terms"), list(zip(MODELS, TERMS, strict=True)), ids=NAMES)
def test_first_observations(model, terms):
    states = np.random.default_rng(2).standard_normal((3, model.dim))
    wanted = np.array([np.cumsum(terms(state)) for state in states])
    for n in range(1, model.n_observations() + 1):
        found = model.condition_first(model.observed_data, n).log_ratio(PriorPath(), states)
        assert found == pytest.approx(wanted[:, n - 1], abs=1e-10)


@pytest.mark.parametrize(("model", "terms"), list(zip(MODELS, TERMS, strict=True)), ids=NAMES)
def test_all_observations_but_one(model, terms):
    states = np.random.default_rng(3).standard_normal((3, model.dim))
    wanted = np.array([terms(state) for state in states])
    whole = model.condition(model.observed_data).log_ratio(PriorPath(), states)
    for index in range(model.n_observations()):
        found = whole - model.condition_without(model.observed_data, index).log_ratio(PriorPath(), states)
        assert found == pytest.approx(wanted[:, index], abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=NAMES)
def test_exact_evidence_is_between(model):
    """Limits hold at 99.9% on each of 4 data sets; estimates are within 0.6 nats, 5 standard deviations or more."""
    report, found = run(model, simulations=4, runs=5, particles=64, level=0.999, with_harmonic=True)
    data = model.simulate(4, fixed=None, seed=seed_sequence(SEED, Purpose.DATA_ANNEALING, 0, 0, 0)).data
    exact = model.log_evidence_rows(data)
    assert (found["lower"].values < exact).all() and (exact < found["upper"].values).all()
    assert np.abs(found["log_evidence"].values - exact).max() < 0.6
    real = model.log_evidence(model.observed_data)
    assert found.attrs["real_lower"] < real
    assert abs(found.attrs["real_log_evidence"] - real) < 0.6
    assert (found["forward_evaluations"] > 0).all() and found.attrs["n_failed"] == 0
    assert (found["forward_gradients"] > 0).all() == (model is not MEAN)
    assert "harmonic" in found and len(bread.summary(report)) == 4


def test_a_report_is_repeatable():
    options = {"simulations": 5, "particles": 16, "runs": 2, "blocks": 3}
    (report, first), (_, second) = run(MEAN, **options), run(MEAN, **options)
    assert first.identical(second)
    assert first["observations"].values.tolist() == [2, 4, 6]
    assert bread.verdict(report).status in ("sandwiched", "inconclusive") and not bread.verdict(report)
    assert list(bread.summary(report).columns[:4]) == ["log_evidence", "lower", "upper", "gap"]


SMALL = {"particles": 8, "runs": 2, "simulations": 5, "blocks": 2}


@pytest.mark.parametrize("broken", [WidePriorDraws, WideDataDraws])
def test_draws_that_do_not_follow_the_density_are_a_bug(broken):
    """Wide draws of the prior alone leave the bounds near each other, and the lower limit above the evidence."""
    report, _ = run(broken(Y, prior_sd=2.0, noise_sd=2.0), **SMALL)
    verdict = bread.verdict(report)
    assert verdict.status == "bug" and "not follow" in verdict.details
    right, _ = run(MEAN, **SMALL)
    assert bread.verdict(right).status != "bug"


def test_a_kernel_that_moves_exact_draws_away_is_a_bug():
    report, _ = run(NormalMean(Y, kernel=UncorrectedDrift()), **SMALL)
    assert bread.verdict(report).status == "bug" and "kernel" in bread.verdict(report).details


@pytest.mark.parametrize("reader", [bread.to_html, bread.to_markdown, bread.evidence, bread.plot_report])
def test_readers_of_checks_say_what_reads_this(reader):
    report, _ = run(MEAN, **SMALL)
    with pytest.raises(InvalidArgumentError, match="of bread.lab.data_annealing.*bread.verdict"):
        reader(report)


def test_few_particles_are_not_called_sandwiched():
    """Two particles on precise data: the bounds are far apart, and say so."""
    precise = NormalMean(np.full(4, 1.5), prior_sd=3.0, noise_sd=0.02)
    report, found = run(precise, simulations=6, particles=2, runs=2, blocks=1)
    assert found.attrs["mean_gap"] > 20
    assert bread.verdict(report).status == "inconclusive"


def test_runs_that_lost_all_particles_are_counted():
    report, _ = run(MEAN, **SMALL)
    group = require_group(report, "data_annealing")
    group["forward"][1, 0] = -np.inf
    verdict = bread.verdict(report)
    assert (
        verdict.status == "inconclusive"
        and "on 1 of 5 data sets" in verdict.details
        and "lost their weight" in verdict.details
    )


def test_real_data_alone():
    report, found = run(MEAN, simulations=0, particles=8, runs=2)
    assert found.sizes["simulation"] == 0 and np.isfinite(found.attrs["real_lower"])
    assert bread.verdict(report).status == "inconclusive" and bread.summary(report).empty


def test_dependent_observations_are_refused():
    model = HierarchicalNormal(Y[:3], np.ones(3))
    with pytest.raises(UnsupportedModelError, match="do not split"):
        run(model)


@pytest.mark.parametrize(
    "options",
    [{"blocks": 7}, {"blocks": 0}, {"particles": 1}, {"runs": 0}, {"moves": 0}, {"resampling": "residual"},
     {"resample_every": 0}, {"level": 1.0}, {"max_gap": 0.0}, {"tune": 3}, {"simulations": -1}],
)  # fmt: skip
def test_arguments(options):
    with pytest.raises(InvalidArgumentError):
        run(MEAN, **options)
