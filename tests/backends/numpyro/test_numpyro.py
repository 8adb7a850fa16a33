"""NumPyro models: the contract, exact evidence and posterior of a conjugate one, and what is refused."""

from __future__ import annotations

import cloudpickle
import numpy as np
import pytest
from numpy.random import SeedSequence
from scipy import stats

import bread
import bread.numpyro
from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.errors import InvalidArgumentError, UnsupportedKernelError, UnsupportedModelError
from tests.support import conformance

jax = pytest.importorskip("jax")
pytest.importorskip("numpyro")
from tests.support import numpyro_models as models  # noqa: E402

PATH = conformance.PATH
BETAS = np.linspace(0.0, 1.0, 8)
REAL = {"y": models.Y}
SILENT = {"cores": 1, "random_seed": 1, "progressbar": False}


def opened(function=models.normal_mean, kernel=None, **options):
    return open_model(bread.numpyro.Model(function, (models.Y,)), OpenOptions(kernel=kernel, **options))


@pytest.fixture(scope="module", params=["NUTS", pytest.param("HMC", marks=pytest.mark.slow)])
def model(request):
    return opened(kernel=request.param)


@pytest.fixture(scope="module")
def kernel(model):
    return conformance.tuned_kernel(model)


def test_the_contract(model, kernel):
    """In double precision, while the user's setting stays as it is."""
    assert not jax.config.jax_enable_x64
    conformance.check_simulate_is_exact(model)
    conformance.check_contract_shapes(model, kernel)
    conformance.check_bit_equal_batching(model, kernel)
    conformance.check_frozen(model, kernel)
    assert not jax.config.jax_enable_x64


def test_densities_are_exact(model):
    """Log prior and log likelihood at prior draws; their sum is log evidence + log posterior, all known."""
    mean, sd = models.posterior_moments(models.Y)
    states = model.simulate(20, fixed=None, seed=SeedSequence(3)).states
    posterior = model.condition(REAL)
    mu = states[:, 0]
    prior = -0.5 * ((mu - models.MEAN) / models.SD) ** 2 - np.log(models.SD) - 0.5 * np.log(2 * np.pi)
    whole = models.log_evidence(REAL) - 0.5 * ((mu - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(posterior.log_base(PATH, states), prior, rtol=1e-12)
    np.testing.assert_allclose(posterior.log_density(PATH, states), whole, rtol=1e-12)
    value, gradient = posterior.density_gradient(1.0, states)
    np.testing.assert_allclose(value, whole, rtol=1e-12)
    np.testing.assert_allclose(gradient[:, 0], -(mu - mean) / sd**2, rtol=1e-9, atol=1e-12)


def test_weights_know_the_exact_evidence(model, kernel):
    """E[w_fwd] = Z, E[1 / w_rev] = 1 / Z and Crooks' relation over 300 data sets, within 5 standard errors."""
    conformance.check_forward_reverse_identities(
        model, kernel, BETAS, log_evidence=models.log_evidence, n_simulations=300, n_errors=5.0
    )


def test_a_density_that_is_not_the_simulator_is_found():
    """Negative control of the test above: a density two thirds as wide as the draws."""
    broken = opened(models.with_law(models.DenseTooNarrow))
    with pytest.raises(AssertionError, match="expected"):
        conformance.check_forward_reverse_identities(
            broken,
            conformance.tuned_kernel(broken, n_steps=30),
            BETAS,
            log_evidence=models.log_evidence,
            n_simulations=300,
            n_errors=5.0,
        )


def chain_of(model, kernel, shift=0.0, n=1000):
    """Return every fifth state of a chain at beta = 1 that begins at an exact posterior draw."""
    mean, sd = models.posterior_moments(models.Y)
    start = np.array([mean + shift + sd * np.random.default_rng(8).standard_normal()])
    keep = np.arange(1, n + 1) * 5
    return model.condition(REAL).evolve(PATH, kernel, 1.0, start, keep, SeedSequence(9)).states[:, 0]


def distance(draws):
    """Return how many standard errors mean and variance of 20 batch means are off the exact ones, at most."""
    mean, sd = models.posterior_moments(models.Y)
    z = (draws - mean) / sd
    batches = np.stack([z, z**2 - 1.0]).reshape(2, 20, -1).mean(axis=2)
    return float(np.abs(batches.mean(axis=1) / (batches.std(axis=1, ddof=1) / np.sqrt(20))).max())


def test_a_chain_has_the_exact_posterior(model, kernel):
    """Mean and variance of mu within 6 standard errors (batch means, 20 batches); a posterior 0.5 sd off is not."""
    draws = chain_of(model, kernel)
    assert distance(draws) < 6.0
    _, sd = models.posterior_moments(models.Y)
    assert distance(draws + 0.5 * sd) > 6.0


def by_differences(model, state, name, free):
    """Return log |det| of the map from the coordinates of ``name`` to its elements ``free``, by central differences."""
    places = model.info.layout.positions[name]
    steps = 1e-5 * np.eye(model.info.layout.dim)[places]
    around = model.constrain(np.concatenate([state + steps, state - steps]))[name]
    up, down = around.reshape(2, len(places), -1)[:, :, free]
    return np.linalg.slogdet((up - down) / 2e-5)[1]


def log_prior(model, state, values, with_jacobians=True):
    """Written out by hand; a correlation has the density 3/4 (1 - r^2) under LKJ(2, 2)."""
    tau, share, corr, theta = (values[name] for name in ("tau", "share", "corr", "theta"))
    own = stats.halfnorm.logpdf(tau) + stats.dirichlet.logpdf(share, [2.0, 3.0, 4.0])
    own += np.log(0.75 * (1 - corr[1, 0] ** 2)) + stats.norm.logpdf(theta, 0.0, tau).sum()
    free = {"tau": [0], "share": [0, 1], "corr": [2]}
    return own + with_jacobians * sum(by_differences(model, state, name, places) for name, places in free.items())


@pytest.mark.slow
def test_jacobians_of_all_kinds_of_maps():
    """A scale, a simplex, a correlation: the prior by hand, its Jacobians by differences (error 1e-7 or less)."""
    model = opened(models.transformed)
    layout = model.info.layout
    assert layout.hyperparameters == ("tau",) and layout.dim == 1 + 2 + 1 + 3
    assert list(layout.transformed) == [True] * 4 + [False] * 3
    conformance.check_simulate_is_exact(model)
    states = model.simulate(5, fixed=None, seed=SeedSequence(5)).states
    named = model.constrain(states)
    rows = [{name: values[row] for name, values in named.items()} for row in range(5)]
    found = model.condition(REAL).log_base(PATH, states)
    by_hand = [log_prior(model, state, values) for state, values in zip(states, rows, strict=True)]
    np.testing.assert_allclose(found, by_hand, atol=1e-5)
    without = [
        log_prior(model, state, values, with_jacobians=False) for state, values in zip(states, rows, strict=True)
    ]
    assert np.abs(found - without).min() > 0.01  # negative control
    np.testing.assert_allclose(model.unconstrain(named), states, rtol=1e-7, atol=1e-9)


@pytest.mark.slow
def test_a_check_of_a_whole_model():
    """By default: fitted hyperparameters, NumPyro's own fit; 32 temperatures are plenty for one normal mean."""
    report = bread.check(
        bread.numpyro.Model(models.normal_mean, (models.Y,)), simulations=8, n_temperatures=[8, 64], draws=100, **SILENT
    )
    verdict = bread.verdict(report)
    assert verdict.status in ("converged", "inconclusive"), verdict


@pytest.mark.slow
def test_a_check_finds_a_wrong_simulator():
    report = bread.check(
        bread.numpyro.Model(models.with_law(models.DrawnTooWide), (models.Y,)),
        simulate_from="prior",
        simulations=8,
        n_temperatures=[8, 64],
        draws=0,
        **SILENT,
    )
    assert bread.verdict(report).status == "bug", bread.verdict(report)


def test_an_impossible_data_set_is_recorded_per_chain(model, kernel):
    """A start whose density is zero fails alone; NaN in a weight is never dropped."""
    start = np.array([[0.5], [1e200]])
    run = model.condition(REAL).anneal(
        PATH, BETAS, kernel, direction="reverse", initial=start, seeds=SeedSequence(3).spawn(2)
    )
    assert list(run.failure) == [0, 2] and np.isfinite(run.log_weight[0]) and np.isnan(run.log_weight[1])


def test_a_pickled_copy_is_the_same(model):
    copy = cloudpickle.loads(cloudpickle.dumps(model))
    first, other = (one.simulate(3, fixed=None, seed=SeedSequence(2)) for one in (model, copy))
    assert np.array_equal(first.states, other.states) and np.array_equal(first.data["y"], other.data["y"])


def test_a_pickled_copy_draws_first():
    """What a worker does: shapes of transformed variables are not left over from inside of a compiled program."""
    model = opened(models.with_scale)
    copy = cloudpickle.loads(cloudpickle.dumps(model))
    first, other = (one.simulate(3, fixed=None, seed=SeedSequence(2)) for one in (model, copy))
    assert np.array_equal(first.states, other.states)
    bases = [one.condition(REAL).draw_base(PATH, SeedSequence(4).spawn(2)) for one in (model, copy)]
    assert np.array_equal(*bases)


@pytest.mark.parametrize(("function", "message"), models.REFUSED, ids=lambda one: getattr(one, "__name__", ""))
def test_refused(function, message):
    with pytest.raises(UnsupportedModelError, match=message):
        opened(function)


@pytest.mark.parametrize("y", [np.ones(3), jax.numpy.ones(3)], ids=["numpy", "jax"])
def test_equal_data_in_a_prior_are_refused(y):
    """Data that are all the same show nothing when they are turned round."""
    with pytest.raises(UnsupportedModelError, match="holds the data of 'y'"):
        open_model(bread.numpyro.Model(models.data_in_prior, (y,)), OpenOptions())


def test_one_number_in_a_prior_is_refused():
    with pytest.raises(UnsupportedModelError, match="holds the data of 'y'"):
        open_model(bread.numpyro.Model(models.number_in_prior, (1.3,)), OpenOptions())


def test_masked_arguments_are_refused():
    masked = np.ma.array(models.Y, mask=[False, True, False])
    with pytest.raises(UnsupportedModelError, match="1 masked values"):
        open_model(bread.numpyro.Model(models.normal_mean, (masked,)), OpenOptions())
    with pytest.raises(UnsupportedModelError, match="1 masked values"):
        open_model(bread.numpyro.Model(lambda: models.normal_mean(masked)), OpenOptions())


def test_arguments_that_are_no_tree_of_jax_are_refused():
    with pytest.raises(UnsupportedModelError, match="does not run with the arguments"):
        open_model(bread.numpyro.Model(lambda y, _: models.normal_mean(y), (models.Y, {1: 2, "a": 3})), OpenOptions())


def test_whole_numbers_are_data_of_continuous_laws():
    """Simulated data are as drawn, not cut to whole numbers, nor to the range of the user's type."""
    whole = open_model(bread.numpyro.Model(models.normal_mean, (np.array([28, 8, -3]),)), OpenOptions())
    data = whole.simulate(5, fixed=None, seed=SeedSequence(2)).data["y"]
    assert np.array_equal(data, opened().simulate(5, fixed=None, seed=SeedSequence(2)).data["y"])
    bytes_ = open_model(bread.numpyro.Model(models.counts, (np.array([2, 8, 3], dtype=np.uint8),)), OpenOptions())
    drawn = bytes_.simulate(20, fixed=None, seed=SeedSequence(2))
    assert drawn.data["y"].dtype == np.int64
    rate = drawn.parameters["rate"]
    assert (np.abs(drawn.data["y"].mean(axis=1) - rate) < 6 * np.sqrt(rate / 3)).all() and rate.max() > 256


def test_sites_may_share_what_they_say_of_inference():
    """One dict for all of them, which NumPyro's handlers write to: latent sites stay latent."""
    model = opened(models.one_infer_for_all)
    assert tuple(model.info.layout.parameters) == ("mu", "nu") and list(model.info.data.observed) == ["y"]
    assert models.SHARED == {}


def test_arrays_of_jax_are_indexed_by_plates():
    model = open_model(bread.numpyro.Model(models.indexed_by_the_plate, (jax.numpy.asarray(models.Y),)), OpenOptions())
    states = np.array([[0.3], [-1.0]])
    found, usual = (one.condition(REAL).log_density(PATH, states) for one in (model, opened()))
    np.testing.assert_allclose(found, usual, rtol=1e-12)
    copy = cloudpickle.loads(cloudpickle.dumps(model))
    assert np.array_equal(copy.condition(REAL).log_density(PATH, states), found)


def test_missing_data_are_refused():
    with pytest.raises(UnsupportedModelError, match="1 values that are NaN or infinite"):
        open_model(bread.numpyro.Model(models.normal_mean, (np.array([0.0, np.nan, 1.0]),)), OpenOptions())


def test_a_call_that_does_not_run_is_refused():
    with pytest.raises(UnsupportedModelError, match="does not run with the arguments"):
        open_model(bread.numpyro.Model(models.normal_mean, (models.Y, 2, 3)), OpenOptions())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kernel": "SA"}, UnsupportedKernelError, "'NUTS'.*or 'HMC'"),
        ({"engine": "blackjax"}, InvalidArgumentError, "engine="),
        ({"data": {}}, InvalidArgumentError, "data="),
        ({"hyperparameters": ("nu",)}, InvalidArgumentError, "'nu'"),
    ],
)
def test_options(options, error, message):
    with pytest.raises(error, match=message):
        opened(**options)


def test_hyperparameters_are_held_with_what_they_depend_on():
    assert opened(models.chain_of_three).info.layout.hyperparameters == ("top", "middle")
    assert opened(models.chain_of_three, hyperparameters=("top",)).info.layout.hyperparameters == ("top",)
    with pytest.raises(InvalidArgumentError, match="'middle' depends on 'top'"):
        opened(models.chain_of_three, hyperparameters=("middle",))


def test_a_bare_function_is_told_how_to_be_wrapped():
    with pytest.raises(InvalidArgumentError, match="bread.numpyro.Model"):
        bread.check(models.normal_mean, **SILENT)


def test_the_reference_path_is_refused():
    with pytest.raises((InvalidArgumentError, UnsupportedModelError), match="prior path alone"):
        bread.check(bread.numpyro.Model(models.normal_mean, (models.Y,)), path="reference", **SILENT)
