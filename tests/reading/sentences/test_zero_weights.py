"""Chains of weight zero on the real data are counted and said, in the verdict and through a file."""

from dataclasses import replace

import numpy as np
import pytest

import bread
from bread.backends.base import Failure
from bread.report import container as report
from bread.running.state.results import OBSERVED
from tests.support.fake_results import constrain, fake_result


def with_zeros(n_chains, n_draws):
    """A check in which so many chains on the real data met a likelihood of zero, those of the draws apart."""
    result = fake_result()
    run = result.runs[OBSERVED, "forward", 64]
    weights, failure = run.log_weight.copy(), run.failure.copy()
    weights[:n_chains], failure[:n_chains] = -np.inf, Failure.ZERO_RATIO
    result.runs[OBSERVED, "forward", 64] = replace(run, log_weight=weights, failure=failure)
    result.n_draws_dropped = result.n_draws_zero = n_draws
    return result


@pytest.mark.parametrize(
    ("n_chains", "n_draws", "said"),
    [
        pytest.param(1, 0, "1 of 1004", marks=pytest.mark.slow),
        pytest.param(0, 5, "5 of 1009", marks=pytest.mark.slow),
        (2, 5, "7 of 1009"),
    ],
)
def test_they_are_counted_and_said(n_chains, n_draws, said, tmp_path):
    made = report.to_container(with_zeros(n_chains, n_draws), constrain)
    file = str(tmp_path / "report.nc")
    made.to_netcdf(file)
    for kept in (made, file):
        assert f"On your data {said} annealed chains met a likelihood of zero" in bread.verdict(kept).details
    attributes = report.read_attributes(made)
    assert [int(attributes[name]) for name in ("n_observed_zero", "n_observed_chains")] == [
        int(part) for part in said.split(" of ")
    ]


def test_nothing_is_said_without_them():
    result = fake_result()
    result.n_draws_dropped = 3  # failed for another reason
    assert "of zero" not in bread.verdict(report.to_container(result, constrain)).details


def test_no_chain_has_a_weight():
    result = with_zeros(4, 1000)
    result.observed_draws = result.observed_draws[:0]
    verdict = bread.verdict(report.to_container(result, constrain))
    assert "every one of 1004 annealed chains" in verdict.details and "no certified draws" in verdict.details
