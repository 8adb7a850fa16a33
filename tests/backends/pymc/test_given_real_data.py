"""PyMC models with their posterior given the real data as their prior: what need not be drawn may be improper."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest
from numpy.random import SeedSequence

from bread.backends import open_model
from bread.backends.base import Fit, OpenOptions
from bread.errors import InvalidArgumentError, UnsupportedModelError
from bread.paths.kinds import PriorPath
from bread.running.model_fit.replicated import ReplicatedModel

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]

X = np.array([-1.0, 0.0, 1.0, 2.0])
Y = np.array([1.5, -0.2, 0.6, 1.0])
COUNTS = np.array([1, 4, 2])
POSTERIOR = OpenOptions(simulate_from="posterior")
NAMES = ("a", "b", "scale")


def improper(y: np.ndarray = Y, counts: np.ndarray = COUNTS) -> pm.Model:
    """A flat prior, a potential, a prior without random draws, two outcomes; the scale is the value of an outcome."""
    with pm.Model() as model:
        a = pm.Flat("a")
        b = pm.CustomDist("b", 1.5, logp=lambda value, scale: -0.5 * (value / scale) ** 2)
        scale = pm.HalfNormal("scale", 1.5)
        pm.Potential("tie", -0.5 * (a + b) ** 2)
        pm.Normal("y", a + b * pm.Data("x", X), scale, observed=y)
        pm.Poisson("counts", pm.math.exp(a), observed=counts)
    return model


def fit_of() -> Fit:
    rng = np.random.default_rng(0)
    draws = {name: rng.normal(size=(2, 50)) * 0.1 for name in ("a", "b")}
    return Fit({**draws, "scale": np.exp(0.1 * rng.normal(size=(2, 50)))}, "draws")


def test_the_density_is_pymcs_own_of_both_data_sets() -> None:
    model = ReplicatedModel(open_model(improper(), POSTERIOR), fit_of())
    drawn = model.simulate(3, fixed=None, seed=SeedSequence(1))
    data = drawn.data_of(1)
    assert data["counts"].dtype == COUNTS.dtype and not np.array_equal(data["counts"], COUNTS)
    path, posterior, states = PriorPath(), model.condition(data), drawn.states
    points = [dict(zip(("a", "b", "scale_log__"), state, strict=True)) for state in states]
    alone, other = improper(), improper(data["y"], data["counts"])
    real = np.array([alone.compile_logp()(point) for point in points])
    new = np.array([other.compile_logp(vars=other.observed_RVs)(point) for point in points])
    np.testing.assert_allclose(posterior.log_base(path, states), real, rtol=1e-10)
    np.testing.assert_allclose(posterior.log_ratio(path, states), new, rtol=1e-10)
    here = alone.compile_dlogp()(points[0])
    there = here + other.compile_dlogp(vars=None)(points[0]) - _priors_slope(points[0])
    assert list(model.info.layout.coordinates) == list(points[0])
    for beta, wanted in ((0.0, here), (1.0, there)):
        np.testing.assert_allclose(posterior.density_gradient(beta, states[:1])[1][0], wanted, rtol=1e-9)


def _priors_slope(point: dict[str, float]) -> np.ndarray:
    """Return the slope of what both data sets have in common: priors and potential."""
    model = improper()
    graph = model.logp(vars=[*model.free_RVs, *model.potentials])
    return np.asarray(model.compile_fn(pm.pytensorf.gradient(graph, model.value_vars))(point))


def test_only_the_base_that_is_fitted_remains() -> None:
    model = ReplicatedModel(open_model(improper(), POSTERIOR), fit_of())
    assert list(model.info.paths) == ["reference"] and "path='reference'" in model.info.path_refusals["prior"]


def test_what_lacks_a_simulator_of_the_likelihood_is_refused() -> None:
    with pm.Model() as model:
        a = pm.Flat("a")
        pm.CustomDist("y", a, logp=lambda value, a: -0.5 * (value - a) ** 2, observed=Y)
    with pytest.raises(UnsupportedModelError, match="simulate 'y'"):
        open_model(model, POSTERIOR)


def test_angles_and_discrete_variables_are_refused_when_the_model_is_opened() -> None:
    with pm.Model() as angles:
        pm.Normal("y", pm.VonMises("angle", 0.0, 1.0), 1.0, observed=Y)
    with pm.Model() as discrete:
        pm.Normal("y", pm.Poisson("n", 2.0), 1.0, observed=Y)
    for model in (angles, discrete):
        with pytest.raises(UnsupportedModelError, match="from a base that is fitted"):
            open_model(model, POSTERIOR)


def test_a_simulator_that_holds_nothing_is_refused() -> None:
    def simulator(rng, data):
        return {}, {}

    with pytest.raises(InvalidArgumentError, match="cannot hold 'a' at a draw.*simulator\\(rng, data, fixed\\)"):
        open_model(improper(), OpenOptions(simulate_from="posterior", simulator=simulator))
