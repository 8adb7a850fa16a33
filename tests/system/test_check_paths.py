"""`bread.check` along each path, on models of known evidence."""

from dataclasses import replace

import numpy as np
import pytest

import bread
from bread.errors import DensityError, InvalidArgumentError, UnsupportedModelError
from bread.paths.kinds import PriorPath, ReferencePath
from bread.paths.mixture import diagonal, gaussian
from bread.report.compat import read_attributes, read_group
from bread.running.check.preparation import Preparation
from bread.running.missed_modes.phase import log_lower_bound
from bread.running.state.results import SHARED
from tests.models.reference import (
    AbsoluteMean,
    AutoregressiveKernel,
    CompoundKernel,
    GibbsLabelKernel,
    HierarchicalNormal,
    HMCKernel,
    LabelMixture,
    LinearRegression,
    NormalMean,
)

QUICK = {"cores": 1, "progressbar": False, "random_seed": 3, "draws": 20, "tune": 100}
KERNEL = CompoundKernel((GibbsLabelKernel(), HMCKernel(5)))
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
REGRESSION = LinearRegression(
    y=X @ np.array([1.0, -0.5, 2.0]) + RNG.normal(size=40), x=X, prior_sd=3.0, kernel=HMCKernel(5)
)
# data that say little, and two modes that a fitted reference may miss
POOR = AbsoluteMean(np.array([0.3]), noise_sd=3.0, kernel=HMCKernel(5))


def gradients(report):
    cost = read_group(report, "cost")
    return int(cost["n_gradients"].sel(phase=["search", "confirm"]).sum())


@pytest.mark.parametrize("simulate_from", ["prior", "fitted"])
def test_every_path_sandwiches_the_evidence(simulate_from):
    temperatures = {"prior": 128, "reference": 4}
    for path, n_temperatures in temperatures.items():
        report = bread.check(
            REGRESSION, path=path, simulate_from=simulate_from, n_temperatures=n_temperatures, simulations=10, **QUICK
        )
        bounds = read_group(report, "bounds").sel(n_temperatures=n_temperatures)
        data = read_group(report, "simulated_data")["y"].values
        truth = np.array([REGRESSION.log_evidence({"y": y}) for y in data])
        for name, sign in (("log_evidence_lower", 1.0), ("log_evidence_upper", -1.0)):
            excess = sign * (bounds[name].values - truth)
            excess = excess[np.isfinite(excess)]
            assert excess.mean() < 3 * excess.std() / np.sqrt(len(excess)), f"{path}: {name} on the wrong side"
        assert read_attributes(report)["path"] == path


@pytest.mark.slow
def test_the_reference_path_is_cheaper_where_data_say_much():
    usual = bread.check(REGRESSION, path="prior", simulations=10, target=2.0, **QUICK)
    report = bread.check(REGRESSION, path="reference", simulations=10, target=2.0, **QUICK)
    assert bread.verdict(report).status == "converged"
    assert 20 * gradients(report) < gradients(usual)
    reference = read_group(report, "reference")
    posterior = REGRESSION.draw_posterior(REGRESSION.observed_data, 4000, np.random.default_rng(1))
    fitted = reference.sel(data_set="observed")
    shift = (fitted["mean"].values - posterior.mean(axis=0)) / posterior.std(axis=0)
    assert (np.abs(shift) < 1.0).all(), "the reference of the real data lies on their posterior"
    assert {"full", "diagonal"} <= set(reference["family"].values)


def test_auto_takes_the_cheaper_path_and_says_so():
    rich = bread.check(REGRESSION, path="auto", simulations=5, **QUICK)
    assert read_attributes(rich)["path"] == "reference"
    assert set(read_group(rich, "reference")["predicted_gradients"]["path"].values) == {"reference"}  # no other
    assert read_attributes(bread.check(POOR, path="auto", simulations=5, **QUICK))["path"] == "prior"


@pytest.mark.slow
def test_auto_looks_again_where_a_path_was_not_as_cheap_as_it_seemed(monkeypatch):
    from bread.running.path_choice.chooser import PathChooser

    monkeypatch.setattr(PathChooser, "_first_reference", lambda self: None)
    monkeypatch.setattr(PathChooser, "_is_cheap", lambda self, cost: True)
    report = bread.check(REGRESSION, path="auto", simulations=10, target=1.0, **QUICK)
    assert read_attributes(report)["path"] == "reference" and bread.verdict(report).status == "converged"
    roles = read_group(report, "forward")["role"].values
    assert list(roles).count("search") > 5, "the search began again on the other path, on other simulations"


@pytest.mark.slow
@pytest.mark.parametrize("beyond", [4, 1_000_000])
def test_auto_looks_again_where_the_race_misled(monkeypatch, beyond):
    """The race sees a gap on the prior path at T = 8 that is a hundredth of the true one; the control never looks back.

    Four times that T the paths race again, with what the search has measured.
    """
    from bread.running.path_choice import chooser
    from bread.running.path_choice.costs import Round, measured

    races = []

    class Misled(chooser.Race):
        def __init__(self, plan, track, candidates, rivals=()):
            super().__init__(plan, track, candidates, rivals)
            self.target, self.candidates = plan.target, candidates

        def run(self):
            races.append([candidate.cost.kind for candidate in self.candidates])
            if len(races) > 1:
                super().run()
                return
            (prior,) = (candidate for candidate in self.candidates if candidate.cost.kind == "prior")
            prior.rounds.append(Round(8, 0.01 * self.target, 1.0))
            prior.cost = replace(measured(prior.cost, prior.rounds, self.target), per_data_set=0.0)

    monkeypatch.setattr(chooser.PathChooser, "_first_reference", lambda self: None)
    monkeypatch.setattr(chooser.PathChooser, "_is_cheap", lambda self, cost: False)
    monkeypatch.setattr(chooser, "BEYOND", beyond)
    monkeypatch.setattr(chooser, "Race", Misled)
    report = bread.check(REGRESSION, path="auto", simulations=10, target=1.0, max_temperatures=128, **QUICK)
    looked = beyond == 4
    assert races[0] == ["reference", "prior"] and races[1:2] == [["reference"]] * looked
    assert read_attributes(report)["path"] == ("reference" if looked else "prior")
    assert bread.verdict(report).status == ("converged" if looked else "not converged")


def test_auto_looks_at_the_prior_where_a_reference_was_not_as_cheap_as_it_seemed(monkeypatch):
    from bread.running.path_choice.chooser import PathChooser

    monkeypatch.setattr(PathChooser, "_is_cheaper_than_looking", lambda self, cost: True)
    report = bread.check(POOR, path="auto", simulations=10, target=1.0, **QUICK)
    assert read_attributes(report)["path"] == "prior" and bread.verdict(report).status == "converged"
    costs = read_group(report, "reference")["predicted_gradients"]
    assert float(costs.sel(path="reference")) > 10 * float(costs.sel(path="prior"))


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_workers():
    reports = [
        bread.check(REGRESSION, path="auto", simulations=4, **(QUICK | {"cores": cores, "n_temperatures": [4, 8]}))
        for cores in (1, 2)
    ]
    one, two = (read_group(report, "forward")["log_weight"].values for report in reports)
    np.testing.assert_array_equal(one, two)


class Wide:
    """A user's reference without a gradient."""

    def __init__(self):
        posterior = REGRESSION.draw_posterior(REGRESSION.observed_data, 4000, np.random.default_rng(1))
        self.law = gaussian(posterior.mean(axis=0), 25.0 * np.cov(posterior.T))

    def sample(self, n, rng):
        return self.law.sample(n, rng)

    def log_density(self, states):
        return self.law.log_density(states)


def test_a_reference_of_the_users():
    report = bread.check(REGRESSION, path=Wide(), n_temperatures=[8, 64], simulations=8, **QUICK)
    attributes = read_attributes(report)
    assert attributes["path"] == "reference"
    jeffreys = read_group(report, "bounds")["jeffreys"].values
    assert jeffreys[1] < jeffreys[0] < 20.0
    draws = REGRESSION.fit(seed=1, cores=1, progressbar=False).draws
    fitted = bread.check(REGRESSION, path=draws, n_temperatures=[8, 64], simulations=8, **QUICK)
    assert "fitted to the draws" in read_group(fitted, "reference").attrs["label"]


class Lacking(Wide):
    """One whose density lacks its constant."""

    def log_density(self, states):
        return super().log_density(states) - 10.0


def test_a_reference_without_its_constant_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"path=: log_density must be normalised.*exp\(-(10|9\.9)"):
        bread.check(REGRESSION, path=Lacking(), n_temperatures=[8], simulations=2, **QUICK)


def test_no_weight_of_a_reference_that_cannot_be_tested_is_an_evidence(monkeypatch):
    bounds = []
    monkeypatch.setattr("bread.fitting.user_references.MOST_COORDINATES", 0)
    monkeypatch.setattr(
        "bread.running.missed_modes.phase.log_lower_bound",
        lambda result: bounds.append(log_lower_bound(result)) or bounds[-1],
    )
    report = bread.check(REGRESSION, path=Lacking(), n_temperatures=[8], simulations=2, **(QUICK | {"draws": 100}))
    found = bread.evidence(report)
    assert found.kind == "none" and np.isinf([found.lower, found.upper]).all()
    assert "the reference given as path= integrates to is not known" in found.sentence()
    assert "integrates to one: it has more than 0 coordinates" in read_attributes(report)["warnings"]
    assert bounds == [-np.inf]


@pytest.mark.slow
def test_a_reference_that_knows_the_exact_draw_is_found_out(monkeypatch):
    """Negative control: q centred at the draw that produced the data makes the reverse weights too small."""
    model = NormalMean(np.array([0.5, 1.5]), kernel=HMCKernel(5))

    class Cheat(Preparation):
        def fit_paths(self, indices, phase="tune"):
            super().fit_paths(indices, phase)
            for index in indices:
                if index >= 0:
                    exact = self._result.simulations.states[index]
                    self._result.paths[index] = ReferencePath(diagonal(exact, np.full(1, 0.6)))

    settings = {"n_temperatures": [2, 3], "simulations": 150, "path": "reference", "tune_on": "shared"}
    honest = bread.check(model, simulate_from="prior", **settings, **QUICK)
    assert bread.verdict(honest).status != "bug"
    monkeypatch.setattr("bread.running.check.runner.Preparation", Cheat)
    assert bread.verdict(bread.check(model, simulate_from="prior", **settings, **QUICK)).status == "bug"


def fits_unless(rule):
    """Return a fit of references that fails on the data sets where the rule says so."""
    from bread.fitting.search.reference_fit import fit_reference

    def fit(posterior, request, *, root, simulation):
        if rule(posterior, simulation):
            raise DensityError("no pilot chain could run")
        return fit_reference(posterior, request, root=root, simulation=simulation)

    return fit


def has_high_data(posterior, simulation):
    low, high = posterior.log_ratio(PriorPath(), np.array([[-0.6], [2.0]]))
    return simulation > SHARED and high > low  # their mean is above 0.7


@pytest.mark.slow
@pytest.mark.parametrize("path", ["reference", "auto"])
def test_data_sets_to_which_no_reference_can_be_fitted(monkeypatch, path):
    model = NormalMean(np.array([0.9, 1.5]), prior_sd=20.0, kernel=HMCKernel(5))
    monkeypatch.setattr("bread.running.pilots.tuning.fit_reference", fits_unless(has_high_data))
    settings = QUICK | {"simulate_from": "prior", "simulations": 40}
    with pytest.warns(UserWarning, match=r"No reference could be fitted to \d+ of \d+ data sets \(the real data"):
        report = bread.check(model, path=path, n_temperatures=[8, 32], **settings)
    assert read_attributes(report)["path"] == "reference"
    data = read_group(report, "simulated_data")["y"].values
    truth = np.array([model.log_evidence({"y": y}) for y in data])
    bounds = read_group(report, "bounds").sel(n_temperatures=32)
    failed = data.mean(axis=1) > 0.7
    for name, sign in (("log_evidence_lower", 1.0), ("log_evidence_upper", -1.0)):
        excess = (sign * (bounds[name].values - truth))[failed]
        assert np.isfinite(excess).all() and excess.mean() < 3 * excess.std() / np.sqrt(failed.sum())
    assert bread.verdict(report).status != "bug"
    kernel = read_group(report, "kernel")
    assert int((kernel["source"] == "an extra simulated data set").sum()) > failed.sum() > 10
    warned = read_attributes(report)["warnings"]
    assert f"fitted to {failed.sum() + 1} of {len(data) + 1} data sets" in warned


def test_a_reference_that_can_never_be_fitted(monkeypatch):
    model = NormalMean(np.array([0.9, 1.5]), prior_sd=20.0, kernel=HMCKernel(5))
    monkeypatch.setattr("bread.running.pilots.tasks.begin_fit", fits_unless(lambda posterior, simulation: True))
    report = bread.check(model, path="auto", n_temperatures=[8, 32], simulations=4, **QUICK)
    assert read_attributes(report)["path"] == "prior"
    with pytest.raises(DensityError, match="no pilot chain"):
        bread.check(
            model, path="reference", n_temperatures=[8, 32], simulations=4, **QUICK | {"simulate_from": "fitted"}
        )


def test_refusals():
    with pytest.raises(InvalidArgumentError, match="path must be one of 'prior', 'reference', 'auto', got 'laplace'"):
        bread.check(REGRESSION, path="laplace", **QUICK)
    with pytest.raises(InvalidArgumentError, match="no sample"):
        bread.check(REGRESSION, path=type("Half", (), {"log_density": staticmethod(lambda x: x)})(), **QUICK)
    exact = NormalMean(np.zeros(2), kernel=AutoregressiveKernel())
    with pytest.raises(UnsupportedModelError, match="HMCKernel"):
        bread.check(exact, path="reference", **QUICK)


def test_plot_path_names_both_ends():
    pytest.importorskip("matplotlib").use("Agg")
    report = bread.check(REGRESSION, path="reference", n_temperatures=[4, 8], simulations=4, **QUICK)
    ax = bread.plot_path(report)
    legend = bread.plot_bounds(report).get_legend_handles_labels()[1]
    assert "forward chains, from the reference" in legend
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert "0\nreference" in labels and "1\nposterior" in labels


@pytest.mark.parametrize("path", ["prior", pytest.param("reference", marks=pytest.mark.slow)])
def test_two_modes(path):
    model = AbsoluteMean(np.array([1.1, 0.9, 1.2, 1.0]), kernel=HMCKernel(5))
    report = bread.check(model, path=path, simulations=10, target=1.0, **QUICK)
    assert bread.verdict(report).status == "converged"


def localised_report(**settings):
    # The real data have mu far out in its prior N(0, 1): the posterior mean is about 6.
    model = HierarchicalNormal(
        np.array([8.1, 7.4, 8.9]), np.array([0.5, 0.5, 0.5]), prior_mean=0.0, prior_sd=1.0, group_sd=0.7,
        kernel=HMCKernel(5),
    )  # fmt: skip
    return model, bread.check(model, simulate_from="localised", simulations=20, **(QUICK | settings))


def test_localised_is_exact_and_near_the_real_data():
    model, report = localised_report(n_temperatures=[16, 64], target=1.0)
    law = read_group(report, "reference")
    mean, deviation = float(law["localisation_mean"][0]), float(law["localisation_standard_deviation"][0])
    posterior = model.draw_posterior(model.observed_data, 4000, np.random.default_rng(0))[:, 0]
    assert abs(mean - posterior.mean()) < 0.1 and abs(deviation / posterior.std() - 1.5) < 0.1
    drawn = read_group(report, "truth")["mu"].values
    assert abs(drawn.mean() - mean) < 4 * deviation / np.sqrt(len(drawn)), "simulated from the localised law"
    verdict = bread.verdict(report)
    assert verdict.ci_upper <= verdict.limit and "localised model" in verdict.details
    assert verdict.status == "inconclusive" and "prior" in verdict.details, (
        "mu lies six standard deviations out in its prior"
    )
    assert "estimated" not in verdict.details, "exact: no estimate"
    assert read_group(report, "agreement") is None


def test_localised_refuses_what_it_cannot_separate():
    with pytest.raises(UnsupportedModelError):
        bread.check(
            LabelMixture(np.array([1.2]), kernel=KERNEL), simulate_from="localised", hyperparameters="label", **QUICK
        )
