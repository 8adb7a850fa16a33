"""Pilots that find a nested reference, and a whole check that takes it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import bread
from bread.backends.base import Kernel
from bread.errors import DensityError
from bread.fitting.conditional.one_driver import Knot, law_through, middle_and_spread, rank_drivers
from bread.fitting.gaussian.families import FAMILIES
from bread.fitting.importance.adaptation import truncated
from bread.fitting.search.before_chains import finds_reference
from bread.fitting.search.found_references import SHORT_CHAINS, SHORT_SELECTION_DRAWS, Found
from bread.fitting.search.moving import LOST_STEPS, move_reference, relative_widths
from bread.fitting.search.reference_fit import FitRequest, fit_reference
from bread.fitting.search.searches import MOVE_BURN_IN, MOVE_DRAWS
from bread.fitting.search.work import FitWork, Part
from bread.paths.kinds import ReferencePath
from bread.paths.nested import NestedReference
from bread.report.compat import read_attributes, read_group
from bread.running.pilots.tuning import moved_pilot, run_pilot
from bread.running.state.plan import PathRequest
from tests.models.reference import AbsoluteMean, HMCKernel
from tests.support.funnel import FUNNEL, SMALL
from tests.support.funnel_draws import OTHER, divergence, exact_draws

REQUEST = FitRequest(FUNNEL.dim, FUNNEL.transformed, 200)


def frozen(fit):
    return Kernel(np.array([1.0]), {name: np.asarray(value)[None] for name, value in fit.settings.items()})


def held_divergence(reference):
    """From the posterior of `OTHER`, in nats; a few draws, millions of nats off in a tail, do not decide."""
    posterior, path = FUNNEL.condition(OTHER), ReferencePath(reference)
    drawn = reference.sample(2000, np.random.default_rng(2))
    return truncated(posterior.log_ratio(path, drawn), posterior.log_ratio(path, exact_draws(OTHER, 2000)))


@pytest.fixture(scope="module")
def shared():
    return fit_reference(FUNNEL.condition(FUNNEL.observed_data), REQUEST, root=3, simulation=0)


@pytest.mark.slow
def test_a_pilot_on_a_funnel_fits_a_nested_reference_and_a_fallback(shared):
    assert shared.family == "nested" and isinstance(shared.reference, NestedReference)
    assert shared.n_chains == 2, "half of the chains are enough"
    assert shared.criterion == {"nested": shared.criterion["nested"]}, "what is near is not compared"
    assert shared.criterion["nested"] < 0.5
    assert shared.fallback is not None and shared.fallback.label == "Gaussian"
    assert divergence(FUNNEL.observed_data, shared.fallback)[0] > 2.0
    assert 50 < shared.n_given_gradients < 1000 < shared.n_gradients
    assert divergence(FUNNEL.observed_data, shared.reference)[0] < 0.2
    again = fit_reference(FUNNEL.condition(FUNNEL.observed_data), REQUEST, root=3, simulation=0)
    np.testing.assert_array_equal(again.reference.values, shared.reference.values)


def test_a_family_that_is_asked_for_is_fitted(shared):
    posterior = FUNNEL.condition(FUNNEL.observed_data)
    full = fit_reference(posterior, replace(REQUEST, family="full"), root=3, simulation=0)
    assert full.family == "full" and full.n_given_gradients == 0 and full.fallback is None
    assert full.n_chains == 4 > shared.n_chains


def test_a_moved_reference_follows_the_data(shared):
    """Below 0.2 nats by 4 standard errors, where the unmoved one is above 2, for the price that was promised."""
    moved = move_reference(FUNNEL.condition(OTHER), shared, frozen(shared), root=0, simulation=1)
    value, error = divergence(OTHER, moved.reference)
    assert value + 4.0 * error < 0.2
    value, error = divergence(OTHER, shared.reference)
    assert value - 4.0 * error > 2.0
    promised = shared.move_gradients(6.0)
    assert promised / 3.0 < moved.n_gradients < 3.0 * promised and promised == shared.n_given_gradients
    again = move_reference(FUNNEL.condition(OTHER), shared, frozen(shared), root=0, simulation=1)
    np.testing.assert_array_equal(again.reference.values, moved.reference.values)


@pytest.mark.slow
def test_where_nothing_is_found_a_reference_is_fitted_and_where_no_chain_runs_the_fallback_is_moved(
    shared, monkeypatch
):
    posterior = FUNNEL.condition(OTHER)
    monkeypatch.setattr("bread.fitting.search.searches.fit_nested", lambda *_: (None, 0))
    monkeypatch.setattr("bread.fitting.search.searches.fit_conditional", lambda *_, **__: (None, 0))
    moved = move_reference(posterior, shared, frozen(shared), root=0, simulation=1)
    short = {"n_steps": LOST_STEPS, "n_chains": SHORT_CHAINS, "n_selection_draws": SHORT_SELECTION_DRAWS}
    request = replace(REQUEST, like=frozen(shared), **short)
    anew = fit_reference(posterior, request, root=0, simulation=1)
    assert (moved.reference.label, moved.n_gradients) == (anew.reference.label, anew.n_gradients)
    np.testing.assert_array_equal(moved.reference.components[0].mean, anew.reference.components[0].mean)

    def fails(*_, **__):
        raise DensityError("no chain runs")

    monkeypatch.setattr("bread.fitting.search.moving.fit_reference", fails)
    moved = move_reference(posterior, shared, frozen(shared), root=0, simulation=1)
    assert moved.reference.label == shared.fallback.label
    means, before = ([one.mean for one in law.components] for law in (moved.reference, shared.fallback))
    assert len(means) == len(before) and not np.array_equal(means, before)
    assert moved.n_gradients == 6 * (MOVE_BURN_IN + MOVE_DRAWS) * len(means)
    fit = fit_reference(FUNNEL.condition(FUNNEL.observed_data), REQUEST, root=3, simulation=0)
    assert "nested" not in fit.criterion and fit.family != "nested" and fit.n_chains == 4


def test_a_reference_far_from_the_posterior_is_not_taken(shared, monkeypatch):
    """A search that returns a law of another place: its own draws show it, and a reference is fitted anew."""
    wrong = replace(shared.reference, centre=shared.reference.centre + 3.0)
    monkeypatch.setattr("bread.fitting.search.searches.fit_nested", lambda *_: (wrong, 11))
    monkeypatch.setattr("bread.fitting.search.searches.fit_conditional", lambda *_, **__: (None, 0))
    moved = move_reference(FUNNEL.condition(OTHER), shared, frozen(shared), root=0, simulation=1)
    assert held_divergence(moved.reference) < 4.0
    assert held_divergence(wrong) > 10.0


@pytest.mark.parametrize("model", [FUNNEL, SMALL], ids=["funnel", "small"])
@pytest.mark.parametrize("root", [0, 1, 2])
def test_a_reference_is_found_for_a_funnel(model, root):
    request = FitRequest(model.dim, model.transformed, 200)
    is_found, n_gradients, _ = finds_reference(model.condition(model.observed_data), request, root=root, simulation=0)
    assert is_found and 0 < n_gradients < 4000


def test_none_is_found_for_two_modes_nor_for_a_density_that_is_zero(monkeypatch):
    modes = AbsoluteMean(np.array([1.1, 0.9, 1.2, 1.0]), kernel=HMCKernel(5))
    request = FitRequest(1, np.zeros(1, dtype=bool), 200)
    is_found, n_gradients, _ = finds_reference(modes.condition(modes.observed_data), request, root=0, simulation=0)
    assert not is_found and n_gradients > 0
    posterior = FUNNEL.condition(FUNNEL.observed_data)
    monkeypatch.setattr(posterior, "log_ratio", lambda path, states: np.full(len(states), -np.inf))
    assert not finds_reference(posterior, REQUEST, root=0, simulation=0)[0]


QUICK = {"cores": 1, "progressbar": False, "random_seed": 3, "draws": 20, "tune": 100}


@pytest.fixture(scope="module")
def report():
    return bread.check(FUNNEL, path="auto", simulations=8, n_temperatures=[4, 8], **QUICK)


@pytest.mark.slow
def test_a_check_takes_the_nested_reference_and_needs_few_temperatures(report):
    attributes = read_attributes(report)
    assert attributes["path"] == "reference"
    verdict = bread.verdict(report)
    assert verdict.is_reliable and verdict.jeffreys < 0.5 and verdict.error_limit < 0.5
    group = read_group(report, "reference")
    assert group.attrs["label"] == "Gaussian given one coordinate"
    assert group["family"].values.tolist() == ["nested"] and group["criterion"].values < 0.5
    exact = exact_draws(FUNNEL.observed_data)
    own = group.sel(data_set="observed")
    deviation = own["standard_deviation"].values
    # Moments are means over 2000 values of the driver: 4.5 standard errors are 0.1 sd, 4 of a deviation up to 0.14, as
    # effects have a kurtosis of up to 10. Inflation is up to 10%.
    np.testing.assert_array_less(np.abs(own["mean"].values - exact.mean(axis=0)) / exact.std(axis=0), 0.1)
    kurtosis = stats.kurtosis(exact, fisher=False)
    allowed = 0.05 + 4.0 * np.sqrt((kurtosis - 1.0) / 8000.0)
    assert allowed[0] < 0.12 and allowed.max() < 0.2
    np.testing.assert_array_less(np.abs(deviation / exact.std(axis=0) - 1.05), allowed)


@pytest.mark.slow
def test_the_reports_bounds_hold_the_evidence(report):
    """8 simulations: exact log evidence on the right side of both ends within 3 standard errors."""
    data = read_group(report, "simulated_data")["y"].values
    truth = FUNNEL.log_evidence_rows({"y": data})
    bounds = read_group(report, "bounds").sel(n_temperatures=8)
    for name, sign in (("log_evidence_lower", 1.0), ("log_evidence_upper", -1.0)):
        excess = sign * (bounds[name].values - truth)
        excess = excess[np.isfinite(excess)]
        assert len(excess) >= 8 and excess.mean() < 3 * excess.std() / np.sqrt(len(excess))
        assert np.abs(excess).max() < 2.0


@pytest.mark.slow
def test_the_report_survives_a_file(report, tmp_path):
    arviz = pytest.importorskip("arviz")
    report.to_netcdf(str(tmp_path / "report.nc"))
    again = arviz.from_netcdf(str(tmp_path / "report.nc"))
    first, second = read_group(report, "reference"), read_group(again, "reference")
    assert set(first.data_vars) == set(second.data_vars) >= {"mean", "standard_deviation", "criterion"}
    for name in first.data_vars:
        np.testing.assert_array_equal(first[name].values, second[name].values)
    assert first.attrs["label"] == second.attrs["label"] and str(bread.verdict(report)) == str(bread.verdict(again))


@pytest.mark.slow
def test_references_moved_to_like_data_sets():
    """One fit for all data sets, moved to each."""
    model = replace(FUNNEL, prior_sd=1.0)
    report = bread.check(model, path="auto", tune_on="shared", simulations=8, n_temperatures=[4, 8], **QUICK)
    assert read_group(report, "reference").attrs["label"] == "Gaussian given one coordinate"
    assert bread.verdict(report).jeffreys < 1.0


def test_precisions_beyond_floating_point_give_no_law():
    def knots(precision):
        return [Knot(u, np.zeros(2), precision, -0.5 * u * u) for u in (-2.0, -1.0, 0.0, 1.0, 2.0)]

    assert law_through(knots(np.diag([1.0, 2.0])), 0) is not None
    assert law_through(knots(np.diag([1.0, -1e-30])), 0) is None


def test_a_driver_that_a_data_set_hides_is_known_from_the_prior(monkeypatch):
    """Data that say the spread well: nothing in their draws shows that it drives widths. Control: without the prior."""
    data = {"y": np.array([-41.0, 22.0, 53.0, -27.0, 4.0])}
    nowhere_a_scale = np.zeros(FUNNEL.dim, dtype=bool)
    draws = exact_draws(data, 400)
    assert 0 not in rank_drivers(draws, nowhere_a_scale)

    def found():
        result = Found()
        result.look_for_given(FitWork(FUNNEL.condition(data), nowhere_a_scale, 3, 0), draws)
        return result

    assert found().drivers[-1] == 0
    assert found().references["nested"].driver == 0
    monkeypatch.setattr(
        "bread.fitting.search.found_references.many_prior_draws",
        lambda work: work.rng(Part.PRIOR).normal(size=(400, work.dim)),
    )
    assert 0 not in found().drivers


def test_a_moved_pilot_has_a_kernel_as_wide_as_its_reference(shared):
    """The effects of the other data set are wider by the factors that exact draws show, to a fifth; the step stays."""
    pilot = run_pilot(
        FUNNEL.condition(FUNNEL.observed_data), PathRequest("reference", None, REQUEST),
        root=3, simulation=0, n_steps=50, shows_tail=False, source="", fit=shared,
    )  # fmt: skip
    moved = moved_pilot(FUNNEL.condition(OTHER), pilot, root=3, simulation=1)
    before, after = pilot.kernel.settings, moved.kernel.settings
    widths = [middle_and_spread(exact_draws(data))[1] for data in (OTHER, FUNNEL.observed_data)]
    expected = widths[0] / widths[1]
    assert expected.max() > 2.0, "there is something to follow"
    stretched = np.sqrt(after["inverse_metric"] / before["inverse_metric"])
    np.testing.assert_allclose(stretched, np.broadcast_to(expected, stretched.shape), rtol=0.2)
    np.testing.assert_array_equal(after["step_size"], before["step_size"])
    several = FAMILIES["diagonal"](shared.draws, FUNNEL.transformed)
    several = replace(several, components=several.components * 2, weights=np.array([0.5, 0.5]))
    assert relative_widths(several, shared.reference) is None, "widths of several modes are not those of one"
