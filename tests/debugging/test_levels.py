"""Every test of the battery on right kernels: it rejects no more often than its level says.

Those of annealing and of walkers, which few subjects have, are in test_annealing_tests and test_ensemble_tests.
"""

import numpy as np
import pytest
from scipy.stats import binom

from bread.debugging.bare import BareSubject
from bread.debugging.battery import TESTS, suited_tests
from bread.debugging.finding import Finding
from bread.debugging.sample import Sample
from tests.support.bare_kernels import RIGHT

LEVELS = (0.2, 0.05, 0.01)
SHORT = 10  # steps a chain
SURE = 0.99


def p_values(name, seeds, n=120):
    """Return p-values, one a run, by test; and the smallest of each test's comparisons, not corrected."""
    target, kernel = RIGHT[name]
    corrected, smallest = {}, {}
    for seed in seeds:
        sample = Sample(BareSubject(target(), kernel(target())), seed, 0, SHORT)
        sample.grow(n)
        for test in suited_tests(sample.subject):
            if set(test.needs) & set(sample.subject.missing):
                continue
            finding = test.run(sample)
            if isinstance(finding, Finding):
                corrected.setdefault(test.name, []).append(finding.p_value)
                smallest.setdefault(test.name, []).append(np.nanmin(finding.p_values))
    return corrected, smallest


def check(found, n_runs):
    random = {test.name: test.is_random for test in TESTS}
    for name, values in found.items():
        if not random[name]:
            assert min(values) == 1.0, name
            continue
        for level in LEVELS:
            assert (np.array(values) <= level).sum() <= binom.ppf(SURE, n_runs, level), (name, level)


@pytest.mark.study
@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", RIGHT)
def test_levels_over_200_runs(name):
    check(p_values(name, range(200))[0], 200)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["Metropolis, walls", "Gibbs at random"])
def test_levels_over_40_runs(name):
    check(p_values(name, range(1000, 1040))[0], 40)


@pytest.mark.statistical
def test_levels_and_what_they_are_without_correction():
    corrected, smallest = p_values("Metropolis, discrete", range(5))
    check(corrected, 5)
    with pytest.raises(AssertionError):  # negative control: the smallest of dozens of p-values has no level
        check({name: values for name, values in smallest.items() if name in ("invariance", "ranks in chains")}, 5)
