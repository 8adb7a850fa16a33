"""Mixtures of scikit-learn run on one thread, whatever was limited before it was imported."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np

from bread.fitting.gaussian.gaussian_mixtures import gaussian_mixture

COUNT = """
import json
from unittest.mock import patch
import numpy as np
from threadpoolctl import ThreadpoolController, threadpool_limits

limits = threadpool_limits(limits=1)  # as a worker does, before anything else is imported
from bread.fitting.gaussian.gaussian_mixtures import gaussian_mixture
from sklearn.mixture import GaussianMixture
ThreadpoolController().select(user_api="openmp").limit(limits=3)

seen = []
fit = GaussianMixture.fit
def counting(*arguments):
    seen.append([one["num_threads"] for one in ThreadpoolController().info() if one["user_api"] == "openmp"])
    return fit(*arguments)
with patch.object(GaussianMixture, "fit", counting):
    gaussian_mixture(np.linspace(0.0, 1.0, 50)[:, None], 2)
    GaussianMixture(2).fit(np.linspace(0.0, 1.0, 50)[:, None])
print(json.dumps(seen))
"""


def test_openmp_of_scikit_learn_is_limited_while_it_fits_and_not_after() -> None:
    """In a fresh process; the second fit, outside the function, shows that threads can be counted at all."""
    output = subprocess.run([sys.executable, "-c", COUNT], stdout=subprocess.PIPE, text=True, check=True).stdout
    inside, outside = json.loads(output)
    assert inside and set(inside) == {1}
    assert 3 in outside


def test_the_fit_is_that_of_scikit_learn() -> None:
    """Two clusters ten standard deviations apart: their means to 4 standard errors, and equal bits when repeated."""
    rng = np.random.default_rng(1)
    points = np.concatenate([rng.normal(-5.0, 1.0, (400, 1)), rng.normal(5.0, 1.0, (400, 1))])
    fits = [gaussian_mixture(points, 2, reg_covar=1e-3) for _ in range(3)]
    np.testing.assert_allclose(np.sort(fits[0].means_[:, 0]), [-5.0, 5.0], atol=4.0 / np.sqrt(400))
    for one in fits[1:]:
        np.testing.assert_array_equal(one.means_, fits[0].means_)
