"""What a verdict says of modes on the real data."""

from dataclasses import replace

import numpy as np
import pytest

import bread
from bread.report import container as report
from bread.running.state.mode_results import FoundMode, ModeResults
from bread.statistics.bounds.goal import Goal
from bread.statistics.real_data.modes import RegionEvidence, Share, WeighedMode
from tests.support.fake_results import constrain, fake_result, shift_reverse_starts

STATE = np.array([8.1, 0.5, 0.0, 0.0, 0.0, 1.0])
NOWHERE, HALF = Share(0.0, 0.0, 0.007), Share(0.5, 0.4, 0.6)


def mode(*, missed, mass=0.978, annealed=NOWHERE, own=None, state=STATE):
    weighed = WeighedMode(RegionEvidence(-40.0, 0.02, 900.0), False, mass, mass - 0.002, annealed, missed)
    return FoundMode(state, -38.0, weighed, own)


def with_modes(*modes, **changes):
    result = fake_result(**changes)
    result.modes = ModeResults(modes, -44.0, 100, 4000, 13, 250, 16_400, ())
    return result


def judge(result):
    return bread.verdict(report.to_container(result, constrain))


SITUATIONS = {
    "missed": (
        [mode(missed=True), mode(missed=False, mass=0.02, annealed=HALF)],
        {},
        "not converged",
        [
            "On your data a mode at mu = 8.1 holds at least 97% of the mass and none of 100 certified draws is there.",
            "Simulated data do not show that: on them V is at most 0.08.",
            "Start chains there",
        ],
        ["more", "certified draws that miss"],
    ),
    "missed, and the bound is loose": (
        [mode(missed=True)],
        {"gap": 30.0},
        "not converged",
        ["holds at least 97%", "Simulated data show no small error either: there V is 1.00 (asked for: 0.10)."],
        ["do not show that", "at most 1.00"],
    ),
    "missed, and the bound is not small enough": (
        [mode(missed=True)],
        {"gap": 0.05},
        "not converged",
        ["Simulated data show no small error either: there V is 0.10 (asked for: 0.10)."],
        ["do not show that"],
    ),
    "missed, and the bound in nats is loose": (
        [mode(missed=True)],
        {"gap": 6.0, "goal": Goal(target=1.0)},
        "not converged",
        ["Simulated data show no small error either: there B is 6", "(asked for: 1 nats)."],
        ["do not show that"],
    ),
    "missed in the user's model, where another is annealed": (
        [mode(missed=True)],
        {"simulate_from": "localised"},
        "not converged",
        ["The localised model does not show that: on its data V is at most 0.08."],
        ["Simulated data"],
    ),
    "few draws there": (
        [mode(missed=True, annealed=Share(0.031, 0.001, 0.1))],
        {},
        "not converged",
        ["only 3.1% of 100 certified draws are there"],
        [],
    ),
    "two missed": ([mode(missed=True), mode(missed=True)], {}, "not converged", ["They miss 1 more."], []),
    "own draws there": (
        [mode(missed=True, own=Share(0.93, 0.9, 0.95))],
        {"posterior_shift": 1.5},
        "not converged",
        ["93% of your own draws are there: it is the certified draws that miss it"],
        ["Your draws are not the posterior's", "one of the two is wrong"],
    ),
    "own draws miss it too": (
        [mode(missed=True, own=NOWHERE)],
        {"posterior_shift": 0.0},
        "not converged",
        ["Your own draws miss it too"],
        ["do not differ noticeably"],
    ),
    "few simulations": ([mode(missed=True)], {"n_confirm": 9}, "not converged", ["holds at least 97%"], []),
    "harder data and a missed mode": (
        [mode(missed=True)],
        {"observed_extra": 8.0, "n_forward": 179},
        "mismatch",
        ["Your data anneal unlike", "holds at least 97%"],
        [],
    ),
    "none found": (
        [mode(missed=False, annealed=HALF)],
        {},
        "converged",
        ["No mode that the certified draws miss was found on your data (looking from 4000 prior draws"],
        ["there is no", "there is none", "holds at least"],
    ),
    "nothing found at all": ([], {}, "converged", ["No mode that the certified draws miss was found"], []),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_what_a_verdict_says_of_modes(name):
    modes, changes, status, said, unsaid = SITUATIONS[name]
    verdict = judge(with_modes(*modes, **changes))
    assert verdict.status == status and bool(verdict) == (status == "converged")
    for words in said:
        assert words in verdict.details
    for words in unsaid:
        assert words not in verdict.details
    assert "nan" not in verdict.details and "  " not in verdict.details and ".." not in verdict.details
    assert verdict.n_missed_modes == sum(one.weighed.missed for one in modes)


@pytest.mark.parametrize(
    ("source", "named", "whose"),
    [
        ("posterior=", "none of your 100 draws is there", "that your draws miss"),
        ("pm.sample", "none of 100 draws of pm.sample is there", "that the draws of pm.sample miss"),
    ],
)
def test_draws_of_the_fit_are_named_where_they_are_under_test(source, named, whose):
    """Under "localised" the certified draws are of another model: the fit's are looked at in the user's own."""
    result = with_modes(mode(missed=True), simulate_from="localised", posterior_shift=0.0)
    result.fit = replace(result.fit, source=source)
    result.settings["posterior"] = source == "posterior="
    result.modes = replace(result.modes, source=source)
    verdict = judge(result)
    assert (
        verdict.status == "not converged"
        and named in verdict.details
        and "certified draws is there" not in verdict.details
    )
    result.modes = replace(result.modes, modes=(mode(missed=False),), has_prior=False)
    found = judge(result)
    assert f"No mode of your own model {whose} was found on your data" in found.details
    assert "looking from 4000 draws spread far around them" in found.details


def test_without_a_search_nothing_is_said():
    verdict = judge(fake_result())
    assert verdict.status == "converged" and verdict.n_missed_modes is None
    assert "mode " not in verdict.details and "modes" not in verdict.details


def test_a_bug_comes_first():
    assert judge(shift_reverse_starts(with_modes(mode(missed=True)))).status == "bug"


def test_place_names_what_is_far_from_the_draws():
    away = replace(mode(missed=True), state=np.array([7.0, 0.0, 0.0, -7.4, 0.0, 1.0]))
    verdict = judge(with_modes(away))
    assert (
        "mu = 7" in verdict.details
        and "theta[1] = -7.4" in verdict.details
        and "tau" not in verdict.details.split(" holds ")[0]
    )


def test_summary_has_a_column_where_modes_were_looked_for():
    table = bread.summary(
        report.to_container(with_modes(mode(missed=True), mode(missed=False)), constrain), kind="bounds"
    )
    assert table["missed_modes"].isna().tolist() == [True, True, False] and table["missed_modes"].iloc[-1] == 1
    assert "missed_modes" not in bread.summary(report.to_container(fake_result(), constrain), kind="bounds")


@pytest.mark.slow
def test_group_survives_a_file(tmp_path):
    import arviz

    made = report.to_container(with_modes(mode(missed=True, own=HALF), mode(missed=False)), constrain)
    made.to_netcdf(str(tmp_path / "report.nc"))
    again = arviz.from_netcdf(str(tmp_path / "report.nc"))
    group, read = report.read_group(made, "modes"), report.read_group(again, "modes")
    assert group.equals(read) and group.attrs["n_prior_draws"] == read.attrs["n_prior_draws"] == 4000
    assert bread.verdict(made) == bread.verdict(again)
    assert group["place"].sel(parameter="theta[0]").values.tolist() == [0.0, 0.0]
    assert float(group["place"].sel(parameter="tau")[0]) == pytest.approx(np.exp(0.5))  # the model's own coordinates
    assert group["share_own"].values[0] == 0.5 and np.isnan(group["share_own"].values[1])
