"""The pytest plugin, run on small suites of its own, each in its own process: h5py cannot be imported twice in one."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

SUITE = """
import numpy as np
import pytest
from bread.testing import assert_kernel_correct, assert_simulator_matches
from bread.testing.settings import current

def log_density(x):
    return float(-0.5 * ((x - 1.0) ** 2).sum())

def simulate(n, rng):
    return rng.normal(1.0, {scale}, (n, 1))

@pytest.mark.bread
def test_simulator():
    assert_simulator_matches(log_density=log_density, simulate=simulate, budget=0.02)

@pytest.mark.bread(level=0.5, seed=3)
def test_own_level():
    assert (current().level, current().seed) == (0.5, 3)

@pytest.mark.bread
def test_shared():
    assert current().level == 0.001 / 2 and current().budget == 2.0 and current().report.suffix == ".nc"

def test_unmarked():
    assert current().level == 0.001 and current().report is None
"""
OPTIONS = ("-p", "bread.testing.plugin", "-p", "no:cacheprovider", "--bread-budget", "2")


def run(pytester, scale):
    pytester.makepyfile(SUITE.replace("{scale}", str(scale)))
    return pytester.runpytest_subprocess(*OPTIONS)


@pytest.mark.slow
def test_marked_tests_share_a_level_that_the_summary_states(pytester):
    result = run(pytester, 1.0)
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["2 tests marked bread: *one of them fails in at most 0.001 of runs*"])
    assert not list(pytester.path.glob("bread-reports/*"))


def test_a_failure_says_the_verdict_and_keeps_the_report(pytester):
    result = run(pytester, 2.0)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*AssertionError: BUG: *", "*The report: bread-reports*test_simulator.nc*"])
    assert [path.name for path in pytester.path.glob("bread-reports/*")] == [
        f"{next(iter(pytester.path.glob('test_*.py'))).name}_test_simulator.nc"
    ]


def test_without_the_plugin_nothing_is_registered(pytester):
    pytester.makepyfile("def test_nothing(): pass")
    result = pytester.runpytest_subprocess("--bread-level", "0.1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
