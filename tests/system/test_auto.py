"""Where data sets come from is the first that the model allows; where nothing can be simulated, the draws are read."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from typer.testing import CliRunner

import bread
from bread.cli.commands import app
from bread.errors import DensityError, InvalidArgumentError, UnsupportedModelError
from bread.report.compat import group_names, read_attributes, read_group
from bread.running.state.plan import protocols
from tests.models.reference import AutoregressiveKernel, BetaBinomial, HMCKernel, NormalMean

Y = default_rng(3).normal(1.0, 1.0, size=20)
MODEL = NormalMean(Y, prior_sd=3.0, kernel=HMCKernel())
QUICK: dict[str, Any] = {"random_seed": 2, "progressbar": False, "cores": 1}


class WithoutSimulator(NormalMean):
    """A model of which the density alone is known."""

    error: type[Exception] = UnsupportedModelError

    def simulate(self, n: int, *, fixed: Any, seed: Any) -> Any:
        raise self.error("Data of y cannot be simulated: there is no generator. Write one.")


UNSIMULATED = WithoutSimulator(Y, prior_sd=3.0, kernel=HMCKernel())


def draws(factor: float = 1.0, shift: float = 0.0) -> dict[str, Any]:
    """Return exact posterior draws, spread and shifted (posterior standard deviations)."""
    exact = MODEL.draw_posterior({"y": Y}, 2000, default_rng(1))[:, 0]
    return {"mean": (exact.mean() + factor * (exact - exact.mean()) + shift * exact.std()).reshape(4, 500)}


def test_a_prior_that_can_be_drawn_is_simulated_near_the_fit() -> None:
    given = {"n_temperatures": [4], "simulations": 2, "draws": 4, "posterior": draws(), **QUICK}
    made = bread.check(MODEL, **given)
    assert read_attributes(made)["simulate_from"] == "fitted" and read_attributes(made)["warnings"].count("since") == 0
    assert json.loads(read_attributes(made)["settings"])["simulate_from"] == "fitted"
    asked = bread.check(MODEL, simulate_from="fitted", **given)
    for name in ("forward", "reverse"):
        np.testing.assert_array_equal(*(read_group(one, name)["log_weight"].values for one in (made, asked)))


@pytest.mark.parametrize("error", [UnsupportedModelError, DensityError])
def test_what_cannot_be_simulated_is_looked_at_by_its_density(error: type[Exception], monkeypatch: Any) -> None:
    monkeypatch.setattr(WithoutSimulator, "error", error)
    made = bread.check(UNSIMULATED, posterior=draws(), **QUICK)
    attributes, verdict = read_attributes(made), bread.verdict(made)
    assert attributes["not_certified"] == "Data of y cannot be simulated: there is no generator; write one"
    assert {"first_look", "modes"} <= set(group_names(made)) and "bounds" not in group_names(made)
    assert verdict.status == "no difference seen" and "Not certified" in verdict and "Do now" not in verdict
    assert np.isnan(verdict.error_limit) and verdict.n_temperatures == 0 and verdict.n_missed_modes == 0
    assert len(bread.summary(made)) == 1
    found, se = attributes["fit_log_evidence"], attributes["fit_log_evidence_error"]
    assert abs(found - MODEL.log_evidence({"y": Y})) < 4.0 * se + 1e-6 and se < 0.05
    with pytest.raises(error, match="there is no generator"):
        bread.check(UNSIMULATED, simulate_from="fitted", posterior=draws(), **QUICK)


def test_every_reader_takes_a_report_without_bounds(tmp_path: Any) -> None:
    made = bread.check(UNSIMULATED, posterior=draws(), **QUICK)
    file = tmp_path / "report.nc"
    made.to_netcdf(file)
    assert bread.verdict(file).status == "no difference seen"
    assert "Not certified" in bread.to_markdown(file)
    bread.to_html(file, tmp_path / "page.html")
    for options, words in ((["--json"], '"status": "no difference seen"'), ([], "Not certified: Data of y cannot be")):
        shown = CliRunner().invoke(app, ["show", str(file), *options])
        assert shown.exit_code == 3 and words in shown.output


@pytest.mark.parametrize("wrong", [{"factor": 0.7}, {"shift": 0.5}])
def test_wrong_draws_are_named_there_too(wrong: dict[str, float]) -> None:
    made = bread.check(UNSIMULATED, posterior=draws(**wrong), **QUICK)
    assert bread.verdict(made).status == "disagreement" and "Not certified" in bread.verdict(made)


def test_a_checkpoint_keeps_it(tmp_path: Any) -> None:
    made = bread.check(UNSIMULATED, posterior=draws(), checkpoint=tmp_path / "run", **QUICK)
    again = bread.resume(tmp_path / "run", progressbar=False)
    for name in ("not_certified", "simulate_from", "fit_log_evidence"):
        assert read_attributes(made)[name] == read_attributes(again)[name]
    with pytest.raises(InvalidArgumentError, match="is of another call"):
        bread.check(MODEL, simulate_from="posterior", posterior=draws(), checkpoint=tmp_path / "run", **QUICK)


def test_a_plan_needs_what_a_check_anneals() -> None:
    with pytest.raises(UnsupportedModelError, match="there is no generator"):
        bread.plan(UNSIMULATED, budget=10_000, posterior=draws(), **QUICK)


def test_a_path_that_is_asked_for_is_refused_whatever_else_could_be_had() -> None:
    with pytest.raises(UnsupportedModelError, match="HMCKernel"):
        bread.check(NormalMean(Y, kernel=AutoregressiveKernel()), path="reference", **QUICK)
    with pytest.raises(UnsupportedModelError, match="path='prior': simulate_from='posterior' anneals from a base"):
        bread.check(MODEL, simulate_from="posterior", path="prior", **QUICK)


def test_nothing_is_held_at_draws_of_the_posterior() -> None:
    with pytest.raises(InvalidArgumentError, match="holds nothing, but hyperparameters= names mean"):
        bread.check(MODEL, simulate_from="posterior", hyperparameters="mean", **QUICK)


@pytest.mark.parametrize(
    ("given", "tried"),
    [
        (("auto", None, "auto"), ("fitted", "posterior", "localised", "auto")),
        (("auto", ("mean",), "auto"), ("fitted", "localised", "auto")),
        (("auto", None, "prior"), ("fitted", "localised", "auto")),
        (("prior", None, "auto"), ("prior",)),
    ],
)
def test_what_is_tried_follows_from_the_arguments(given: tuple[Any, ...], tried: tuple[str, ...]) -> None:
    assert protocols(*given) == tried


@pytest.mark.parametrize(("shift", "status"), [(0.0, "converged"), (2.5, "disagreement")])
def test_data_added_to_the_real_ones_test_the_draws(shift: float, status: str) -> None:
    # With seed 2 the ranks have p = 0.0026 by chance, alone of 24 seeds.
    quick = QUICK | {"random_seed": 1}
    made = bread.check(MODEL, simulate_from="posterior", posterior=draws(shift=shift), **quick)
    verdict = bread.verdict(made)
    assert verdict.status == status
    assert (verdict.rank_p_value <= 0.0033) == (shift > 0.0)
    assert "posterior_sbc" in group_names(made) and "consistency" not in group_names(made)
    if shift == 0.0:
        assert "given your data and as many" in verdict
        assert (
            abs(read_group(made, "posterior")["mean"].values.mean() - draws()["mean"].mean()) < 0.1
        )  # of the real data alone


class Overdispersed(BetaBinomial):
    """Draws counts of the right mean that vary too much: no identity of parameters given the mean is broken."""

    def draw_data(self, parameters: Any, generator: Any) -> dict[str, Any]:
        mean = float(np.asarray(parameters["probability"]))
        drawn = generator.binomial(np.asarray(self.trials), generator.beta(6.0 * mean, 6.0 * (1.0 - mean)))
        return {"successes": drawn}


@pytest.mark.parametrize(("model", "status"), [(BetaBinomial, "converged"), (Overdispersed, "inconclusive")])
def test_draws_that_pass_all_else_are_not_blamed_for_what_simulates_data(model: Any, status: str) -> None:
    trials = np.full(10, 20)
    successes = default_rng(1).binomial(trials, 0.4)
    exact = default_rng(2).beta(1 + successes.sum(), 1 + (trials - successes).sum(), size=(4, 500))
    made = bread.check(model(successes, trials), simulate_from="posterior", posterior={"probability": exact}, **QUICK)
    verdict = bread.verdict(made)
    assert verdict.status == status
    assert ("whose draws and density differ" in verdict) == (status == "inconclusive")
