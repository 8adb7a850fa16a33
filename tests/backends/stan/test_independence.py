"""Independence proposals with Stan's samplers: exact evidence along both paths, names, refusals, a wrong rule seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import bread
from bread.backends.stan import posterior
from bread.backends.stan.native.kernels import StanKernel, read_kernel
from bread.backends.support.independence import draw_proposals
from bread.errors import UnsupportedKernelError
from bread.paths.kinds import Path, PriorPath, ReferencePath
from bread.paths.mixture import gaussian
from bread.report.compat import read_attributes
from tests.support.conformance import (
    check_bit_equal_batching,
    check_contract_shapes,
    check_forward_reverse_identities,
    check_frozen,
    check_weighted_ranks,
    tuned_kernel,
)
from tests.support.independent_chains import check_order, check_request, check_rests
from tests.support.stan_conjugate import CONJUGATE, opened

pytestmark = [pytest.mark.stan, pytest.mark.statistical]
BETAS = np.array([0.0, 0.03, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0])
BETA_BINOMIAL = CONJUGATE["beta-binomial"]
PATHS: dict[str, Path] = {
    "prior": PriorPath(),
    "reference": ReferencePath(gaussian(np.array([0.3]), np.array([[0.9]]))),  # of the logit, off on purpose
}
ALL = pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)


@pytest.fixture(scope="module", params=["nuts", "hmc"])
def model(request: pytest.FixtureRequest) -> Any:
    return opened(BETA_BINOMIAL.text, BETA_BINOMIAL.data, kernel=f"independence+{request.param}")


@ALL
def test_contract(model: Any, path: Path) -> None:
    kernel = tuned_kernel(model, path=path)
    check_contract_shapes(model, kernel, path=path)
    check_bit_equal_batching(model, kernel, path=path)
    check_frozen(model, kernel, path=path)


@ALL
def test_identities_and_ranks(model: Any, path: Path) -> None:
    """T = 8, 300 simulations, 4 standard errors; ranks at the level 0.001."""
    kernel, exact = tuned_kernel(model, path=path), BETA_BINOMIAL.log_evidence
    check_forward_reverse_identities(model, kernel, BETAS, log_evidence=exact, n_simulations=300, path=path)
    check_weighted_ranks(model, kernel, BETAS, n_simulations=300, path=path)


def test_a_wrong_rule_is_seen(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the identities fail where proposals are accepted by the square of their ratio."""

    def doubled(*arguments: Any) -> Any:
        proposals = draw_proposals(*arguments)
        return proposals._replace(log_ratio=2.0 * proposals.log_ratio)

    monkeypatch.setattr(posterior, "draw_proposals", doubled)
    with pytest.raises(AssertionError):
        check_forward_reverse_identities(
            model, tuned_kernel(model), BETAS, log_evidence=BETA_BINOMIAL.log_evidence, n_simulations=300
        )


@ALL
def test_identities_and_ranks_where_the_kernel_rests(model: Any, path: Path) -> None:
    """As above; the kernel moves at three of seven temperatures."""
    kernel, exact = replace(tuned_kernel(model, path=path), every=3), BETA_BINOMIAL.log_evidence
    check_contract_shapes(model, kernel, path=path)
    check_bit_equal_batching(model, kernel, path=path)
    check_forward_reverse_identities(model, kernel, BETAS, log_evidence=exact, n_simulations=300, path=path)
    check_weighted_ranks(model, kernel, BETAS, n_simulations=300, path=path)


@pytest.mark.parametrize("every", [2, 3, 20])
def test_both_directions_move_at_the_same_temperatures(every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = opened(BETA_BINOMIAL.text, BETA_BINOMIAL.data)
    kernel = tuned_kernel(plain)
    check_rests(monkeypatch, posterior, plain.condition({"y": [3, 1]}), kernel, BETAS, every)


def test_forward_proposes_first_and_reverse_last(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check_order(monkeypatch, posterior, model.condition({"y": [3, 1]}), tuned_kernel(model), BETAS)


TWO_MODES = """data { vector[3] y; } parameters { real mu; }
model { mu ~ normal(0, 2); y ~ normal(abs(mu), 0.5); }"""


def test_whole_check_names_the_kernel_and_counts_the_proposals() -> None:
    settings: dict[str, Any] = {
        "data": {"y": [2.6, 2.2, 2.9]}, "observed": "y", "simulate_from": "prior", "path": "prior",
        "n_temperatures": 16, "simulations": 10, "chains": 2, "tune": 50, "tune_on": "shared", "draws": 0,
        "random_seed": 1, "cores": 1, "progressbar": False,
    }  # fmt: skip
    plain = bread.check(TWO_MODES, **settings)
    report = bread.check(TWO_MODES, kernel="independence", **settings)
    assert read_attributes(report)["kernel"] == "NUTS after independence proposals"
    assert bread.verdict(report).error < bread.verdict(plain).error


def test_names() -> None:
    assert read_kernel("independence+HMC") == StanKernel("HMC", proposes_base=True)
    assert read_kernel("independence") == StanKernel("NUTS", proposes_base=True)
    assert StanKernel("HMC", proposes_base=True).full_name == "HMC after independence proposals"
    with pytest.raises(UnsupportedKernelError, match=r"independence\+slice"):
        read_kernel("independence+slice")


@ALL
def test_a_kernel_may_ask_for_proposals(path: Path) -> None:
    """The same bits as of a program that was opened with them; without the request the chains differ."""
    named = opened(BETA_BINOMIAL.text, BETA_BINOMIAL.data, kernel="independence+nuts")
    plain = opened(BETA_BINOMIAL.text, BETA_BINOMIAL.data)
    check_request(named, plain, path, BETAS)
