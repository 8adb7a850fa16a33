"""The search for T: what it does where its own simulations are too few to show that T is enough."""

from __future__ import annotations

import pytest

import bread
from bread.report.compat import read_group
from bread.statistics.bounds.goal import Goal
from bread.statistics.bounds.intervals import alpha_level
from tests.support.reference_models import CONJUGATE


@pytest.mark.parametrize(("name", "seed"), [("normal_mean", 2), ("hierarchical", 3)])
def test_a_few_fresh_simulations_come_before_twice_the_temperatures(name: str, seed: int) -> None:
    """The search's own simulations leave the limit above 0.1 at T = 256; twenty fresh ones bring it below.

    Without them the search goes on to T = 512.
    """
    report = bread.check(
        CONJUGATE[name], random_seed=seed, cores=1, progressbar=False, path="prior", simulate_from="prior"
    )
    weights = [read_group(report, way)["log_weight"].sel(n_temperatures=256) for way in ("forward", "reverse")]
    forward, reverse = (one.values[one["role"].values == "search"] for one in weights)
    decision = Goal().decide(forward, reverse, alpha_level(0), is_reliable=False)
    assert not decision.is_reached
    assert decision.interval.estimate < decision.limit
    assert list(bread.summary(report, kind="bounds").index) == [8, 16, 32, 64, 128, 256]
    verdict = bread.verdict(report)
    assert (verdict.n_temperatures, verdict.n_simulations) == (256, 20)
    assert verdict.error_limit < 0.1
