"""Draws of truncated distributions: the law of PyMC's own, without its loop, from the same generator every time."""

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from pytensor.scan.op import Scan
from scipy import stats

from bread.backends.pymc.density.compiling import detach, interpret_function
from bread.backends.pymc.density.pytensor_fixes.truncated import SCIPY

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore")]

N = 40_000
LEVEL = 1e-4  # of each test, of which there are a dozen


def drawn(distribution, seed=1):
    """Draws of a distribution by its interpreted function, whose pickled copy draws the same."""
    graph = detach([distribution])
    function = interpret_function(graph.generators, graph.outputs)
    copied = cloudpickle.loads(cloudpickle.dumps(function))
    n_generators = len(graph.generators)
    found, again = (
        one(*(np.random.default_rng([seed, number]) for number in range(n_generators)))[0] for one in (function, copied)
    )
    np.testing.assert_array_equal(found, again)
    assert found.dtype == distribution.dtype
    return found


def test_no_loop_of_pytensor_runs():
    """PyMC's own graph has one."""
    distribution = pm.Truncated.dist(pm.Poisson.dist([1.0, 2.0]), lower=1)
    graph = detach([distribution])
    built = interpret_function(graph.generators, graph.outputs)._function.maker.fgraph  # noqa: SLF001
    for nodes, has_loop in ((distribution.owner.op.fgraph.apply_nodes, True), (built.apply_nodes, False)):
        assert any(isinstance(node.op, Scan) for node in nodes) == has_loop


def p_value(draws, probabilities, values):
    """Of a chi-square test of counts; values beyond those listed are the last one."""
    counts = np.array([np.sum(draws == value) for value in values[:-1]])
    expected = np.append(probabilities[:-1], 1.0 - np.sum(probabilities[:-1])) * draws.size
    return stats.chisquare(np.append(counts, draws.size - counts.sum()), expected).pvalue


@pytest.mark.parametrize(("lower", "upper"), [(1, None), (None, 2), (2, 6), (3, 3)])
def test_counts_have_the_truncated_law(lower, upper):
    """Of a Poisson law of mean 1.3, skewed; a wrong bound is seen."""
    draws = drawn(pm.Truncated.dist(pm.Poisson.dist(1.3), lower=lower, upper=upper, size=N))
    low, high = 0 if lower is None else lower, 8 if upper is None else upper
    values = np.arange(low, high + 1)
    law = stats.poisson(1.3).pmf(values)
    assert draws.min() >= low
    assert upper is None or draws.max() <= upper
    if len(values) > 1:
        assert p_value(draws, law / law.sum(), values) > LEVEL
        wrong = stats.poisson(1.4).pmf(values)
        assert p_value(draws, wrong / wrong.sum(), values) < LEVEL


def test_each_value_has_its_own_parameters_and_bounds():
    """Rows of means, one that is mostly outside, and columns of bounds."""
    means, lower = np.array([[0.6], [3.0]]), np.array([1, 2, 4])
    draws = drawn(pm.Truncated.dist(pm.Poisson.dist(means), lower=lower, size=(N // 8, 2, 3)))
    assert draws.shape == (N // 8, 2, 3)
    for row in range(2):
        for column in range(3):
            values = np.arange(lower[column], lower[column] + 3)
            law = stats.poisson(means[row, 0])
            probabilities = law.pmf(values) / law.sf(lower[column] - 1)
            assert p_value(draws[:, row, column], probabilities, values) > LEVEL


def test_a_continuous_law():
    """Of Wald, which has no inverse in PyMC."""
    draws = drawn(pm.Truncated.dist(pm.Wald.dist(1.0, 2.0), lower=0.5, upper=2.0, size=N))
    law = stats.invgauss(0.5, scale=2.0)

    def inside(x):
        return (law.cdf(x) - law.cdf(0.5)) / (law.cdf(2.0) - law.cdf(0.5))

    assert stats.kstest(draws, inside).pvalue > LEVEL
    assert stats.kstest(draws, law.cdf).pvalue < LEVEL


TAILS = {
    "Beta": (pm.Beta, {"alpha": 2.0, "beta": 30.0}),
    "Cauchy": (pm.Cauchy, {"alpha": 1.0, "beta": 2.0}),
    "Exponential": (pm.Exponential, {"lam": 3.0}),
    "Gamma": (pm.Gamma, {"alpha": 0.5, "beta": 3.0}),
    "Gumbel": (pm.Gumbel, {"mu": 1.0, "beta": 2.0}),
    "HalfCauchy": (pm.HalfCauchy, {"beta": 2.0}),
    "HalfNormal": (pm.HalfNormal, {"sigma": 2.0}),
    "InverseGamma": (pm.InverseGamma, {"alpha": 3.0, "beta": 2.0}),
    "Laplace": (pm.Laplace, {"mu": 1.0, "b": 2.0}),
    "LogNormal": (pm.LogNormal, {"mu": 1.0, "sigma": 0.5}),
    "Logistic": (pm.Logistic, {"mu": 1.0, "s": 2.0}),
    "Pareto": (pm.Pareto, {"alpha": 3.0, "m": 2.0}),
    "StudentT": (pm.StudentT, {"nu": 3.0, "mu": 1.0, "sigma": 2.0}),
    "Weibull": (pm.Weibull, {"alpha": 2.0, "beta": 3.0}),
}


@pytest.mark.parametrize("name", TAILS)
def test_draws_far_above_the_median_are_those_of_the_tail(name):
    """Where one in 1e10 comes, and one in 1e25; PyMC's own draws there are infinite, or on a coarse grid."""
    make, parameters = TAILS[name]
    law = SCIPY[type(make.dist(**parameters).owner.op)](
        *(
            float(one.eval(mode="FAST_COMPILE"))
            for one in make.dist(**parameters).owner.op.dist_params(make.dist(**parameters).owner)
        )
    )
    for share in (1e-10, 1e-25):
        lower = float(law.isf(share))
        draws = drawn(pm.Truncated.dist(make.dist(**parameters), lower=lower, size=2000))
        assert (draws >= lower).all()
        rises = [
            float(pm.logp(make.dist(**parameters), at).eval(mode="FAST_COMPILE")) - law.logpdf(at)
            for at in (lower, np.median(draws))
        ]
        assert rises[0] == pytest.approx(rises[1], abs=1e-5)  # SciPy's law is PyMC's
        assert stats.kstest(law.sf(draws) / share, "uniform").pvalue > LEVEL


def test_hurdle_counts():
    """Zero or a truncated count, as a mixture; parameters differ by row."""
    psi, mu = np.array([0.3, 0.8]), np.array([0.4, 2.0])
    draws = drawn(pm.HurdlePoisson.dist(psi=psi, mu=mu, size=(N, 2)))
    for column in range(2):
        values = np.arange(7)
        law = stats.poisson(mu[column]).pmf(values) / stats.poisson(mu[column]).sf(0) * psi[column]
        law[0] = 1.0 - psi[column]
        assert p_value(draws[:, column], law, values) > LEVEL


@pytest.mark.parametrize("lower", [12, 1000])
def test_counts_that_are_hardly_ever_inside_are_drawn(lower):
    """A count of mean 3 that is 12 or more one time in 14,000, and one that no number of tries would find."""
    assert drawn(pm.Truncated.dist(pm.Poisson.dist(3.0), lower=lower)) >= lower


@pytest.mark.parametrize(
    ("law", "lower", "reason"),
    [
        (pm.Wald.dist(1.0, 2.0), 1000.0, "did not converge in 100 steps"),
        (pm.Exponential.dist(1.0), 1000.0, "probability between the bounds is zero"),
    ],
)
def test_what_cannot_be_drawn_is_named(law, lower, reason):
    graph = detach([pm.Truncated.dist(law, lower=lower, max_n_steps=100, size=3)])
    with pytest.raises(pm.exceptions.TruncationError, match=reason):
        interpret_function(graph.generators, graph.outputs)(*(np.random.default_rng(1) for _ in graph.generators))
