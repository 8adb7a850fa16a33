"""WebPPL programs: the contract, exact evidence and posterior of conjugate ones, what is broken and what is refused."""

from __future__ import annotations

import signal

import cloudpickle
import numpy as np
import pytest
import webppl_models as models
from numpy.random import SeedSequence
from scipy import stats

import bread
from bread.backends import open_model
from bread.backends.base import Kernel, OpenOptions
from bread.errors import DensityError, InvalidArgumentError, UnsupportedModelError
from tests.support import conformance

pytestmark = pytest.mark.skipif(models.why_not() != "", reason=models.why_not() or "runs here")
PATH = conformance.PATH
BETAS = np.linspace(0.0, 1.0, 8)
KERNEL = Kernel(np.array([0.0, 1.0]), {})
REAL = {"y": models.Y}
SILENT = {"cores": 1, "random_seed": 1, "progressbar": False}


def opened(model, **options):
    return open_model(model, OpenOptions(**options))


@pytest.fixture(scope="module")
def normal():
    return opened(models.normal_mean(updates=2))


@pytest.fixture(scope="module")
def coins():
    return opened(models.coins())


@pytest.fixture(scope="module")
def vectors():
    return opened(models.vectors())


@pytest.mark.parametrize("name", ["normal", "coins", "vectors"])
def test_the_contract(name, request):
    model = request.getfixturevalue(name)
    conformance.check_simulate_is_exact(model)
    conformance.check_contract_shapes(model, KERNEL)
    conformance.check_bit_equal_batching(model, KERNEL)
    conformance.check_frozen(model, KERNEL)


def test_densities_are_exact(normal):
    """Log prior and log likelihood at prior draws; their sum is log evidence + log posterior, all known."""
    mean, sd = models.posterior_moments(models.Y)
    states = normal.simulate(20, fixed=None, seed=SeedSequence(3)).states
    posterior = normal.condition(REAL)
    prior = stats.norm.logpdf(states[:, 0], models.MEAN, models.SD)
    whole = models.log_evidence(REAL) + stats.norm.logpdf(states[:, 0], mean, sd)
    np.testing.assert_allclose(posterior.log_base(PATH, states), prior, rtol=1e-12)
    np.testing.assert_allclose(posterior.log_density(PATH, states), whole, rtol=1e-12)


def test_vectors_and_constants_have_their_places(vectors):
    """Log prior and log likelihood by hand, of sites that are returned in another order than they are drawn."""
    layout = vectors.info.layout
    assert layout.coordinates == ("w[0]", "w[1]", "w[2]", "rate", "b[0]", "b[1]", "unreturned[0]")
    assert list(layout.parameters) == ["b", "rate", "w", "unreturned"]
    assert list(layout.discrete) == [False] * 3 + [True] + [False] * 3
    drawn = vectors.simulate(5, fixed=None, seed=SeedSequence(5))
    np.testing.assert_array_equal(vectors.unconstrain(drawn.parameters), drawn.states)
    assert drawn.parameters["rate"].dtype == drawn.data["counts"].dtype == np.int64
    for row in range(5):
        w, rate, b, extra = (drawn.parameters[name][row] for name in ("w", "rate", "b", "unreturned"))
        prior = stats.norm.logpdf(w).sum() + stats.poisson.logpmf(rate, 3)
        prior += stats.multivariate_normal([0, 1], [[1, 0.5], [0.5, 2]]).logpdf(b) + stats.norm.logpdf(extra[0], 0, 0.7)
        pairs, counts = drawn.data["pairs"][row], drawn.data["counts"][row]
        ratio = stats.norm.logpdf(pairs, b, [1, np.exp(w[0])]).sum()
        ratio += stats.poisson.logpmf(counts, rate + np.exp(extra[0])).sum()
        posterior = vectors.condition(drawn.data_of(row))
        np.testing.assert_allclose(posterior.log_base(PATH, drawn.states[[row]]), prior, rtol=1e-9)
        np.testing.assert_allclose(posterior.log_ratio(PATH, drawn.states[[row]]), ratio, rtol=1e-9)


def test_weights_know_the_exact_evidence(normal):
    """E[w_fwd] = Z, E[1 / w_rev] = 1 / Z and Crooks' relation over 300 data sets, within 5 standard errors."""
    conformance.check_forward_reverse_identities(
        normal, KERNEL, BETAS, log_evidence=models.log_evidence, n_simulations=300, n_errors=5.0
    )


def test_weights_know_the_exact_evidence_of_discrete_and_drifting_sites(coins):
    """The same with a boolean, a number between 0 and 1, and a drift kernel whose proposals are not symmetric."""
    conformance.check_forward_reverse_identities(
        coins, KERNEL, BETAS, log_evidence=models.coins_log_evidence, n_simulations=300, n_errors=5.0
    )


def test_a_simulator_that_is_not_the_density_is_found():
    """Negative control of the tests above: a package makes WebPPL draw Gaussians narrower than their density."""
    broken = opened(models.normal_mean(packages=[models.NARROW]))
    with pytest.raises(AssertionError, match="expected"):
        conformance.check_forward_reverse_identities(
            broken, KERNEL, BETAS, log_evidence=models.log_evidence, n_simulations=300, n_errors=5.0
        )


def moved(posterior, states, n_steps, beta):
    """Return where chains at ``beta`` come to from each of ``states``."""
    chains = zip(states, SeedSequence(7).spawn(len(states)), strict=True)
    return np.array([posterior.evolve(PATH, KERNEL, beta, state, (n_steps,), seed).states[0] for state, seed in chains])


def off(draws, mean, sd):
    """Return how many standard errors mean and variance of independent draws are off the exact ones, at most."""
    z = (draws - mean) / sd
    values = np.stack([z, z**2 - 1.0])
    return float(np.abs(values.mean(axis=1) / (values.std(axis=1, ddof=1) / np.sqrt(len(z)))).max())


@pytest.mark.parametrize(("beta", "other"), [(0.0, 1.0), (0.4, 0.0), (1.0, 0.0)])
def test_the_kernel_leaves_each_tempered_posterior_alone(normal, beta, other):
    """500 exact draws, moved by 5 transitions: mean and variance within 4 standard errors; not at another beta."""
    precision = 1 / models.SD**2 + beta * len(models.Y) / models.NOISE**2
    mean = (models.MEAN / models.SD**2 + beta * models.Y.sum() / models.NOISE**2) / precision
    exact = mean + np.random.default_rng(8).standard_normal(500) / np.sqrt(precision)
    draws = moved(normal.condition(REAL), exact[:, None], 5, beta)[:, 0]
    assert off(draws, mean, precision**-0.5) < 4.0
    assert np.mean(draws != exact) > 0.5
    wrong = moved(normal.condition(REAL), exact[:, None], 5, other)[:, 0]
    assert off(wrong, mean, precision**-0.5) > 4.0


def test_a_pickled_copy_is_the_same(normal):
    copy = cloudpickle.loads(cloudpickle.dumps(normal))
    first, other = (one.simulate(3, fixed=None, seed=SeedSequence(2)) for one in (normal, copy))
    assert np.array_equal(first.states, other.states) and np.array_equal(first.data["y"], other.data["y"])


def test_a_start_without_density_is_recorded_per_chain(normal):
    """Its density is zero: that chain has no weight, and none can begin there."""
    start = np.array([[0.5], [1e200]])
    posterior = normal.condition(REAL)
    run = posterior.anneal(PATH, BETAS, KERNEL, direction="reverse", initial=start, seeds=SeedSequence(3).spawn(2))
    assert list(run.failure) == [0, 2] and np.isfinite(run.log_weight[0]) and np.isnan(run.log_weight[1])
    with pytest.raises(DensityError, match="where a chain is to begin"):
        posterior.evolve(PATH, KERNEL, 1.0, start[1], (1,), SeedSequence(1))


def test_the_prior_is_sampled_where_the_likelihood_is_zero():
    """At beta = 0 chains go where the data cannot be, half of the prior's mass; at beta > 0 they do not."""
    uniform = models.program("var b = uniform(0, 2); observe(Uniform({a: 0, b: b}), data.y);", "{b: b}")
    model = opened(models.wrapped(uniform, {"y": 1.0}))
    posterior = model.condition({"y": np.array(1.0)})
    starts = model.unconstrain({"b": np.array([0.5, 1.5])})

    def chain(beta, start):
        states = posterior.evolve(PATH, KERNEL, beta, start, range(1, 401), SeedSequence(4)).states
        return model.constrain(states)["b"]

    free = chain(0.0, starts[0])
    assert abs(np.mean(free < 1.0) - 0.5) < 4 * 0.5 / np.sqrt(400)  # each proposal is accepted: independent draws
    assert (chain(0.1, starts[1]) >= 1.0).all()
    assert posterior.log_ratio(PATH, starts)[0] == -np.inf
    runs = [
        posterior.anneal(PATH, BETAS, KERNEL, direction=one, initial=starts, seeds=SeedSequence(5).spawn(2))
        for one in ("forward", "reverse")
    ]
    assert [list(run.failure) for run in runs] == [[1, 0], [2, 0]]
    assert runs[0].log_weight[0] == -np.inf and np.isnan(runs[1].log_weight[0]) and np.isfinite(runs[0].log_weight[1])


def test_gradients_are_those_of_the_density(coins, vectors):
    """Against central differences (error 1e-8), logarithms and logits included; NaN where there are none."""
    for model, known in ((coins, [False, True]), (vectors, [True] * 3 + [False] + [True] * 3)):
        assert model.program.has_gradients
        drawn = model.simulate(3, fixed=None, seed=SeedSequence(6))
        posterior = model.condition(drawn.data_of(0))
        for beta in (0.0, 0.3, 1.0):
            value, gradient = posterior.density_gradient(beta, drawn.states)
            steps = 1e-5 * np.eye(len(known))[known]
            for row, state in enumerate(drawn.states):
                around = np.concatenate([state + steps, state - steps, [state]])
                found = posterior.log_base(PATH, around) + (beta and beta * posterior.log_ratio(PATH, around))
                up, down = found[:-1].reshape(2, -1)
                np.testing.assert_allclose(value[row], found[-1], rtol=1e-9)
                np.testing.assert_allclose(gradient[row, known], (up - down) / 2e-5, rtol=1e-5, atol=1e-5)
                assert np.isnan(gradient[row, ~np.array(known)]).all()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{mu: mu, sigma", "{mu: opaque.twice(mu) / 2, sigma"),  # a function of a package hides the derivative
        ("map(function", "var x = sample(KDE({data: [1, 2, 5]})); map(function"),  # whose score is not differentiated
    ],
    ids=["a function of a package", "a KDE"],
)
def test_gradients_that_are_not_seen_through_are_replaced(old, new):
    """Where automatic differentiation is wrong, or fails, differences are right."""
    model = opened(models.wrapped(models.NORMAL_MEAN.replace(old, new), {"y": models.Y}, packages=[models.OPAQUE]))
    assert not model.program.has_gradients
    mean, sd = models.posterior_moments(models.Y)
    states = model.simulate(5, fixed=None, seed=SeedSequence(3)).states
    _, gradient = model.condition(REAL).density_gradient(1.0, states)
    np.testing.assert_allclose(gradient[:, 0], -(states[:, 0] - mean) / sd**2, rtol=1e-6, atol=1e-6)


def test_values_that_no_draw_has_have_density_zero(coins, vectors):
    """A boolean of 2 or -1, and a Poisson number of -1, whose score WebPPL says is finite."""
    states = coins.unconstrain({"fair": np.array([True, False]), "p": np.array([0.4, 0.6])})
    posterior = coins.condition({"y": models.SUCCESSES})
    assert np.isfinite(posterior.log_density(PATH, states)).all()
    for wrong in (2.0, -1.0, 0.5):
        states[:, 0] = wrong
        assert (posterior.log_base(PATH, states) == -np.inf).all()
        assert (posterior.density_gradient(1.0, states)[0] == -np.inf).all()
    drawn = vectors.simulate(1, fixed=None, seed=SeedSequence(1))
    place = vectors.info.layout.coordinates.index("rate")
    drawn.states[:, place] = -1.0
    assert vectors.condition(drawn.data_of(0)).log_base(PATH, drawn.states)[0] == -np.inf


def test_a_site_that_did_not_move_is_the_same_to_the_last_bit(coins):
    """Its logit is not taken there and back: a chain that stays is no chain that moved by 1e-16."""
    posterior = coins.condition({"y": models.SUCCESSES})
    starts = posterior.draw_base(PATH, SeedSequence(1).spawn(60))
    ends = moved(posterior, starts, 1, 1.0)
    distance = np.abs(ends - starts)[:, 1]
    assert (distance == 0.0).sum() > 10 and not ((distance > 0.0) & (distance < 1e-9)).any()


@pytest.mark.slow
@pytest.mark.parametrize("model", [models.coins, models.vectors])
def test_the_battery_passes_discrete_drifting_and_vector_sites(model):
    """All tests of simulator, density and kernel: no bug where there is none."""
    report = bread.debug(model(), random_seed=1, progressbar=False, budget=0.02)
    assert bread.verdict(report).status == "no bug found", bread.verdict(report)


def test_coordinates_have_their_jacobians(coins):
    """The prior of a Beta variable is that of its logit: the density by hand, the Jacobian with it."""
    p = np.array([0.1, 0.6])
    states = coins.unconstrain({"fair": np.array([True, False]), "p": p})
    np.testing.assert_allclose(states, np.column_stack([[1.0, 0.0], np.log(p / (1 - p))]), rtol=1e-12)
    by_hand = np.log([0.3, 0.7]) + stats.beta.logpdf(p, models.A, models.B) + np.log(p * (1 - p))
    posterior = coins.condition({"y": models.SUCCESSES})
    np.testing.assert_allclose(posterior.log_base(PATH, states), by_hand, rtol=1e-9)
    assert list(coins.info.layout.transformed) == [False, True]


def test_hyperparameters_are_those_that_others_depend_on_and_are_held():
    three = models.program(
        "var top = gaussian(0, 1); var mid = gaussian(top, 1); var low = gaussian(mid, 1); var mu = low; "
        + models.OBSERVED,
        "{low: low, mid: mid, top: top}",
    )
    model = opened(models.wrapped(three, {"y": models.Y}))
    assert model.info.layout.hyperparameters == ("mid", "top")
    held = model.simulate(2, fixed={"top": 9.0}, seed=SeedSequence(1))
    assert (held.parameters["top"] == 9.0).all() and (held.parameters["mid"] > 4.0).all()
    with pytest.raises(InvalidArgumentError, match="'mid' depends on 'top'"):
        opened(models.wrapped(three, {"y": models.Y}), hyperparameters=("mid",))


def test_the_fit_has_the_exact_posterior(normal):
    """WebPPL's own kernel on the real data: the mean within 0.2 posterior standard deviations."""
    mean, sd = models.posterior_moments(models.Y)
    fit = normal.fit(seed=1, cores=1, progressbar=False)
    assert fit.draws["mu"].shape == (4, 500) and abs(fit.draws["mu"].mean() - mean) < 0.2 * sd


def test_a_process_that_ended_or_was_interrupted_is_started_again(normal):
    bridge = normal.program.bridge
    before = normal.simulate(2, fixed=None, seed=SeedSequence(2)).states
    bridge.close()
    assert np.array_equal(normal.simulate(2, fixed=None, seed=SeedSequence(2)).states, before)


def test_an_interrupt_leaves_no_answer_behind(normal):
    """A long chain is given up; what is asked next is answered by a new process."""

    def interrupt(*_):
        raise KeyboardInterrupt

    posterior, before = normal.condition(REAL), signal.signal(signal.SIGALRM, interrupt)
    expected = posterior.log_ratio(PATH, np.array([[0.5]]))
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            posterior.evolve(PATH, KERNEL, 1.0, np.array([0.5]), (5_000_000,), SeedSequence(1))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert np.array_equal(posterior.log_ratio(PATH, np.array([[0.5]])), expected)


def test_what_a_program_keeps_is_there_in_each_run():
    """WebPPL's globalStore: set outside of the model, and changed in a run, it begins every run anew."""
    program = "globalStore.shift = 2; " + models.program(
        f"globalStore.shift += 1; var mu = gaussian(globalStore.shift, 0.01); {models.OBSERVED}"
    )
    model = opened(models.wrapped(program, {"y": models.Y}))
    drawn = model.simulate(20, fixed=None, seed=SeedSequence(1)).states
    assert np.abs(drawn - 3.0).max() < 0.1


def test_the_reference_path_is_refused():
    with pytest.raises((InvalidArgumentError, UnsupportedModelError), match="prior path"):
        bread.check(models.normal_mean(), path="reference", **SILENT)
