"""Draws that the user gave and that were not compared, or hardly, never let a verdict be "converged"."""

import re
from dataclasses import replace

import numpy as np
import pytest

import bread
from bread.backends.base import Node
from bread.paths.mixture import diagonal
from bread.report import container as report
from bread.report.compat import read_group
from bread.running.model_fit.fit_check import NodeTest
from bread.statistics.agreement.lower_bound import ToldApart
from tests.support.fake_results import constrain, fake_result
from tests.support.verdicts import judge


def given(**changes):
    """A check that would be "converged", with draws of the user's that are three standard deviations off."""
    return fake_result(posterior_shift=3.0, **changes)


def with_positions(result, *names):
    """Tell which coordinates these free variables have, as backends do."""
    places = {"mu": [0], "tau": [1], "theta": [2, 3, 4], "kind": [5]}
    positions = {name: np.array(places[name]) for name in names or places}
    return replace(result, info=replace(result.info, layout=replace(result.info.layout, positions=positions)))


def localise(result):
    return replace(with_positions(result), localisation=diagonal(np.zeros(2), np.ones(2)))


def localised():
    return localise(given(simulate_from="localised"))


def with_draws(change):
    result = given()
    result.fit = replace(result.fit, draws={name: change(name, values) for name, values in result.fit.draws.items()})
    return result


def short():
    result = with_draws(lambda name, values: values[:, :10])
    result.fit_log_density = result.fit_log_density[:, :10]
    return result


def unfinished():
    result = given()
    result.observed_draws = result.fit_log_density = None
    result.observed_log_weight = None
    return result


def none_drawn():
    result = unfinished()
    result.settings["draws"] = 0
    return result


def all_failed():
    result = given()
    result.observed_draws = result.observed_draws[:0]
    result.observed_log_density, result.n_draws_dropped = result.observed_log_density[:0], 1000
    return result


def one_left():
    result = given()
    result.observed_draws, result.n_draws_dropped = result.observed_draws[:1], 999
    result.observed_log_density = result.observed_log_density[:1]
    return result


def few_left():
    """Right draws, and ten certified ones."""
    result = fake_result(posterior_shift=0.0)
    result.observed_draws, result.n_draws_dropped = result.observed_draws[:10], 990
    result.observed_log_density = result.observed_log_density[:10]
    return result


def partial():
    """Of the free variables theta alone, which is right."""
    result = with_positions(fake_result(posterior_shift=0.0), "mu", "theta")
    result.fit = replace(result.fit, draws={"theta": result.fit.draws["theta"]})
    return result


def alone():
    """No variable is in both."""
    result = given()
    result.fit = replace(result.fit, draws={"other": result.fit.draws["mu"]})
    return result


def constant():
    result = given()
    one = result.observed_draws[:1]
    result.observed_draws = np.repeat(one, 1000, axis=0)
    result.observed_log_density = np.zeros(1000)
    result.fit_log_density = np.zeros((4, 200))
    values = constrain(np.repeat(one, 800, axis=0))
    result.fit = replace(result.fit, draws={k: v.reshape(4, 200, *v.shape[1:]) for k, v in values.items()})
    return result


def broken_comparison():
    return with_draws(lambda name, values: np.full_like(values, np.nan) if name == "tau" else values)


ROADS = {
    "localised": (localised, "those are of the localised model, another posterior than yours"),
    "draws=0": (none_drawn, "draws=0 asked for none"),
    "annealing on the real data never came": (unfinished, "none of the chains annealed on your data ended in a draw"),
    "all annealed chains failed": (all_failed, "none of the chains annealed on your data ended in a draw"),
    "one annealed chain is left": (one_left, "1 of the chains annealed on your data ended in a draw"),
    "too few certified draws": (few_left, "compared with 10 certified ones, which are too few"),
    "too few of the user's": (short, "are too few, 100 are needed"),
    "some variables": (partial, "in all variables: mu left out"),
    "no variable": (alone, "nothing in them varies, or they share no variable"),
    "nothing varies": (constant, "nothing in them varies, or they share no variable"),
    "the comparison fails": (broken_comparison, "which failed: InvalidArgumentError"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:The report lacks 'agreement'")
@pytest.mark.parametrize("road", ROADS)
def test_no_road_around_the_comparison_leads_to_converged(road):
    make, why = ROADS[road]
    result = make()
    verdict = judge(result)
    assert verdict.status == "inconclusive" and not verdict and verdict.agreement is not True
    assert why in verdict.details.split(" which takes", maxsplit=1)[0][:400], verdict
    assert "nan" not in verdict.details and "  " not in verdict.details and ".." not in verdict.details
    result.settings["posterior"] = False
    if result.fit is not None:
        result.fit = replace(result.fit, source="pm.sample")
    assert judge(result).status in ("converged", "disagreement")  # the control: nobody gave them


@pytest.mark.filterwarnings("ignore:The report lacks 'agreement'")
@pytest.mark.parametrize("road", ["localised", "draws=0", "the comparison fails"])
def test_other_statuses_say_it_too(road):
    make, why = ROADS[road]
    result = make()
    result.is_interrupted = True
    assert why in judge(result).details


def test_draws_that_were_compared_well_still_converge():
    assert judge(fake_result(posterior_shift=0.0)).status == "converged"
    assert judge(given()).status == "disagreement"


@pytest.mark.parametrize("n_draws", [100, 1000])
def test_one_standard_deviation_is_what_must_be_seen(n_draws):
    """The rule on both sides: 100 certified draws see 0.8 standard deviations of 800 draws, 40 see none below one."""
    result = fake_result(posterior_shift=0.0, n_draws=n_draws)
    assert judge(result).status == "converged"
    result.observed_draws, result.observed_log_density = result.observed_draws[:40], result.observed_log_density[:40]
    verdict = judge(result)
    assert verdict.status == "inconclusive" and "one standard deviation is too much to go unseen" in verdict.details


def parameter_misfit(result, kind="parameter", deviation=4.4, p_value=1e-4, name="mu"):
    """Let a node of the prior lie where it hardly may be; the data fit."""
    number, draw = np.full(20, 4799), np.linspace(0.02, 0.6, 20)
    sound = np.column_stack([draw, draw[::-1], np.full(20, np.nan)])
    wrong = np.full((20, 3), np.nan)
    wrong[:, 2 if kind == "parameter" else 0] = p_value
    tests = (
        NodeTest(Node("y", "data", {"y": (3, 2)}), sound, np.full(20, 0.1), number, np.zeros(6)),
        NodeTest(Node(name, kind, {name: ()}), wrong, np.full(20, np.nan), number, np.array([deviation])),
    )
    result.fit_check = replace(result.fit_check, tests=tests)
    return result


@pytest.mark.parametrize(
    ("simulate_from", "kind", "name", "deviation", "status"),
    [
        ("prior", "parameter", "mu", 4.4, "inconclusive"),
        ("prior", "parameter", "tau", -1.2, "inconclusive"),  # a scale near 0 under a wide prior
        ("prior", "latent", "theta", 4.4, "inconclusive"),
        ("fitted", "latent", "theta", 4.4, "inconclusive"),
        ("fitted", "latent", "theta", 1.0, "inconclusive"),
        ("fitted", "parameter", "mu", 4.4, "inconclusive"),
        ("fitted", "parameter", "tau", -1.2, "converged"),  # simulated data have that scale too
        ("localised", "parameter", "tau", -1.2, "converged"),
        ("localised", "latent", "theta", 4.4, "inconclusive"),
    ],
)
def test_a_parameter_that_its_prior_does_not_expect(simulate_from, kind, name, deviation, status):
    verdict = judge(parameter_misfit(fake_result(simulate_from=simulate_from), kind, deviation, name=name))
    assert verdict.status == status and verdict.fit == "poor"
    if status == "inconclusive":
        assert f"{name} is where its prior hardly lets it be (fit p < 0.001" in verdict.details
        assert "is no answer for your data" in verdict.details and "are within" not in verdict.details
        assert ("4.4 standard deviations above" in verdict.details) == (deviation == 4.4)
    else:
        assert "and simulated data have it from the fit to yours" in verdict.details and "unlike" not in verdict.details
    sound = parameter_misfit(fake_result(simulate_from=simulate_from), kind, deviation, 0.2, name)
    assert judge(sound).status == "converged"  # the control


def test_own_draws_are_not_called_wrong_by_a_bound_that_is_no_answer():
    verdict = judge(parameter_misfit(given()))
    assert verdict.status == "inconclusive" and "One of the two is wrong" in verdict.details
    assert judge(given()).status == "disagreement"


def test_a_misfit_of_the_data_is_no_status_beside_it():
    assert judge(fake_result(misfit=True)).status == "converged"


def test_localised_says_first_which_model_it_is_about():
    verdict = judge(localise(fake_result(simulate_from="localised")))
    assert verdict.status == "converged"
    assert verdict.details.startswith(
        "Converged. What is certified are draws of the localised model, which has a widened fit"
    )
    assert "in place of the prior of mu, tau." in verdict.details


def test_a_search_for_modes_that_was_left_out_is_said():
    reason = "Modes on the real data were not looked for: the model has discrete variables."
    result = fake_result()
    result.warnings.append(reason)
    assert judge(result).status == "converged" and reason in judge(result).details
    assert reason not in judge(fake_result()).details


def test_a_report_of_before_still_opens():
    made = report.to_container(fake_result(posterior_shift=0.0), constrain)
    agreement = report.read_group(made, "agreement")
    for name in ("detectable_probability", "detectable_probability_beyond_error"):
        del agreement[name]
    for name in ("n_discrete", "left_out"):
        del agreement.attrs[name]
    verdict = bread.verdict(made)
    assert verdict.status == "converged"


def told(shift, own, certified, **changes):
    result = fake_result(posterior_shift=shift, **changes)
    result.told_apart = ToldApart(own, certified, 800.0, 750.0)
    return judge(result)


def test_a_disagreement_says_by_how_much_at_least_and_at_most():
    """Shares 0.5 apart, 0.05 less by their limit and 0.09 less by that of V."""
    verdict = told(1.2, 0.7, 0.2)
    assert verdict.status == "disagreement" and "your 90% interval of mu holds" in str(verdict)
    found = re.search(
        r"wrong by at least (0\.\d\d) in some event, at most (0\.\d\d) in any P\(x <= c\) \(mu\)", str(verdict)
    )
    assert found and 0.34 <= float(found[1]) <= 0.40 and float(found[2]) > 0.45
    assert "They are wrong by at least 0." in verdict.details
    assert len(str(verdict).splitlines()) <= 8 and max(map(len, str(verdict).splitlines())) <= 100


def test_what_a_classifier_alone_tells_apart_is_a_disagreement_beyond_v_only():
    verdict = told(0.0, 0.7, 0.2)
    assert verdict.status == "disagreement"
    assert "classed as yours: 0.70 of your draws, 0.20 of 1000 certified draws (p < 0.001)\n" in str(verdict)
    within = told(0.0, 0.53, 0.40)
    assert within.status == "inconclusive" and within.comparison == "difference"
    assert "wrong by at least" not in str(within)
    assert told(0.0, 0.47, 0.45).status == "converged"
    unlike = told(0.0, 0.7, 0.2, observed_extra=8.0, n_forward=179)
    assert unlike.status == "mismatch" and "wrong by at least" not in str(unlike)


def test_without_a_classifier_a_report_says_what_it_said():
    agreement = read_group(report.to_container(given(), constrain), "agreement")
    assert "total_variation_lower" not in agreement and "draws" not in agreement.coords
    assert "wrong by at least" not in str(judge(given()))
