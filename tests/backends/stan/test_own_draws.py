"""Own draws against annealed ones on a Stan program: the fit by default, and draws that are wrong."""

from __future__ import annotations

from typing import Any

import pytest

import bread
from bread.backends.stan import fitting
from bread.report.compat import read_group
from tests.support.stan_conjugate import CONJUGATE, conjugate

pytestmark = [pytest.mark.stan, pytest.mark.statistical]

CASE = CONJUGATE["hierarchical"]
QUICK: dict[str, Any] = {
    "data": CASE.data, "path": "reference", "n_temperatures": 8, "cores": 1, "random_seed": 2, "progressbar": False,
}  # fmt: skip


@pytest.mark.slow
def test_the_fit_is_compared_by_default_with_a_thousand_draws() -> None:
    report = bread.check(CASE.text, **QUICK)
    verdict, agreement = bread.verdict(report), read_group(report, "agreement")
    assert verdict.comparison == "agreement"
    assert "The 90% intervals of Stan's adaptive NUTS (its defaults, 4 chains) hold" in verdict.details
    assert 850 <= agreement.attrs["n_annealed"] <= 1100 and agreement.attrs["n_dropped"] == 0
    assert agreement["parameter"].values[-1] == "log density"


@pytest.mark.slow
def test_wrong_draws_are_told_apart() -> None:
    draws = fitting.fit(conjugate("hierarchical").instance, seed=3, cores=1).draws
    wrong = draws | {"mu": draws["mu"] + 0.6 * draws["mu"].std()}
    report = bread.check(CASE.text, posterior=wrong, **QUICK)
    agreement = read_group(report, "agreement")
    assert (
        bread.verdict(report).comparison in ("difference", "disagreement")
        and " of mu " in bread.verdict(report).details
    )
    assert (
        abs(float(agreement["mean_shift"].sel(parameter="mu")) - 0.6)
        < 4 * float(agreement["mean_shift_error"][0]) + 0.1
    )
