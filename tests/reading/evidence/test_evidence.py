"""`bread.evidence` and `bread.bayes_factor` on finished checks whose log evidence is known: -45 nats."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import bread
from bread.errors import InvalidArgumentError
from bread.report import container as report
from bread.running.state.prior_integral_results import PriorIntegral, PriorIntegrals
from bread.running.state.results import OBSERVED
from bread.statistics.exactness.normalisation import Normalisation
from tests.support.fake_results import constrain, fake_result, model_info

TRUTH = -45.0


def made(**changes):
    return report.to_container(fake_result(**changes), constrain)


def with_weights(values, **changes):
    result = fake_result(**changes)
    result.observed_log_weight = np.asarray(values, dtype=float)
    result.observed_log_ratio = np.zeros((len(result.observed_log_weight), 2))
    return result


def evidence_of(result):
    return bread.evidence(report.to_container(result, constrain))


@pytest.fixture(scope="module")
def found():
    return bread.evidence(made())


def test_the_interval_holds_the_truth_and_says_what_it_is(found):
    assert found.kind == "interval" and found.reasons == ()
    assert found.lower < TRUTH < found.upper < found.lower + 0.3
    assert found.n_chains == 1004 and found.n_effective > 900  # the draws' chains and those of the check
    assert 0.0 < found.allowance < 0.2
    assert "interval" in str(found) and "forward AIS" in str(found)
    assert "1004 forward chains on the real data" in found.sentence()


def test_the_table_has_every_estimator_with_its_direction(found):
    table = found.table
    assert list(table["role"]).count("recommended") == 1
    assert table.loc["forward AIS", ["lower", "upper"]].tolist() == [found.lower, found.upper]
    reverse = table[table["direction"] != "forward"]
    assert reverse["log_evidence"].isna().all(), "real data have no exact draws to begin reverse chains at"
    assert set(table.index[table["role"] == "warning"]) == {"likelihood weighting", "harmonic mean"}
    assert table.loc["likelihood weighting", "log_evidence"] < -200.0
    assert table.loc["BAR", "simulated_error"] == 0.0
    lower, upper = table.loc["mean log weight", "simulated_error"], table.loc["sandwich, upper", "simulated_error"]
    assert lower < 0.0 < upper + 0.05


def test_simulated_data_sets_have_both_directions(found):
    assert len(found.simulated) == 20
    assert found.simulated["BAR"].between(-100, 0).all()
    assert (found.simulated["BAR, standard error"] > 0).all()
    np.testing.assert_allclose(found.simulated["histogram"], found.simulated["BAR"], atol=0.2)
    assert found.shortfall.lower <= 0.05 and found.shortfall.upper < 0.2


def test_heavy_tails_leave_a_lower_bound_alone():
    """Negative control: weights of the same mean whose log has standard deviation 4."""
    heavy = np.random.default_rng(1).normal(TRUTH - 8.0, 4.0, 1000)
    one = evidence_of(with_weights(heavy))
    assert one.kind == "lower bound" and one.upper == np.inf
    assert one.lower < TRUTH
    assert "equal ones" in one.sentence() and "no upper limit" in one.sentence()


def test_chains_that_failed_or_died_count_as_weights_of_zero():
    values = fake_result().observed_log_weight
    dead = np.concatenate([values, np.full(1000, -np.inf)])  # half of the chains meet a ratio of zero
    one = evidence_of(with_weights(dead))
    assert one.kind == "interval" and one.log_evidence == pytest.approx(TRUTH - np.log(2.0), abs=0.05)
    failed = np.concatenate([values, np.full(1000, np.nan)])
    two = evidence_of(with_weights(failed))
    assert two.kind == "lower bound" and "1000 chains on the real data failed" in two.reasons[0]
    assert two.lower == pytest.approx(one.lower, abs=1e-9)


def test_without_draws_there_are_too_few_chains_for_an_interval():
    one = evidence_of(fake_result(n_draws=0))
    assert (one.kind, one.n_chains) == ("lower bound", 4)
    assert one.lower < TRUTH


def test_mass_that_forward_chains_miss_on_simulated_data_takes_the_interval_away():
    """The real data's own weights look perfect: only reverse chains of simulated data show that much is missed."""
    result = fake_result()
    for index in result.indices("confirm"):
        run = result.runs[int(index), "reverse", 64]
        result.runs[int(index), "reverse", 64] = replace(run, log_weight=run.log_weight + 3.0)
    one = evidence_of(result)
    assert one.kind != "interval" and one.upper == np.inf


def test_the_allowance_is_what_v_leaves_open():
    near, far = bread.evidence(made()), bread.evidence(made(gap=0.3))
    limit = float(bread.summary(made(gap=0.3), kind="bounds")["error_limit"].iloc[-1])
    assert far.allowance == pytest.approx(-np.log1p(-limit), abs=0.01)
    assert far.allowance > near.allowance


def test_few_simulations_leave_a_lower_bound():
    one = bread.evidence(made(n_confirm=6, n_search=0))
    assert one.kind == "lower bound" and "10 are needed" in one.sentence()


def test_a_bug_leaves_nothing(monkeypatch):
    monkeypatch.setattr("bread.reading.evidence.evidence.verdict", lambda found: bread.Verdict("bug"))
    monkeypatch.setattr(bread.Verdict, "status", "bug", raising=False)
    one = bread.evidence(made())
    assert one.kind == "none" and (one.lower, one.upper) == (-np.inf, np.inf)
    assert one.sentence().startswith("No log evidence")


def as_reference(result):
    """Let the attributes say that a reference was the path's start."""
    container = report.to_container(result, constrain)
    container.attrs["path"] = "reference"
    return container


def test_the_error_of_a_priors_constant_is_in_the_interval_of_a_reference_path():
    result = fake_result()
    constant = PriorIntegral("tau", (Normalisation(-0.7, 0.2, 0),))
    result.prior_integrals = PriorIntegrals((constant, PriorIntegral("mu", (Normalisation(0.0, 0.0, 0),), True)))
    without = bread.evidence(report.to_container(result, constrain))
    one = bread.evidence(as_reference(result))
    assert without.lower - one.lower == pytest.approx(1.96 * 0.2, rel=0.01)
    assert one.upper - without.upper == pytest.approx(1.96 * 0.2, rel=0.01)


@pytest.mark.parametrize("why", ["left out", "nothing else", "simulator"])
def test_a_constant_that_is_not_known_leaves_nothing_on_a_reference_path(why):
    result = fake_result()
    if why != "simulator":
        known = PriorIntegral("mu", (Normalisation(0.0, 0.0, 0),), is_known=True)
        result.prior_integrals = PriorIntegrals((known,) if why == "left out" else (), {"tau": "no draws"})
    else:
        result.settings["simulator"] = "f"
    assert bread.evidence(report.to_container(result, constrain)).kind == "interval"
    one = bread.evidence(as_reference(result))
    assert one.kind == "none" and one.upper == np.inf
    assert ("nobody knows" if why == "simulator" else "density of tau integrates to is not known") in one.sentence()


def test_another_prior_and_other_reports_are_refused():
    with pytest.raises(InvalidArgumentError, match="not that of your prior"):
        bread.evidence(made(simulate_from="localised"))
    with pytest.raises(InvalidArgumentError, match="report_b was made with simulate_from='localised'"):
        bread.bayes_factor(made(), made(simulate_from="localised"))
    with pytest.raises(InvalidArgumentError, match="report"):
        bread.evidence(3)
    nothing = fake_result()
    nothing.runs = {key: run for key, run in nothing.runs.items() if key[0] != OBSERVED}
    with pytest.raises(InvalidArgumentError, match="real data"):
        evidence_of(nothing)
    with pytest.raises(InvalidArgumentError, match="level"):
        bread.evidence(made(), level=95)


@pytest.mark.slow
def test_a_file_gives_the_same(tmp_path, found):
    path = tmp_path / "report.nc"
    made().to_netcdf(path)
    one = bread.evidence(path)
    assert (one.log_evidence, one.lower, one.upper, one.kind) == (
        found.log_evidence, found.lower, found.upper, found.kind,
    )  # fmt: skip
    assert bread.bayes_factor(path, path).log_bayes_factor == 0.0


def shifted(shift, **changes):
    result = fake_result(**changes)
    result.observed_log_weight = result.observed_log_weight + shift
    run = result.runs[OBSERVED, "forward", 64]
    result.runs[OBSERVED, "forward", 64] = replace(run, log_weight=run.log_weight + shift)
    return report.to_container(result, constrain)


@pytest.mark.parametrize(
    ("shift", "favoured", "strength"),
    [(-4.0, "a", "strong"), (4.0, "b", "strong"), (0.05, "undecided", ""), (0.8, "b", "hardly worth a mention"),
     (-12.0, "a", "very strong"), (2.0, "b", "positive")],
)  # fmt: skip
def test_which_model_is_favoured(shift, favoured, strength):
    one = bread.bayes_factor(made(seed=2), shifted(shift))
    assert (one.favoured, one.strength) == (favoured, strength)
    assert one.lower < -shift < one.upper
    assert one.log_bayes_factor == pytest.approx(-shift, abs=0.05)
    assert list(one.table.index) == ["a", "b", "a over b"]
    swapped = bread.bayes_factor(shifted(shift), made(seed=2))
    assert (swapped.lower, swapped.upper) == (-one.upper, -one.lower)
    assert swapped.favoured == {"a": "b", "b": "a"}.get(favoured, favoured)


def test_a_lower_bound_can_win_and_cannot_lose():
    heavy = np.random.default_rng(1).normal(TRUTH + 2.0, 4.0, 1000)
    high, low = with_weights(heavy), with_weights(heavy - 30.0)
    high, low = (report.to_container(one, constrain) for one in (high, low))
    assert bread.bayes_factor(high, made()).favoured == "a"
    undecided = bread.bayes_factor(low, made())  # its weights may miss what makes it good
    assert undecided.favoured == "undecided" and undecided.upper == np.inf
    assert "Of model a" in undecided.sentence()


def other_data(**observed):
    dims = {name: tuple(f"d{i}" for i in range(values.ndim)) for name, values in observed.items()}
    return made(info=model_info(observed=observed, observed_dims=dims))


def test_reports_of_other_data_are_refused():
    y = np.arange(6.0).reshape(3, 2)
    same = made()
    renamed = other_data(outcome=y.astype(np.int64))  # another name and type, the same values
    assert bread.bayes_factor(same, renamed).favoured == "undecided"
    for values in (y[::-1], y + 1e-9, y[:2], np.log1p(y), y.ravel()):
        with pytest.raises(InvalidArgumentError, match="different observed data"):
            bread.bayes_factor(same, other_data(y=values))
        with pytest.raises(InvalidArgumentError, match="different observed data"):
            bread.bayes_factor(same, other_data(z=values))
    with pytest.raises(InvalidArgumentError, match="different observed data"):
        bread.bayes_factor(same, other_data(y=y, z=y))
    with pytest.raises(InvalidArgumentError, match="holds no observed data"):
        bread.bayes_factor(same, made(info=model_info(observed={}, observed_dims={})))


def test_missing_values_are_the_same_data():
    y = np.array([1.0, np.nan])
    assert bread.bayes_factor(other_data(y=y), other_data(y=y.copy())).log_bayes_factor == 0.0


def test_notes_are_plain_json(found):
    json.dumps(found.table["note"].tolist())
