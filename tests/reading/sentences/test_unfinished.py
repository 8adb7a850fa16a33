"""A check that did not finish names the phase that took the time, and what to do about it."""

import pytest

import bread
from bread.report import container as report
from tests.support.fake_results import constrain, fake_result
from tests.support.verdicts import judge


@pytest.mark.parametrize(
    ("phase", "name", "advice"),
    [
        ("compile", "reading and compiling the model", "begins sooner"),
        ("fit", "the fit on the real data", "posterior="),
        ("tune", "choosing a path, tuning and fitting references", 'path="reference"'),
        ("race", "trying out paths", 'path="reference"'),
        ("start", "the starts of reverse chains", "init_steps="),
        ("search", "the search for a number of temperatures", "max_error="),
        ("confirm", "chains on fresh simulated data", "max_error="),
        ("consistency", "comparing your data with simulated data", "n_temperatures="),
        ("draws", "certified draws on your data", "draws=0"),
        ("modes", "the search for modes on the real data", "Run it again with more time"),
        ("another", "another", "Run it again with more time"),
    ],
)
@pytest.mark.parametrize("has_bound", [True, False])
def test_the_longest_phase_is_named(phase, name, advice, has_bound):
    result = fake_result()
    result.is_interrupted = True
    if not has_bound:
        result.runs.clear()
    result.seconds = {"search": 3.0, "compile": 2.0} | {phase: 81.0}
    total = sum(result.seconds.values())
    verdict = judge(result)
    assert verdict.status == "inconclusive"
    assert f"Of {total:.0f} s, 81 went into {name}." in verdict.details and advice in verdict.details


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        (
            {},
            'path="reference" or path="prior" skips the choice; tune_on="shared" fits once for all data sets; a '
            "smaller tune= shortens each.",
        ),
        ({"tune_on": "shared"}, 'path="reference" or path="prior" skips the choice; a smaller tune= shortens each.'),
        ({"path": "prior"}, 'tune_on="shared" fits once for all data sets; a smaller tune= shortens each.'),
        ({"path": "reference", "tune_on": "shared"}, "A smaller tune= shortens it."),
    ],
)
def test_what_is_set_already_is_no_advice(settings, advice):
    result = fake_result()
    result.is_interrupted, result.seconds = True, {"tune": 81.0}
    result.settings |= {"path": "auto", "tune_on": "each"} | settings
    assert f"went into choosing a path, tuning and fitting references. {advice}" in judge(result).details


def test_nothing_is_blamed_where_nothing_took_long():
    result = fake_result()
    result.is_interrupted, result.seconds = True, {"compile": 0.2, "fit": 0.3}
    assert "went into" not in judge(result).details
    result.runs.clear()
    assert "Run it again, with more time or fewer temperatures." in judge(result).details


def test_a_finished_check_blames_nothing():
    result = fake_result()
    result.seconds = {"fit": 81.0}
    assert "went into" not in judge(result).details


def test_fresh_simulations_that_were_done_are_said():
    result = fake_result()
    result.is_interrupted = True
    assert "fresh simulations gave; what comes after that is missing" in judge(result).details
    for key in [key for key in result.runs if key[2] == 64 and key[0] >= 6]:
        del result.runs[key]
    assert "shows where things stand but confirms nothing" in judge(result).details


@pytest.mark.parametrize(
    ("path", "kernel", "library", "is_named"),
    [
        ("reference", None, "pymc", True),
        ("reference", None, "stan", True),
        ("prior", None, "pymc", False),
        ("reference", "independence", "pymc", False),
        ("reference", None, "numpyro", False),
    ],
)
def test_proposals_from_the_reference_are_named_where_they_would_help(path, kernel, library, is_named):
    """Where chains do not follow a reference path, or the search for T took the time."""

    def verdict_of(result):
        result.settings["kernel"] = kernel
        found = report.to_container(result, constrain)
        found.attrs |= {"path": path, "inference_library": library}
        return bread.verdict(found)

    stuck = verdict_of(fake_result(gap=3.0, rate=0.0))
    assert stuck.status == "not converged" and ('kernel="independence"' in stuck.details) == is_named
    stopped, fitting = fake_result(), fake_result()
    for result, phase in ((stopped, "search"), (fitting, "fit")):
        result.is_interrupted, result.seconds = True, {phase: 81.0}
    assert ('kernel="independence"' in verdict_of(stopped).details) == is_named
    assert "independence" not in verdict_of(fitting).details
