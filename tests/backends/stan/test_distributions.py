"""Every distribution that Stan programs are drawn by: its draws against its density, at ordinary and edge arguments."""

import numpy as np
import pytest

from bread.backends.stan.language.distributions import DISTRIBUTIONS
from tests.support.distribution_tests import LEVEL, Bins, Counts
from tests.support.stan_conjugate import toolchain
from tests.support.stan_distributions import CONTINUOUS, COUNTS, compile_table, support

pytestmark = [pytest.mark.stan, pytest.mark.slow, pytest.mark.statistical]

N = 4000
NEWER = {"beta_neg_binomial", "yule_simon"}  # since Stan 2.37


def p_values(others=None):
    """A p-value of each column of each distribution; with changes made to the draws of some."""
    signatures = toolchain().run_stanc("model {}", "--dump-stan-math-signatures").stdout
    known = [name for name in (*CONTINUOUS, *COUNTS) if name not in NEWER or f"{name}_rng" in signatures]
    table, tests = compile_table(toolchain(), known), {}
    for name, draws in table.call(N, {}, seed=1).items():
        draws = (others or {}).get(name, lambda draws: draws)(draws)
        if name in CONTINUOUS:
            tests[name] = Bins(draws)
        else:
            low, high = np.transpose([support(name, arguments) for arguments in table.rows[name]])
            tests[name] = Counts(draws, low, high)
    densities = table.call(0, {name: test.at for name, test in tests.items()}, seed=1)
    return {name: test.p_values(densities[name]) for name, test in tests.items()}


def test_every_scalar_distribution_is_in_the_table():
    scalar = {name for name, law in DISTRIBUTIONS.items() if law.shape == "scalar"}
    assert scalar == {*CONTINUOUS, *COUNTS}


def test_draws_follow_their_density_and_other_draws_do_not():
    found = p_values()
    wrong = {name: each for name, each in found.items() if not each.min() > LEVEL}
    assert not wrong
    others = p_values({"normal": lambda draws: 1.1 * draws, "poisson": lambda draws: draws + (draws == 0)})
    assert [name for name, each in others.items() if not each.min() > LEVEL] == ["normal", "poisson"]
