"""The first phase of a check: a look at the draws on the real data, which names wrong ones whatever comes later."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bread
from bread.backends.base import Posterior
from bread.report.container import read_group
from tests.models.reference import BetaBinomial, HMCKernel
from tests.models.reference.posterior import ReferencePosterior
from tests.support.direct_models import CLEAN, PLANTED
from tests.support.reference_models import CONJUGATE

MODEL = CONJUGATE["hierarchical_hmc"]
RIGHT = MODEL.fit(seed=3, cores=1, progressbar=False).draws
WRONG = RIGHT | {"mu": RIGHT["mu"] + 0.5 * RIGHT["mu"].std()}
QUICK = {
    "n_temperatures": [4], "simulations": 2, "random_seed": 5, "cores": 1, "progressbar": False, "tune": 20,
    "tune_on": "shared", "draws": 0,
}  # fmt: skip
Check = Callable[..., Any]


def stop(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> Check:
    """Return a function that runs a check until a path would be chosen, as Ctrl-C ends it there."""

    def begin(model: Any = MODEL, **options: Any) -> Any:
        with monkeypatch.context() as patch, pytest.warns(UserWarning, match="Interrupted"):
            patch.setattr("bread.running.check.runner.Preparation.choose_path", stop)
            report = bread.check(model, **(QUICK | options))
        assert read_group(report, "bounds") is None
        return report

    return begin


def status(report: Any) -> str:
    return bread.verdict(report).status


@pytest.mark.parametrize("simulate_from", ["fitted", "prior", "localised"])
def test_the_users_draws_are_looked_at_with_the_users_own_density(check: Check, simulate_from: str) -> None:
    looked = read_group(bread.look(MODEL, posterior=WRONG, progressbar=False), "first_look")
    report = check(posterior=WRONG, simulate_from=simulate_from)
    assert read_group(report, "first_look").equals(looked)
    assert status(report) == "disagreement"
    n_gradients = read_group(report, "cost")["n_gradients"].sel(phase="look")
    assert int(n_gradients) == looked.attrs["n_draws"] == 1000
    assert status(check(posterior=RIGHT, simulate_from=simulate_from)) == "inconclusive"  # it was interrupted


@pytest.mark.parametrize("simulate_from", ["fitted", "localised"])
def test_so_are_draws_of_the_fit_that_bread_makes(
    check: Check, monkeypatch: pytest.MonkeyPatch, simulate_from: str
) -> None:
    assert float(read_group(check(simulate_from=simulate_from), "first_look")["p_value"]) > 0.001
    wrong = dataclasses.replace(MODEL.fit(seed=3, cores=1, progressbar=False), draws=WRONG)
    monkeypatch.setattr(type(MODEL), "fit", lambda *_, **__: wrong)
    assert status(check(simulate_from=simulate_from)) == "disagreement"


def test_a_whole_check_keeps_it() -> None:
    report = bread.check(MODEL, posterior=WRONG, **QUICK)
    assert read_group(report, "first_look") is not None and read_group(report, "bounds") is not None
    assert status(report) == "disagreement"


def test_without_draws_there_is_no_look(check: Check) -> None:
    assert read_group(check(simulate_from="prior"), "first_look") is None


def test_what_it_found_is_shown_before_anything_else(check: Check, capsys: pytest.CaptureFixture[str]) -> None:
    check(posterior=WRONG, progressbar=True)
    assert "mu: mean too high by" in capsys.readouterr().err


def test_data_that_came_with_the_draws_are_compared(check: Check) -> None:
    xr = pytest.importorskip("xarray")
    y = MODEL.info.data.observed["y"]
    posterior = xr.Dataset({"mu": (("chain", "draw"), RIGHT["mu"])})
    posterior["group_mean"] = (("chain", "draw", "group"), RIGHT["group_mean"])

    def with_data(y: np.ndarray) -> Any:
        return xr.DataTree.from_dict({"posterior": posterior, "observed_data": xr.Dataset({"y": (("n", "one"), y)})})

    assert status(check(posterior=with_data(y[:, None]))) == "inconclusive"  # an axis of one is no difference
    assert status(check(posterior=with_data(y[:, None] + 1.0))) == "disagreement"


def test_a_broken_density_is_a_bug_though_the_draws_disagree_with_it() -> None:
    model, draws = PLANTED["sd for variance in the prior"], CLEAN.fit(seed=3, cores=1, progressbar=False).draws
    draws = {name: values + 5.0 * values.std() for name, values in draws.items()}
    assert status(bread.look(model, posterior=draws, progressbar=False)) == "disagreement"
    assert status(bread.check(model, posterior=draws, **QUICK)) == "bug"


def test_a_checkpoint_keeps_it(check: Check, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    before = read_group(check(posterior=WRONG, checkpoint=tmp_path), "first_look")
    monkeypatch.setattr("bread.verbs.run.look_at", stop)  # it does not run again
    assert read_group(check(posterior=WRONG, checkpoint=tmp_path), "first_look").equals(before)


def test_a_density_without_a_gradient_is_left_out_and_said(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReferencePosterior, "density_gradient", Posterior.density_gradient)
    look = read_group(check(posterior=WRONG), "first_look")
    assert np.isnan(float(look["p_value"])) and "offers no gradient" in look.attrs["left_out"]


def test_draws_on_the_border_of_a_support_are_left_out(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sampler's draws may round to it."""
    model = BetaBinomial(np.array([3, 1]), np.array([4, 3]), alpha=2.0, beta=3.0, kernel=HMCKernel(n_leapfrog=5))
    fit = model.fit(seed=3, cores=1, progressbar=False)
    fit.draws[next(iter(fit.draws))][0, 0] = 0.0
    monkeypatch.setattr(type(model), "fit", lambda *_, **__: fit)
    look = read_group(check(model), "first_look")
    assert np.isnan(float(look["p_value"])) and "border" in look.attrs["left_out"]
