"""Modes on the real data, end to end: missed, seen, and where they cannot be looked for."""

import json
from dataclasses import replace

import numpy as np
import pytest

import bread
from bread.report.container import group_names, read_attributes, read_group
from tests.models.reference import HMCKernel, MarginalMixture, NormalMean
from tests.support.reports import assert_same_report

QUICK = {
    "simulate_from": "prior", "random_seed": 1, "cores": 1, "progressbar": False, "path": "prior", "tune": 20,
    "tune_on": "shared",
}  # fmt: skip
NORMAL = NormalMean(np.array([0.4, 1.9, 1.1]), prior_mean=0.5, prior_sd=1.5, noise_sd=1.2, kernel=HMCKernel(5))


def cost(report, phase):
    group = read_group(report, "cost")
    return int(group["n_gradients"].sel(phase=phase))


def test_a_narrow_heavy_mode_that_annealing_misses():
    """Nine tenths of the mass lie within 0.03 of 0.3; chains from the prior find the wide mode near -4.5."""
    model = MarginalMixture(np.array([0.3]))
    report = bread.check(model, **QUICK, n_temperatures=[8, 16], simulations=12)
    group = read_group(report, "modes")
    assert group["missed"].values.tolist() == [True, False]
    assert abs(float(group["place"][0, 0]) - 0.3) < 0.01
    zero, one = model.component_log_evidence(model.summarise({"y": model.y[None, :]}))[:, 0]
    exact = float(zero + np.log(0.987))  # of the proposal's region, where the mode is Gaussian: |t5| up to 2.57
    assert abs(float(group["log_evidence"][0]) - exact) < 4 * float(group["log_evidence_error"][0]) + 0.01
    assert float(group["mass"][0]) < 1 / (1 + np.exp(one - zero))  # at least: never more than it holds
    verdict = bread.verdict(report)
    assert verdict.status == "not converged" and verdict.n_missed_modes == 1
    assert "On your data a mode at location = 0.3 holds at least" in verdict.details


def test_the_same_bits_on_two_cores_and_one_mode_of_a_normal_posterior():
    settings = QUICK | {"n_temperatures": [4, 8], "simulations": 4}
    one = bread.check(NORMAL, **settings)
    assert_same_report(one, bread.check(NORMAL, **(settings | {"cores": 2})))
    group = read_group(one, "modes")
    assert group["missed"].values.tolist() == [False]
    assert bread.verdict(one).n_missed_modes == 0
    assert 0 < cost(one, "modes") == group.attrs["n_gradients"] < 200


def test_own_draws_that_lie_in_the_missed_mode_are_not_blamed():
    model = MarginalMixture(np.array([0.3]))
    own = model.draw_posterior(model.observed_data, 4000, np.random.default_rng(2)).reshape(4, 1000)
    report = bread.check(model, **QUICK, n_temperatures=[8, 16], simulations=12, posterior={"location": own})
    group = read_group(report, "modes")
    assert abs(float(group["share_own"][0]) - 0.9) < 0.06
    verdict = bread.verdict(report)
    assert verdict.status == "not converged"
    assert "of your own draws are there: it is the certified draws that miss it" in verdict.details


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"draws": 20}, "fewer than 50 are too few"),
        ({"draws": 0}, "fewer than 50 are too few"),
        (
            {"simulate_from": "localised", "posterior": {"mean": np.linspace(0.0, 2.0, 20)[None]}},
            "there are 20 draws of",
        ),
    ],
)
def test_left_out_with_a_reason(changes, reason):
    report = bread.check(NORMAL, **(QUICK | {"n_temperatures": [4, 8], "simulations": 4} | changes))
    assert "modes" not in group_names(report)
    assert reason in " ".join(json.loads(read_attributes(report)["warnings"]))
    assert bread.verdict(report).n_missed_modes is None


def test_discrete_coordinates_and_kernels_without_gradients_are_left_out_with_a_reason():
    from tests.support.reference_models import CONJUGATE

    for name, reason in (("label_mixture", "discrete"), ("normal_mean", "no gradient of the whole density")):
        report = bread.check(CONJUGATE[name], **QUICK, n_temperatures=[4, 8], simulations=3)
        assert "modes" not in group_names(report)
        assert reason in " ".join(json.loads(read_attributes(report)["warnings"]))


LOCALISED = {"simulate_from": "localised", "n_temperatures": [4, 8], "simulations": 10}


def test_a_mode_of_the_users_model_is_found_where_another_is_annealed():
    """Nine tenths of the mass lie within 0.03 of 0.3; all draws given, and so the localised law, are near -4.5."""
    model = MarginalMixture(np.array([0.3]))
    every = model.draw_posterior(model.observed_data, 20_000, np.random.default_rng(2))[:, 0]
    wide = every[every < -1.0][:800].reshape(4, 200)
    report = bread.check(model, **(QUICK | LOCALISED), posterior={"location": wide})
    group = read_group(report, "modes")
    assert group["missed"].values.tolist() == [True, False] and abs(float(group["place"][0, 0]) - 0.3) < 0.01
    assert abs(float(group["annealed_mean"][0]) - wide.mean()) < 0.2  # of the draws under test
    zero, one = model.component_log_evidence(model.summarise({"y": model.y[None, :]}))[:, 0]
    exact = float(zero + np.log(0.987))  # as above
    assert abs(float(group["log_evidence"][0]) - exact) < 4 * float(group["log_evidence_error"][0]) + 0.01
    assert float(group["mass"][0]) < 1 / (1 + np.exp(one - zero))
    verdict = bread.verdict(report)
    assert verdict.status == "not converged" and verdict.n_missed_modes == 1
    assert "and none of your " in verdict.details
    both = bread.check(model, **(QUICK | LOCALISED), posterior={"location": every[:4000].reshape(4, 1000)})
    assert bread.verdict(both).n_missed_modes == 0  # the control: draws that have both


def test_localised_checks_ask_the_users_own_model_on_any_number_of_cores():
    own = NORMAL.fit(seed=3, cores=1, progressbar=False).draws
    settings = QUICK | LOCALISED | {"posterior": own}
    one = bread.check(NORMAL, **settings)
    assert_same_report(one, bread.check(NORMAL, **(settings | {"cores": 2})))
    assert bread.verdict(one).n_missed_modes == 0 and read_group(one, "modes").attrs["tested_draws"] == "posterior="
    fit = read_group(one, "fit")
    assert "mean" in fit["node"].values and "mean" not in json.loads(fit.attrs["left_out"])  # against its own prior
    far = bread.check(replace(NORMAL, prior_mean=14.0), **settings)  # 8 prior standard deviations away
    assert bread.verdict(far).fit == "poor" and bread.verdict(one).fit == "ok"


REGIME = 11.7  # its distance in standard deviations: 68 nats


def draws_without_the_regime():
    """Draws of mu given w alone: prior N(0, 1), two outcomes with variance 1 and mean 0.05."""
    return {"mu": 0.1 / 3 + np.sqrt(1 / 3) * np.random.default_rng(1).standard_normal((4, 250))}


@pytest.mark.slow
@pytest.mark.pymc
@pytest.mark.parametrize("prior", ["proper", "flat"])
def test_a_regime_of_a_pymc_model_where_another_is_annealed(prior):
    """0.4% of the prior's mass, a log evidence 68 nats higher: all of the posterior, and none of the draws."""
    import pymc as pm

    with pm.Model() as model:
        mu = pm.Flat("mu") if prior == "flat" else pm.Normal("mu", 0.0, 1.0)
        pm.Normal("w", mu, 1.0, observed=np.array([0.3, -0.2]))
        pm.Normal("y", REGIME * pm.math.sigmoid(40 * (mu - 2.65)), 1.0, observed=np.array([REGIME]))
    settings = QUICK | LOCALISED | {"path": "reference", "draws": 52, "hyperparameters": ["mu"]}
    report = bread.check(model, **settings, posterior=draws_without_the_regime())
    verdict, group = bread.verdict(report), read_group(report, "modes")
    assert verdict.status == "not converged" and verdict.n_missed_modes == 1
    assert abs(float(group["place"][0, 0]) - 2.7) < 0.1 and bool(group.attrs["has_prior_draws"]) == (prior == "proper")


@pytest.mark.slow
@pytest.mark.stan
@pytest.mark.parametrize("prior", ["mu ~ normal(0, 1);", ""])
def test_a_regime_of_a_stan_program_where_another_is_annealed(prior):
    pytest.importorskip("lark")
    program = f"""
    data {{ vector[2] w; real y; }}
    parameters {{ real mu; }}
    model {{ {prior} w ~ normal(mu, 1); y ~ normal({REGIME} * inv_logit(40 * (mu - 2.65)), 1); }}
    """
    data = {"w": np.array([0.3, -0.2]), "y": REGIME}
    settings = QUICK | LOCALISED | {"path": "reference", "draws": 52, "hyperparameters": ["mu"]}
    report = bread.check(program, data=data, observed=["w", "y"], **settings, posterior=draws_without_the_regime())
    verdict, group = bread.verdict(report), read_group(report, "modes")
    assert verdict.status == "not converged" and verdict.n_missed_modes == 1
    assert abs(float(group["place"][0, 0]) - 2.7) < 0.1 and bool(group.attrs["has_prior_draws"]) == bool(prior)


@pytest.mark.slow
@pytest.mark.pymc
def test_a_pymc_model():
    import pymc as pm

    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 2.0)
        tau = pm.HalfNormal("tau", 1.0)
        pm.Normal("y", mu, tau, observed=np.array([0.4, 1.9, 1.1, 0.7, 1.4]))
    report = bread.check(model, **(QUICK | {"path": "reference"}), n_temperatures=4, simulations=3, draws=52)
    group = read_group(report, "modes")
    assert list(group["parameter"].values) == ["mu", "tau"]
    assert group["missed"].values.tolist() == [False]
    # A region of the mode holds nearly all: its evidence is that of the chains' lower bound, up to a share.
    assert abs(float(group["log_evidence"][0]) - group.attrs["log_evidence_of_draws"]) < 0.5


@pytest.mark.slow
@pytest.mark.stan
def test_a_stan_program():
    pytest.importorskip("lark")
    from tests.support.stan_conjugate import NORMAL_MEAN

    y = np.array([0.4, 1.9, 1.1])
    report = bread.check(
        NORMAL_MEAN, data={"N": 3, "y": y}, **(QUICK | {"path": "reference"}), n_temperatures=[4, 8], simulations=3
    )
    group = read_group(report, "modes")
    assert list(group["parameter"].values) == ["mu"] and group["missed"].values.tolist() == [False]
    precision = 1 / 1.5**2 + 3 / 1.2**2
    assert abs(float(group["place"][0, 0]) - (0.5 / 1.5**2 + y.sum() / 1.2**2) / precision) < 1e-3
    covariance = 1.2**2 * np.eye(3) + 1.5**2
    from scipy import stats

    exact = stats.multivariate_normal(np.full(3, 0.5), covariance).logpdf(y) + np.log(
        2 * stats.norm.cdf(stats.t(5).ppf(0.975)) - 1
    )
    assert abs(float(group["log_evidence"][0]) - exact) < 4 * float(group["log_evidence_error"][0])
