"""What a verdict says of modes on the real data."""

from dataclasses import replace

import numpy as np
import pytest

import bread
from bread.report import container as report
from bread.running.mode_results import FoundMode, ModeResults
from bread.statistics.modes import RegionEvidence, Share, WeighedMode
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
            "On your data a mode at mu = 8.1 holds at least 97% of the mass and none of 100 annealed draws is there.",
            "Simulated data do not show that: on them V is at most 0.08.",
            "Start chains there",
        ],
        ["more", "annealed draws that miss"],
    ),
    "few draws there": (
        [mode(missed=True, annealed=Share(0.031, 0.001, 0.1))],
        {},
        "not converged",
        ["only 3.1% of 100 annealed draws are there"],
        [],
    ),
    "two missed": ([mode(missed=True), mode(missed=True)], {}, "not converged", ["They miss 1 more."], []),
    "own draws there": (
        [mode(missed=True, own=Share(0.93, 0.9, 0.95))],
        {"posterior_shift": 1.5},
        "not converged",
        ["93% of your own draws are there: it is the annealed draws that miss it"],
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
        ["No mode that the annealed draws miss was found on your data (looking from 4000 prior draws"],
        ["there is no", "there is none", "holds at least"],
    ),
    "nothing found at all": ([], {}, "converged", ["No mode that the annealed draws miss was found"], []),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_what_a_verdict_says_of_modes(name):
    modes, changes, status, said, unsaid = SITUATIONS[name]
    verdict = judge(with_modes(*modes, **changes))
    assert verdict.status == status and bool(verdict) == (status == "converged")
    for words in said:
        assert words in verdict
    for words in unsaid:
        assert words not in verdict
    assert "nan" not in verdict and "  " not in verdict and ".." not in verdict
    assert verdict.n_missed_modes == sum(one.weighed.missed for one in modes)


def test_without_a_search_nothing_is_said():
    verdict = judge(fake_result())
    assert verdict.status == "converged" and verdict.n_missed_modes is None
    assert "mode " not in verdict and "modes" not in verdict


def test_a_bug_comes_first():
    assert judge(shift_reverse_starts(with_modes(mode(missed=True)))).status == "bug"


def test_place_names_what_is_far_from_the_draws():
    away = replace(mode(missed=True), state=np.array([7.0, 0.0, 0.0, -7.4, 0.0, 1.0]))
    verdict = judge(with_modes(away))
    assert "mu = 7" in verdict and "theta[1] = -7.4" in verdict and "tau" not in verdict.split(" holds ")[0]


def test_summary_has_a_column_where_modes_were_looked_for():
    table = bread.summary(report.to_container(with_modes(mode(missed=True), mode(missed=False)), constrain))
    assert table["missed_modes"].isna().tolist() == [True, True, False] and table["missed_modes"].iloc[-1] == 1
    assert "missed_modes" not in bread.summary(report.to_container(fake_result(), constrain))


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
