"""PyMC models annealed along every kind of path: densities against formulae, exact evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from numpy.random import SeedSequence
from scipy import stats

import bread
from bread.backends import open_model
from bread.backends.base import AnnealRun, Kernel, OpenOptions
from bread.errors import InvalidArgumentError
from bread.paths.kinds import Path, PriorPath, ReferencePath
from bread.paths.mixture import diagonal, gaussian
from bread.paths.nested import NestedReference
from bread.paths.user import as_reference
from bread.report.compat import read_attributes
from tests.support.conformance import (
    check_bit_equal_batching,
    check_contract_shapes,
    check_end_gradient,
    check_evidence,
    check_forward_reverse_identities,
    check_frozen,
    check_weighted_ranks,
    tuned_kernel,
)
from tests.support.pymc_conjugate import MODELS as CONJUGATE
from tests.support.pymc_conjugate import SHORT

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]

Y = np.array([0.4, 1.9, 1.1])
MEAN, COVARIANCE = np.array([0.3, -0.4]), np.array([[0.5, 0.2], [0.2, 0.4]])
REFERENCE = gaussian(MEAN, COVARIANCE)
NESTED = NestedReference(
    driver=1,
    marginal=diagonal(np.array([-0.3]), np.array([0.6])),
    centre=np.array([0.4]),
    matrix=np.array([[1.3]]),
    knots=np.array([-1.2, -0.4, 0.5]),
    values=np.array([[[0.3], [-0.8]], [[0.1], [-0.3]], [[-0.2], [0.4]]]),
    slopes=np.array([[[-0.2], [0.5]], [[0.1], [0.9]], [[-0.1], [0.6]]]),
)
PATHS: dict[str, Path] = {
    "prior": PriorPath(),
    "reference": ReferencePath(REFERENCE),
    "nested": ReferencePath(NESTED),
}
by_name = {"argvalues": PATHS.values(), "ids": PATHS}


def skewed() -> pm.Model:
    """A normal mean and scale: an asymmetric posterior, and a likelihood that falls without bound."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.5, 1.5)
        sigma = pm.HalfNormal("sigma", 2)
        pm.Normal("y", mu, sigma, observed=Y)
    return model


def log_prior(states: np.ndarray) -> np.ndarray:
    sigma = np.exp(states[..., 1])
    return stats.norm.logpdf(states[..., 0], 0.5, 1.5) + stats.halfnorm.logpdf(sigma, scale=2) + states[..., 1]


def log_likelihood(states: np.ndarray) -> np.ndarray:
    return stats.norm.logpdf(Y, states[..., :1], np.exp(states[..., 1:2])).sum(axis=-1)


def log_base(path: Path, states: np.ndarray) -> np.ndarray:
    return log_prior(states) if path.reference is None else path.reference.log_density(states)


def log_ratio(path: Path, states: np.ndarray) -> np.ndarray:
    ratio = log_likelihood(states)
    return ratio if path.reference is None else ratio + log_prior(states) - path.reference.log_density(states)


def same(first: AnnealRun, second: AnnealRun) -> bool:
    names = [name for name in vars(first) if name not in ("seconds", "message")]
    return all(np.array_equal(getattr(first, name), getattr(second, name), equal_nan=True) for name in names)


@pytest.fixture(scope="module")
def opened() -> Any:
    return open_model(skewed(), OpenOptions())


@pytest.fixture(scope="module")
def sliced() -> Any:
    return open_model(skewed(), OpenOptions(kernel=pm.Slice))


STATES = np.array([[0.2, -0.3], [1.4, 0.8], [-2.0, -2.5], [5.0, 1.0]])


@pytest.mark.parametrize("path", **by_name)
def test_density_and_gradient_are_those_of_the_formulae(path: Path, opened: Any) -> None:
    """Values to 1e-9, gradients by central differences."""
    engine, step = opened.engine, 1e-5
    opened.condition({"y": Y}).load(path)
    for beta in (0.0, 0.23, 0.8, 1.0):
        engine.set_beta(beta)

        def expected(x: np.ndarray, beta: float = beta) -> Any:
            return log_base(path, x) + beta * log_ratio(path, x)

        for state in STATES:
            value, gradient = engine.gradient(state)
            assert value == pytest.approx(float(expected(state)), rel=1e-8)
            assert engine.gradient.finish(state) == pytest.approx(float(log_ratio(path, state)), rel=1e-8)
            numeric = [(expected(state + e) - expected(state - e)) / (2 * step) for e in step * np.eye(2)]
            np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)


def test_values_of_other_steps_are_those_of_the_formula(sliced: Any) -> None:
    sliced.condition({"y": Y}).load(PriorPath())
    density = sliced.engine.steps[0].step.logp  # of mu alone; the other coordinate is a shared variable
    (shared,) = sliced.engine.steps[0].step.shared.values()
    for beta in (0.0, 0.23, 0.8, 1.0):
        sliced.engine.set_beta(beta)
        for state in STATES:
            shared.set_value(np.array(state[1]))
            expected = log_prior(state) + beta * log_likelihood(state)
            assert density(state[:1]) == pytest.approx(float(expected), rel=1e-8)


@pytest.mark.parametrize("path", **by_name)
def test_ratio_and_start(path: Path, opened: Any) -> None:
    posterior = opened.condition({"y": Y})
    np.testing.assert_allclose(posterior.log_ratio(path, STATES), log_ratio(path, STATES), rtol=1e-8)
    seeds = SeedSequence(1).spawn(3)
    start = posterior.draw_base(path, seeds)
    if path.reference is None:
        assert np.array_equal(start, posterior.draw_base(PriorPath(), seeds))
    else:
        assert np.array_equal(start[1], path.reference.sample(1, np.random.default_rng(seeds[1]))[0])


@pytest.mark.parametrize("name", ["reference", "nested"])
def test_counts_of_the_reference_path(name: str, opened: Any) -> None:
    """At beta = 0 a kernel takes no gradient of the model; the log ratios of an adaptation are evaluations."""
    posterior, path = opened.condition({"y": Y}), PATHS[name]
    at_start = posterior.adapt(path, 0.0, MEAN, SeedSequence(1), 20, None)
    assert (at_start.n_gradients, at_start.n_evaluations) == (1, 20)  # the gradient checks the first state
    between = posterior.adapt(path, 0.5, MEAN, SeedSequence(1), 20, None)
    assert between.n_gradients > 60 and between.n_evaluations == 0
    kernel = Kernel(np.array([0.0]), {name: value[None] for name, value in at_start.settings.items()})
    kept = posterior.evolve(path, kernel, 0.0, MEAN, (5,), SeedSequence(2))
    assert (kept.n_gradients, kept.n_evaluations) == (1, 0)


@pytest.mark.parametrize("path", **by_name)
def test_contract(path: Path, opened: Any) -> None:
    kernel = tuned_kernel(opened, path=path)
    check_contract_shapes(opened, kernel, path=path)
    check_bit_equal_batching(opened, kernel, path=path)
    check_frozen(opened, kernel, path=path)


def test_gradients_in_a_row_are_those_of_a_fresh_engine(opened: Any) -> None:
    """Path and data are set once for gradients that follow each other: whatever comes between sets them again.

    Two data sets, two references, density, other gradients and chains in turn, and a pickled copy: bit by bit what a
    posterior gives that was loaded for this one call.
    """
    other = ReferencePath(diagonal(np.zeros(2), np.ones(2)))
    path, state = ReferencePath(REFERENCE), np.array([0.3, -0.2])
    first, second = (opened.condition({"y": data}) for data in (Y, 2.0 * Y + 1.0))

    def loaded(posterior: Any, along: Any) -> tuple[float, np.ndarray]:
        engine = posterior.load(along)
        value, gradient = engine.end_gradient(state)
        return value, gradient.copy()

    expected = {
        (i, j): loaded(one, along) for i, one in enumerate((first, second)) for j, along in enumerate((path, other))
    }
    assert expected[0, 0][0] != expected[1, 0][0]

    def check(i: int, j: int) -> None:
        value, gradient = (first, second)[i].end_gradient((path, other)[j], state)
        assert value == expected[i, j][0]
        np.testing.assert_array_equal(gradient, expected[i, j][1])

    def between() -> Iterator[None]:
        yield
        second.density_gradient(0.3, state[None])
        yield
        first.density_gradient(0.0, state[None])
        yield
        second.log_ratio(PriorPath(), state[None])
        yield
        first.log_ratio(other, state[None])
        yield
        second.draw_base(other, SeedSequence(1).spawn(1))
        yield
        opened.condition({"y": 5.0 * Y}).density_gradient(1.0, state[None])
        yield

    for _ in between():
        for i, j in ((0, 0), (0, 0), (1, 0), (0, 1), (0, 0)):
            check(i, j)
    copy = cloudpickle.loads(cloudpickle.dumps(opened))
    assert copy.condition({"y": Y}).end_gradient(path, state)[0] == expected[0, 0][0]


def test_results_do_not_depend_on_the_paths_before(opened: Any) -> None:
    posterior, betas, seeds = opened.condition({"y": Y}), np.linspace(0, 1, 5), SeedSequence(4).spawn(2)
    frozen = tuned_kernel(opened, n_steps=30)

    def run(path: Path) -> AnnealRun:
        start = posterior.draw_base(path, seeds)
        return posterior.anneal(path, betas, frozen, direction="forward", initial=start, seeds=seeds)

    first = {name: run(path) for name, path in PATHS.items()}
    assert not same(first["prior"], first["reference"]) and not same(first["reference"], first["nested"])
    for name in reversed(PATHS):
        assert same(run(PATHS[name]), first[name])


WIDE_NESTED = replace(  # not much wider than the posterior: 1 / w_rev would have a tail that 200 data sets do not show
    NESTED,
    marginal=diagonal(np.array([0.1]), np.array([0.8])),
    values=np.array([[[0.3], [0.5]], [[0.1], [0.3]], [[-0.2], [0.4]]]),
    slopes=np.array([[[-0.2], [-0.1]], [[0.1], [0.0]], [[-0.1], [0.1]]]),
)
UNBIASED = {
    "reference": ("normal_mean", ReferencePath(diagonal(np.array([0.8]), np.array([0.9])))),
    "nested": ("regression", ReferencePath(WIDE_NESTED)),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "path"),
    [pytest.param(*case, id=key, marks=[pytest.mark.slow] * (key == "nested")) for key, case in UNBIASED.items()],
)
@pytest.mark.statistical
def test_unbiased_in_both_directions(name: str, path: Path) -> None:
    """T = 8, 200 simulations: E[w_fwd] = Z, E[1 / w_rev] = 1 / Z, Crooks' relation; 4 standard errors.

    Negative control: an evidence that is off by 0.3 nats.
    """
    build, exact = CONJUGATE[name]
    model = open_model(build(), OpenOptions())
    kernel = tuned_kernel(model, path=path)

    def check(shift: float) -> None:
        check_forward_reverse_identities(
            model,
            kernel,
            SHORT,
            log_evidence=lambda data: exact(data["y"]) + shift,
            n_simulations=200,
            path=path,
        )

    check(0.0)
    with pytest.raises(AssertionError):
        check(0.3)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["beta_binomial", "hierarchical"])
def test_evidence_and_ranks(name: str) -> None:
    """Exact evidence inside the sandwich (3 standard errors) and uniform weighted ranks, with Jacobians and several
    dimensions."""
    build, exact = CONJUGATE[name]
    model = open_model(build(), OpenOptions())
    dim = model.info.layout.dim
    path = ReferencePath(diagonal(np.full(dim, 0.2), np.full(dim, 1.1)))
    kernel = tuned_kernel(model, path=path)
    check_evidence(
        model, kernel, log_evidence=lambda data: exact(data["y"]), n_temperatures=128, n_simulations=10, path=path
    )
    check_weighted_ranks(model, kernel, SHORT, n_simulations=200, path=path)


def test_a_reference_of_the_users_and_another_order_of_the_coordinates() -> None:
    """A callable may list the variables in another order than the state has them."""
    model = open_model(
        skewed(), OpenOptions(kernel=lambda model: pm.NUTS(vars=list(model.value_vars)[::-1], model=model))
    )

    class Law:
        def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
            return REFERENCE.sample(n, rng)

        def log_density(self, states: np.ndarray) -> np.ndarray:
            return REFERENCE.log_density(states)

    posterior, betas, seeds = model.condition({"y": Y}), np.linspace(0, 1, 5), SeedSequence(4).spawn(2)
    kernel, runs = tuned_kernel(model, n_steps=30), []
    for reference in (REFERENCE, as_reference(Law())):
        path = ReferencePath(reference)
        start = posterior.draw_base(path, seeds)
        runs.append(posterior.anneal(path, betas, kernel, direction="forward", initial=start, seeds=seeds))
        np.testing.assert_allclose(runs[-1].log_ratio[:, 0], log_ratio(path, start), rtol=1e-8)
        check_end_gradient(posterior, path, start[0])
    np.testing.assert_allclose(runs[0].state_at_end, runs[1].state_at_end, rtol=1e-4)  # finite differences


@pytest.mark.slow
def test_a_reference_fitted_to_what_pm_fit_returns() -> None:
    """A mean field misses the slope's spread: the path repairs it, and the bound falls as T grows."""
    with skewed() as model:
        approximation = pm.fit(2000, method="advi", random_seed=1, progressbar=False)
    report = bread.check(
        model, path=approximation, simulate_from="prior", simulations=6, chains=2, n_temperatures=[4, 64], tune=50,
        draws=0, random_seed=1, cores=1, progressbar=False,
    )  # fmt: skip
    assert "fitted to the draws given as path=" in json.dumps(read_attributes(report) | dict(report["reference"].attrs))
    bounds = bread.summary(report, kind="bounds")["jeffreys"]
    assert bounds.iloc[-1] < bounds.iloc[0]
    draws = open_model(model, OpenOptions()).read_posterior(approximation).draws
    assert draws["sigma"].shape == (1, 2000) and (draws["sigma"] > 0).all()
    with pytest.raises(InvalidArgumentError, match="^path= must be an InferenceData"):
        bread.check(model, path=3.0, progressbar=False)


def test_transforms_and_positions(opened: Any) -> None:
    assert opened.info.layout.transformed.tolist() == [False, True]
    assert {name: value.tolist() for name, value in opened.info.layout.positions.items()} == {"mu": [0], "sigma": [1]}
    np.testing.assert_allclose(opened.unconstrain(opened.constrain(STATES)), STATES, rtol=1e-12)


@pytest.mark.slow
def test_a_near_reference_is_taken_though_b_may_have_no_mean_along_it() -> None:
    """On the extra data set of this seed the tail of the ratio at the reference's end is in doubt; V needs no mean.

    Along the prior path, where B has one, V is 0.3 at 64 temperatures.
    """
    rng = np.random.default_rng(9)
    count = rng.poisson(2.5, 60) * (rng.random(60) < 0.7)
    with pm.Model() as model:
        share, rate = pm.Beta("share", 2, 2), pm.Gamma("rate", 2, 1)
        pm.ZeroInflatedPoisson("count", psi=share, mu=rate, observed=count)
    report = bread.check(model, random_seed=1, max_temperatures=32, draws=0, cores=1, progressbar=False)
    attributes = read_attributes(report)
    assert attributes["path"] == "reference" and attributes["n_temperatures"] <= 32
    assert bread.verdict(report).status == "converged"
