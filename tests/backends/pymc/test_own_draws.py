"""Own draws against annealed ones on a PyMC model: the fit by default, the user's, and draws that are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytest

import bread
from bread.report.compat import read_group

pytestmark = [pytest.mark.pymc, pytest.mark.statistical]

Y = np.array([0.4, 1.9, 1.1, 0.2, 0.7, 1.4])
QUICK: dict[str, Any] = {
    "path": "reference", "n_temperatures": 8, "simulations": 12, "draws": 300, "cores": 1, "random_seed": 4,
    "progressbar": False,
}  # fmt: skip


def model() -> pm.Model:
    with pm.Model(coords={"group": ["a", "b"]}) as built:
        mean = pm.Normal("mean", 0.5, 1.5, dims="group")
        scale = pm.HalfNormal("scale", 1.0)
        pm.Normal("y", mean[np.array([0, 0, 0, 1, 1, 1])], 1.0 + scale, observed=Y)
    return built


@pytest.mark.slow
def test_the_fit_is_compared_by_default_and_wrong_draws_are_told_apart() -> None:
    built = model()
    report = bread.check(built, **QUICK)
    verdict, agreement = bread.verdict(report), read_group(report, "agreement")
    assert verdict.comparison == "agreement"
    assert "The 90% intervals of pm.sample (its defaults, 2 chains) hold" in verdict.details  # as many as on one core
    assert agreement["parameter"].values.tolist() == ["mean[a]", "mean[b]", "scale", "log density"]
    fit = pm.sample(model=built, chains=4, draws=500, random_seed=1, progressbar=False, cores=1, quiet=True)
    draws = {name: fit["posterior"][name].values for name in ("mean", "scale")}
    wrong = draws | {"mean": draws["mean"] + np.array([1.0, 0.0]) * draws["mean"].std(axis=(0, 1))}
    report = bread.check(built, posterior=wrong, **QUICK)
    verdict, agreement = bread.verdict(report), read_group(report, "agreement")
    assert verdict.comparison in ("difference", "disagreement") and " of mean[a]" in verdict.details
    assert abs(float(agreement["mean_shift"].sel(parameter="mean[a]")) - 1.0) < 0.4
    assert float(agreement["content_p_value"].sel(parameter="mean[b]").min()) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("path", [pytest.param("prior", marks=pytest.mark.slow), "reference"])
def test_log_density_is_that_of_the_model(path: str) -> None:
    built = model()
    report = bread.check(built, **(QUICK | {"path": path, "n_temperatures": 4, "simulations": 2, "draws": 120}))
    agreement = read_group(report, "agreement").sel(parameter="log density")
    compiled = built.compile_logp()
    posterior = read_group(report, "posterior")
    mean, scale = (posterior[name].stack(all=("chain", "draw")) for name in ("mean", "scale"))
    values = [
        compiled({"mean": mean[:, i].values, "scale_log__": np.log(float(scale[i]))}) for i in range(scale.sizes["all"])
    ]
    below = np.searchsorted(np.sort(values), agreement["step"].values + 1e-9, side="right") / len(values)
    np.testing.assert_allclose(below, agreement["annealed_cdf"].values, atol=1e-12)
