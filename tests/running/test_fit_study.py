"""Long measurements of the fit test, run by hand: false alarms on clean data, and power over misfits."""

import numpy as np
import pytest
from scipy.stats import binom

from bread.running.fit_check import check_fit
from tests.support.misfits import MISFITS, MODELS
from tests.support.replicating import PyMCNodes

N_CLEAN, N_MISFITS = 67, 10  # data sets of each model; of each misfit


def p_value(model, y, seed, n_draws=20):
    """Return the combined p-value, by exact posterior draws."""
    nodes = PyMCNodes(MODELS[model].model(y))
    states = nodes.unconstrain(MODELS[model].draws(np.random.default_rng([seed, 1]), y, n_draws))
    return check_fit(nodes, states, seed).p_value


@pytest.mark.study
@pytest.mark.statistical
def test_false_alarms_over_400_clean_data_sets():
    found = {
        name: np.array([p_value(name, model.clean(np.random.default_rng(seed)), seed) for seed in range(N_CLEAN)])
        for name, model in MODELS.items()
    }
    for level in (0.005, 0.05):
        counts = {name: int((p <= level).sum()) for name, p in found.items()}
        print(f"p <= {level}: {counts} of {N_CLEAN} each")
        total = N_CLEAN * len(found)
        assert sum(counts.values()) <= binom.ppf(0.99, total, level)


@pytest.mark.study
@pytest.mark.statistical
def test_power_over_misfits():
    for name, (model, data, _) in MISFITS.items():
        p = np.array([p_value(model, data(np.random.default_rng(seed)), seed) for seed in range(N_MISFITS)])
        seen, poor = (p <= 0.05).sum(), (p <= 0.005).sum()
        print(f"{name}: p <= 0.05 in {seen}, p <= 0.005 in {poor} of {N_MISFITS}; largest {p.max():.4f}")
        assert (p <= 0.05).mean() >= 0.9
