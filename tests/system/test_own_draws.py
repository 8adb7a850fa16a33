"""Own draws against annealed ones, end to end on conjugate models: exact draws agree, wrong ones are told apart."""

import json
import warnings

import numpy as np
import pytest

import bread
from bread.fitting.gaussian.modes import fit_modes, widened
from bread.fitting.search import searches
from bread.report.compat import group_names, make_container, read_attributes, read_group
from tests.support.reference_models import BIMODAL, CONJUGATE

QUICK = {
    "simulate_from": "prior", "path": "reference", "n_temperatures": 8, "tune_on": "shared", "tune": 40, "cores": 1,
    "random_seed": 1, "progressbar": False,
}  # fmt: skip
MODEL = CONJUGATE["hierarchical_hmc"]
SINGLE = CONJUGATE["normal_mean_hmc"]  # its reference is the posterior: V is small
MODES = BIMODAL["absolute_mean_hmc"]


def exact(model, seed=3):
    """Return exact posterior draws, (chain, draw, ...)."""
    return model.fit(seed=seed, cores=1, progressbar=False).draws


def scaled(draws, name, factor):
    values = draws[name]
    return draws | {name: values.mean() + factor * (values - values.mean())}


def shifted(draws, name, by):
    return draws | {name: draws[name] + by * draws[name].std()}


def judge(model, draws, **changes):
    """Return what certified draws say of others; the first look, which sees most of it sooner, is left out."""
    report = bread.check(model, posterior=draws, **(QUICK | changes))
    groups = {name: read_group(report, name) for name in group_names(report) if name != "first_look"}
    return bread.verdict(make_container(groups, read_attributes(report))), groups.get("agreement")


@pytest.fixture(scope="module")
def right():
    return judge(MODEL, exact(MODEL))


@pytest.mark.statistical
def test_exact_draws_agree(right):
    verdict, agreement = right
    assert verdict.status == "converged" and verdict.comparison == "agreement" and verdict.agreement is True
    assert verdict.details.startswith("Converged. Your 90% intervals (4 chains) hold between 0.")
    assert 800 <= agreement.attrs["n_annealed"] <= 1000  # what limits within 0.025 and 0.05 need for 5 quantities
    limits = agreement["interval_content_ci"]
    width = (limits.sel(ci_bound="upper") - limits.sel(ci_bound="lower")).max("parameter").values / 2.0
    assert (width <= np.array([0.0275, 0.0525, 0.0275])).all()  # where shares are not quite 0.05, 0.5, 0.95
    names = ["mu", *(f"group_mean[{i}]" for i in range(3)), "log density"]
    assert agreement["parameter"].values.tolist() == names


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("change", "words", "distance"),
    [
        (lambda draws: scaled(draws, "mean", np.sqrt(0.5)), "your 90% interval of mean holds 0.7", 0.166),
        (lambda draws: scaled(draws, "mean", 2.0), "your 90% interval of mean holds 1.00", 0.323),
        (lambda draws: shifted(draws, "mean", 0.3), " of mean", 0.119),
    ],
    ids=["variance halved", "scale doubled", "shift 0.3 sd"],
)
def test_wrong_draws_disagree(change, words, distance):
    """``distance`` is the exact total variation, which is at least what the verdict says."""
    verdict, agreement = judge(SINGLE, change(exact(SINGLE)), random_seed=2)
    at_least = float(agreement["total_variation_lower"])
    assert at_least < distance and (at_least > 0.01 or distance < 0.15)
    assert ("wrong by at least 0." in str(verdict)) == (at_least >= 0.01)
    assert verdict.error_limit < 0.05
    assert verdict.status == "disagreement" and verdict.agreement is False
    assert words in verdict.details and "Run longer, or reparametrise." in verdict.details
    assert not bool(verdict)


@pytest.mark.statistical
def test_a_small_shift_is_a_difference_that_v_may_explain(monkeypatch):
    """Of a base that is a fifth too wide: found as it is, it is this posterior, and V is 0."""

    def wide_modes(*arguments, **options):
        found, n_gradients = fit_modes(*arguments, **options)
        return widened(found), n_gradients

    monkeypatch.setattr(searches, "fit_modes", wide_modes)
    verdict, agreement = judge(MODEL, shifted(exact(MODEL), "mu", 0.17))
    assert verdict.status == "inconclusive" and verdict.comparison == "difference" and verdict.agreement is None
    assert "own error" in verdict.details and "Ask for a smaller max_error=." in verdict.details
    mu = agreement.sel(parameter="mu")
    assert abs(float(mu["mean_shift"]) - 0.17) < 4 * float(mu["mean_shift_error"])


@pytest.mark.statistical
def test_four_chains_of_ten_draws_with_the_wrong_scale_are_too_few():
    draws = {name: values[:, :10] for name, values in scaled(exact(MODEL), "mu", 3.0).items()}
    verdict, agreement = judge(MODEL, draws)
    assert verdict.comparison == "too few draws" and verdict.agreement is None and verdict.status == "inconclusive"
    assert (
        "Your draws were not compared with the certified ones" in verdict.details
        and "100 are needed" in verdict.details
    )
    assert agreement.attrs["n_draws"] == 40
    assert "hold" not in verdict.details  # nothing is said of their intervals


@pytest.mark.statistical
def test_a_missing_mode_disagrees():
    draws, loose = exact(MODES), {"path": "prior", "n_temperatures": 64, "max_error": 0.3}
    both, _ = judge(MODES, draws, **loose)
    assert both.status == "converged" and both.comparison == "agreement"  # the control
    one, _ = judge(MODES, {"location": np.abs(draws["location"])}, **loose)
    assert one.status == "disagreement" and "location" in one


@pytest.mark.statistical
def test_a_wrong_correlation_is_seen_by_products_and_log_density():
    draws = exact(MODEL)
    values = draws["group_mean"].reshape(-1, 3)
    alone = np.random.default_rng(1).permuted(values, axis=0).reshape(draws["group_mean"].shape)
    shuffled, agreement = judge(MODEL, draws | {"group_mean": alone})
    assert shuffled.comparison in ("difference", "disagreement")
    assert (agreement["content_p_value"].sel(parameter=agreement["parameter"] != "log density") > 0.01).all()


@pytest.mark.statistical
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_draws_of_some_variables_are_compared_and_others_are_sampled(shift):
    """The fit is bread's own: hyperparameters need not be among the draws. Shifted ones are told apart."""
    some = {"mu": shifted(exact(MODEL), "mu", shift)["mu"]}
    with pytest.warns(UserWarning, match="no variable 'group_mean', and holds nothing that determines it"):
        verdict, agreement = judge(MODEL, some, simulate_from="fitted")
    assert agreement["parameter"].values.tolist() == ["mu"]  # and no log density
    assert agreement.attrs["source"] == "posterior=" and agreement.attrs["left_out"] == "group_mean"
    assert verdict.comparison == ("disagreement" if shift else "agreement")
    assert "group_mean left out" in verdict.details or shift


@pytest.mark.slow
def test_the_number_of_draws_is_what_was_asked_for():
    report = bread.check(MODEL, posterior=exact(MODEL), draws=37, **QUICK)
    assert read_group(report, "posterior")["mu"].size == 37
    assert read_group(bread.check(MODEL, posterior=exact(MODEL), draws=0, **QUICK), "agreement") is None


def test_the_fit_that_bread_made_is_compared_and_named():
    report = bread.check(MODEL, **(QUICK | {"simulate_from": "fitted"}))
    assert read_group(report, "agreement").attrs["source"] == "exact posterior draws"
    assert "The 90% intervals of exact posterior draws (its defaults, 4 chains) hold" in bread.verdict(report).details


def test_without_a_fit_nothing_is_compared():
    report = bread.check(MODEL, **QUICK)
    assert read_group(report, "agreement") is None and bread.verdict(report).comparison == ""
    assert read_group(report, "posterior")["mu"].size == 100
    assert "pass its draws as posterior= to compare" in bread.verdict(report).details


def test_what_reading_the_draws_warned_of_is_in_the_report_once(monkeypatch):
    def read_posterior(self, posterior):
        for _ in range(3):
            warnings.warn("chain 2 is odd", UserWarning, stacklevel=1)
        return full(self, posterior)

    full = type(SINGLE).read_posterior
    monkeypatch.setattr(type(SINGLE), "read_posterior", read_posterior)
    draws = exact(SINGLE)
    with pytest.warns(UserWarning, match="chain 2 is odd") as caught:
        report = bread.check(SINGLE, posterior=draws, draws=0, simulations=3, chains=2, **QUICK)
    assert len(caught) == 1 and json.loads(read_attributes(report)["warnings"]).count("chain 2 is odd") == 1


@pytest.mark.statistical
def test_copied_chains_count_once():
    """Four chains that share a seed are one chain: too few draws, where they would have looked like enough."""
    one = {name: values[:1, :120] for name, values in exact(SINGLE).items()}
    copied = {name: np.repeat(values, 4, axis=0) for name, values in one.items()}
    with pytest.warns(UserWarning, match=r"same as an earlier one, draw by draw: 1, 2, 3\..*multiplied by 0\.25"):
        verdict, agreement = judge(SINGLE, copied)
    assert float(agreement["n_effective"].max()) <= 120.0
    assert not verdict and "it holds copies (its draws count for 25% of their number)" in verdict.details
    four = {name: values[:, :120] for name, values in exact(SINGLE).items()}
    assert judge(SINGLE, four)[0].status == "converged"


@pytest.mark.statistical
def test_dependence_of_three_is_a_disagreement_that_a_classifier_finds():
    """Uncorrelated, each pair as it should be: the product of three is never negative, TV 0.5."""
    draws = exact(MODEL)
    table = np.concatenate([draws["mu"][..., None], draws["group_mean"]], axis=2)
    centre = table.mean(axis=(0, 1))
    root = np.linalg.cholesky(np.cov(table.reshape(-1, 4), rowvar=False))
    z = (table - centre) @ np.linalg.inv(root).T
    z[..., 3] = np.abs(z[..., 3]) * np.sign(z[..., 1] * z[..., 2])
    table = centre + z @ root.T
    verdict, agreement = judge(MODEL, {"mu": table[..., 0], "group_mean": table[..., 1:]})
    assert verdict.status == "disagreement"
    assert 0.05 < float(agreement["total_variation_lower"]) < 0.5
    assert "classed as yours: 0." in verdict.details and "They are wrong by at least 0." in verdict.details
    assert "wrong by at least 0." in str(verdict)
