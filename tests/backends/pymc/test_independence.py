"""Independence proposals with PyMC's kernels: exact evidence along both paths, names, refusals, whole checks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import bread
from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.backends.pymc import posterior
from bread.backends.support.independence import Proposals
from bread.errors import UnsupportedKernelError
from bread.paths.kinds import Path, PriorPath, ReferencePath
from bread.paths.mixture import gaussian
from bread.report.compat import read_attributes, read_group, require_group
from tests.support.conformance import (
    check_bit_equal_batching,
    check_contract_shapes,
    check_forward_reverse_identities,
    check_frozen,
    check_weighted_ranks,
    tuned_kernel,
)
from tests.support.independent_chains import check_order, check_request, check_rests
from tests.support.pymc_conjugate import MODELS, SHORT, exact_of

pytestmark = [pytest.mark.pymc, pytest.mark.statistical]
PATHS: dict[str, Path] = {
    "prior": PriorPath(),
    "reference": ReferencePath(gaussian(np.array([0.3]), np.array([[0.9]]))),  # of the logit, off on purpose
}


@pytest.fixture(scope="module")
def model() -> Any:
    return open_model(MODELS["beta_binomial"][0](), OpenOptions(kernel="independence+hmc"))


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_contract(model: Any, path: Path) -> None:
    kernel = tuned_kernel(model, path=path)
    check_contract_shapes(model, kernel, path=path)
    check_bit_equal_batching(model, kernel, path=path)
    check_frozen(model, kernel, path=path)


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_identities_and_ranks(model: Any, path: Path) -> None:
    """T = 8, 200 simulations, 4 standard errors; ranks at the level 0.001."""
    kernel, exact = tuned_kernel(model, path=path), exact_of("beta_binomial")
    check_forward_reverse_identities(model, kernel, SHORT, log_evidence=exact, n_simulations=200, path=path)
    check_weighted_ranks(model, kernel, SHORT, n_simulations=200, path=path)


@pytest.mark.slow
def test_identities_with_a_discrete_variable() -> None:
    """A compound kernel on the prior path: the proposal moves label and mean together."""
    model = open_model(MODELS["label_mixture"][0](), OpenOptions(kernel="independence"))
    kernel, exact = tuned_kernel(model), exact_of("label_mixture")
    check_contract_shapes(model, kernel)
    check_forward_reverse_identities(model, kernel, SHORT, log_evidence=exact, n_simulations=200)
    check_weighted_ranks(model, kernel, SHORT, n_simulations=200)


def test_acceptance_at_the_wrong_temperature_is_seen(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: proposals accepted as at beta = 1, wherever the chain is."""
    right = Proposals.accepts
    monkeypatch.setattr(Proposals, "accepts", lambda self, step, beta, ratio: right(self, step, 1.0, ratio))
    with pytest.raises(AssertionError):
        check_forward_reverse_identities(
            model, tuned_kernel(model), SHORT, log_evidence=exact_of("beta_binomial"), n_simulations=200
        )


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_identities_and_ranks_where_the_kernel_rests(model: Any, path: Path) -> None:
    """As above; the kernel moves at three of seven temperatures."""
    kernel, exact = replace(tuned_kernel(model, path=path), every=3), exact_of("beta_binomial")
    check_contract_shapes(model, kernel, path=path)
    check_bit_equal_batching(model, kernel, path=path)
    check_forward_reverse_identities(model, kernel, SHORT, log_evidence=exact, n_simulations=200, path=path)
    check_weighted_ranks(model, kernel, SHORT, n_simulations=200, path=path)


@pytest.mark.parametrize("every", [2, 3, 20])
def test_both_directions_move_at_the_same_temperatures(every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = open_model(MODELS["beta_binomial"][0](), OpenOptions())
    kernel = tuned_kernel(plain)
    check_rests(monkeypatch, posterior, plain.condition({"y": np.array([3, 1])}), kernel, SHORT, every)


def test_forward_proposes_first_and_reverse_last(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check_order(monkeypatch, posterior, model.condition({"y": np.array([3, 1])}), tuned_kernel(model), SHORT)


def two_modes() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 2.0)
        pm.Normal("y", pm.math.abs(mu), 0.5, observed=np.array([2.6, 2.2, 2.9]))
    return model


def test_whole_check_names_the_kernel_and_counts_the_proposals() -> None:
    settings: dict[str, Any] = {
        "simulate_from": "prior", "path": "prior", "n_temperatures": 16, "simulations": 10, "chains": 2,
        "tune": 50, "tune_on": "shared", "draws": 0, "random_seed": 1, "cores": 1, "progressbar": False,
    }  # fmt: skip
    plain = bread.check(two_modes(), kernel="nuts", **settings)
    report = bread.check(two_modes(), kernel="independence+nuts", **settings)
    assert read_attributes(report)["kernel"] == "NUTS after independence proposals"
    assert "annealed NUTS after independence proposals" in bread.verdict(report).details
    assert bread.verdict(report).error < bread.verdict(plain).error
    forward = read_group(report, "forward")
    assert (forward["n_gradients"].values >= 2 * 15).all()  # one for each proposal, and NUTS needs one at least


@pytest.mark.parametrize("kernel", ["independence+slice", "independence+", "independance"])
def test_other_names_are_refused(kernel: str) -> None:
    with pytest.raises(UnsupportedKernelError, match="independence"):
        open_model(two_modes(), OpenOptions(kernel=kernel))


def test_gradients_are_asked_of_no_discrete_variable() -> None:
    with pytest.raises(UnsupportedKernelError, match="discrete"):
        open_model(MODELS["label_mixture"][0](), OpenOptions(kernel="independence+nuts"))


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a_kernel_may_ask_for_proposals(path: Path) -> None:
    """The same bits as of a model that was opened with them; without the request the chains differ."""
    named = open_model(MODELS["beta_binomial"][0](), OpenOptions(kernel="independence+nuts"))
    plain = open_model(MODELS["beta_binomial"][0](), OpenOptions())
    check_request(named, plain, path, SHORT)


def test_a_check_proposes_where_annealing_is_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Named in report and verdict, on every data set; never where a kernel was named."""
    settings: dict[str, Any] = {
        "simulate_from": "prior", "path": "reference", "n_temperatures": 8, "simulations": 6, "chains": 2, "tune": 50,
        "draws": 0, "random_seed": 1, "cores": 1, "progressbar": False,
    }  # fmt: skip
    model = MODELS["beta_binomial"][0]
    assert read_attributes(bread.check(model(), **settings))["kernel"] == "NUTS"
    monkeypatch.setattr("bread.running.path_choice.proposing.DEAR", 0.0)
    report = bread.check(model(), **settings)
    assert read_attributes(report)["kernel"] == "NUTS after independence proposals"
    said = "also proposed draws from a fit"
    assert said in bread.verdict(report).details
    named = bread.check(model(), kernel="independence+nuts", **settings)
    xr.testing.assert_equal(read_group(report, "reverse")["log_weight"], read_group(named, "reverse")["log_weight"])
    assert said not in bread.verdict(named).details
    assert read_attributes(bread.check(model(), kernel="nuts", **settings))["kernel"] == "NUTS"
    monkeypatch.setattr("bread.running.path_choice.proposing.A_MOVE", 0.1)  # as if NUTS were dear
    rested = bread.check(model(), **settings)
    assert read_attributes(rested)["kernel"] == "NUTS at one temperature in 8, after independence proposals"
    assert "NUTS moved them at one temperature in 8 only" in bread.verdict(rested).details
    gradients = [read_group(one, "reverse")["n_gradients"].sum() for one in (rested, report)]
    assert gradients[0] < gradients[1]


def weights_of(report: Any, way: str) -> Any:
    found = require_group(report, way)
    return found["log_weight"].where(found["role"] == "search", drop=True)


@pytest.mark.slow
def test_proposals_that_begin_late_replace_all_that_was_annealed_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward chains of the search have then the bits of a check that proposed from the start; none before it are left.

    A predicted T of 14 costs 200 gradients a data set; the search goes on to T = 32, where they cost 900.
    """
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2.0, 1.0)
        pm.Poisson("y", rate, observed=np.array([3, 1]))
    reports = {}
    for name, price in (("never", np.inf), ("late", 700.0), ("early", 1.0)):
        monkeypatch.setattr("bread.running.path_choice.proposing.DEAR", price)
        reports[name] = bread.check(
            model, path="reference", max_error=0.05, random_seed=1, cores=1, progressbar=False
        )  # fmt: skip
    kernels = {name: str(read_attributes(report)["kernel"]) for name, report in reports.items()}
    assert kernels == {"never": "NUTS", **dict.fromkeys(("late", "early"), "NUTS after independence proposals")}
    never, late, early = (weights_of(reports[name], "forward") for name in ("never", "late", "early"))
    first = {"n_temperatures": [4, 8], "simulation": early["simulation"][:10]}
    np.testing.assert_array_equal(late.sel(first), early.sel(first))
    assert np.isfinite(early.sel(first)).all() and (late.sel(first) != never.sel(first)).all()
    never, late = (weights_of(reports[name], "reverse").sel(first) for name in ("never", "late"))
    assert (late != never).all()  # from the same starts
