"""The number of components of a mixture by BIC, where not all numbers are tried."""

import numpy as np
import pytest
from scipy import stats

from bread.fitting import one_thread

AT = (np.arange(600) + 0.5) / 600
CASES = {
    "normal": stats.norm.ppf(AT),
    "skewed": stats.skewnorm(-6).ppf(AT),
    "heavy tails": stats.t(3).ppf(AT),
    "two modes": np.concatenate([stats.norm(-4).ppf(AT), stats.norm(3, 0.5).ppf(AT)]),
    "four narrow modes": np.concatenate([stats.norm(place, 0.1).ppf(AT[::4]) for place in (-6, -2, 2, 6)]),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_the_best_of_all_numbers(name, monkeypatch):
    points, tried = CASES[name][:, None], []
    every = {n: one_thread.gaussian_mixture(points, n) for n in range(1, 7)}
    monkeypatch.setattr(one_thread, "gaussian_mixture", lambda points, n: tried.append(n) or every[n])
    found = one_thread.best_mixture(points, 6)
    best = min(every, key=lambda n: every[n].bic(points))
    assert found is every[best]
    assert tried == list(range(1, min(best + one_thread.ENOUGH_WORSE, 6) + 1))
