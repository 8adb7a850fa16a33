"""The tempered density: split, gradient, settable data, isolation from the user's model."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from bread.backends.pymc.density.density import CountedDensity, TemperedDensity
from bread.backends.pymc.model.layout import StateLayout
from bread.errors import InvalidArgumentError
from tests.support.pymc_layout import layout_of
from tests.support.pymc_models import MODELS as TABLE

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]


def schools() -> pm.Model:
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfNormal("tau", 5)
        theta = pm.Normal("theta", mu, tau, shape=4)
        pm.Normal("y", theta, [15, 10, 16, 11], observed=[28, 8, -3, 7])
    return model


def with_covariates() -> pm.Model:
    with pm.Model() as model:
        x = pm.Data("x", np.array([[0.5, 1.0], [-1.0, 0.3], [0.2, -0.7]]))
        scale = pm.Data("scale", 2.0)
        beta = pm.Normal("beta", 0, scale, shape=2)
        pm.Bernoulli("y", logit_p=x @ beta, observed=[1, 0, 1])
    return model


def simplex_and_counts() -> pm.Model:
    with pm.Model() as model:
        p = pm.Dirichlet("p", [1.0, 2.0, 3.0])
        rate = pm.Gamma("rate", 2, 1)
        pm.Multinomial("counts", n=10, p=p, observed=[2, 3, 5])
        pm.Poisson("total", rate, observed=3)
    return model


def discrete_label() -> pm.Model:
    with pm.Model() as model:
        z = pm.Categorical("z", [0.2, 0.3, 0.5])
        x = pm.Normal("x", pt.as_tensor([-2.0, 0.0, 3.0])[z], 1)
        pm.Normal("y", x, 1, observed=[0.4, 1.2])
    return model


def symbolic_data() -> pm.Model:
    with pm.Model() as model:
        d = pm.Data("d", np.array([1.0, 2.0]))
        m = pm.Normal("m", 0, 2)
        pm.Normal("y", m + d, 1, observed=d * 2)
    return model


MODELS = [schools, with_covariates, simplex_and_counts, discrete_label, symbolic_data]


def state_of(model: pm.Model, layout: StateLayout, seed: int = 3) -> np.ndarray:
    point = model.initial_point()
    rng = np.random.default_rng(seed)
    return layout.flatten(point) + np.where(layout.discrete, 0.0, 0.3 * rng.normal(size=layout.dim))


SLOW = (with_covariates, simplex_and_counts, symbolic_data)  # compiled in the test below, too


@pytest.mark.parametrize("build", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in MODELS])
def test_prior_and_likelihood_add_up_to_the_model(build):
    model = build()
    layout = layout_of(model)
    state = state_of(model, layout)
    point = layout.unflatten(state)
    log_prior, log_ratio = TemperedDensity(model, layout).compile_terms()(state)
    assert log_prior + log_ratio == pytest.approx(float(model.compile_logp()(point)), rel=1e-12)
    assert log_prior == pytest.approx(float(model.compile_logp(vars=model.free_RVs)(point)), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_prior_and_likelihood_add_up_on_every_model_of_the_table(name):
    test_prior_and_likelihood_add_up_to_the_model(TABLE[name])


@pytest.mark.parametrize(
    "build", [pytest.param(one, marks=[pytest.mark.slow] * (one is simplex_and_counts)) for one in MODELS]
)
def test_tempered_value_and_gradient(build):
    model = build()
    layout = layout_of(model)
    density = TemperedDensity(model, layout)
    state = state_of(model, layout)
    point = layout.unflatten(state)
    gradient = density.compile_gradient(model.continuous_value_vars, point)
    position = state[~layout.discrete]
    prior = float(model.compile_logp(vars=model.free_RVs)(point))
    ratio = float(model.compile_logp()(point)) - prior
    for n_done, beta in enumerate([0.0, 0.37, 1.0]):
        density.controls.set_beta(beta)
        value, slope = gradient(position)
        assert value == pytest.approx(prior + beta * ratio, rel=1e-12)
        assert gradient.finish(position) == pytest.approx(ratio, rel=1e-12)
        assert gradient.n_gradients == 1 + n_done * (1 + 2 * len(position))
        step = 1e-5
        shifted = [(position + shift, position - shift) for shift in step * np.eye(len(position))]
        numeric = [(gradient(above)[0] - gradient(below)[0]) / (2 * step) for above, below in shifted]
        gradient.forget()
        np.testing.assert_allclose(slope, numeric, rtol=1e-6, atol=1e-6)


def test_zero_likelihood_does_not_spoil_the_prior():
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Uniform("y", 0, pt.exp(x), observed=5.0)
    layout = layout_of(model)
    density = TemperedDensity(model, layout)
    gradient = density.compile_gradient(model.value_vars, {})
    position = np.array([0.5])  # exp(x) < 5: the likelihood is zero
    density.controls.set_beta(0.0)
    value, slope = gradient(position)
    assert gradient.finish(position) == -np.inf
    assert value == pytest.approx(-0.5 * np.log(2 * np.pi) - 0.125)
    assert slope == pytest.approx([-0.5])
    density.controls.set_beta(0.5)
    assert gradient(position)[0] == -np.inf


def test_infinite_gradient_of_the_likelihood_does_not_spoil_the_prior():
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Normal("y", pt.sqrt(pt.abs(x)), 1, observed=1.0)
    density = TemperedDensity(model, layout_of(model))
    gradient = density.compile_gradient(model.value_vars, {})
    density.controls.set_beta(0.0)
    assert np.all(np.isfinite(gradient(np.array([0.0]))[1]))
    density.controls.set_beta(1.0)  # the control: at beta = 1 the gradient there is not finite
    assert not np.all(np.isfinite(gradient(np.array([0.0]))[1]))


def test_data_are_settable_and_private():
    model = with_covariates()
    layout = layout_of(model)
    density = TemperedDensity(model, layout)
    terms, controls = density.compile_terms(), density.controls
    state = np.array([0.4, -1.1])
    before = float(terms(state)[1])
    controls.set_data({"y": np.array([0.0, 1.0, 0.0])})  # cast to the model's integers
    logits = np.array([[0.5, 1.0], [-1.0, 0.3], [0.2, -0.7]]) @ state
    expected = np.sum(np.where([False, True, False], logits, 0) - np.logaddexp(0, logits))
    assert float(terms(state)[1]) == pytest.approx(expected)
    controls.set_data({"y": np.array([1, 0, 1])})
    with model:
        pm.set_data({"x": np.zeros((3, 2)), "scale": 7.0})
    assert float(terms(state)[1]) == before
    assert float(terms(state)[0]) == pytest.approx(np.sum(-0.5 * (state / 2) ** 2 - np.log(2 * np.sqrt(2 * np.pi))))


def test_wrong_data_are_refused():
    controls = TemperedDensity(schools(), layout_of(schools())).controls
    with pytest.raises(InvalidArgumentError, match=r"'y' must have the shape \(4,\).*\(3,\)"):
        controls.set_data({"y": np.zeros(3)})
    with pytest.raises(InvalidArgumentError, match="exactly the observed variables"):
        controls.set_data({"z": np.zeros(4)})


def test_the_users_model_is_not_changed():
    model = schools()
    names, variables = set(model.named_vars), [*model.free_RVs, *model.observed_RVs, *model.value_vars]
    before = float(model.compile_logp()(model.initial_point()))
    density = TemperedDensity(model, layout_of(model))
    density.compile_gradient(model.value_vars, {})
    density.controls.set_data({"y": np.zeros(4)})
    assert set(model.named_vars) == names
    assert all(
        a is b for a, b in zip(variables, [*model.free_RVs, *model.observed_RVs, *model.value_vars], strict=True)
    )
    assert float(model.compile_logp()(model.initial_point())) == before


def test_setting_beta_and_data_compiles_nothing(monkeypatch):
    model = schools()
    density = TemperedDensity(model, layout_of(model))
    gradient = density.compile_gradient(model.value_vars, {})
    position = state_of(model, layout_of(model))
    monkeypatch.setattr(pytensor, "function", lambda *_, **__: pytest.fail("compiled again"))
    values = []
    for beta, shift in [(0.2, 0.0), (0.9, 0.0), (0.9, 5.0)]:
        density.controls.set_beta(beta)
        density.controls.set_data({"y": np.full(4, shift)})
        values.append(gradient(position)[0])
    assert len(set(values)) == 3


def test_failures_inside_a_kernel_are_rejected_proposals():
    counted = CountedDensity(lambda x: np.nan if x < 0 else 1 / x, n_densities=2)
    assert counted(2.0) == 0.5
    assert counted(-1.0) == -np.inf
    assert counted(0) == -np.inf  # ZeroDivisionError
    assert counted.n_evaluations == 6
    model = schools()
    gradient = TemperedDensity(model, layout_of(model)).compile_gradient(model.continuous_value_vars, {})

    def broken(_):
        raise ArithmeticError("broken")

    gradient.function = broken
    value, slope = gradient(np.zeros(6))
    assert value == -np.inf
    assert not slope.any()
