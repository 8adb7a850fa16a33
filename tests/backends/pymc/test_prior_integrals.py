"""Integrals of priors on PyMC: LKJ densities by version, custom densities, and what is not integrated at all."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.raise_op import Assert
from scipy.stats import norm

import bread
from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.backends.pymc.density.node_terms import NodeTerms
from bread.backends.pymc.model.normalised import log_integral
from bread.backends.pymc.model.reading import read_layout
from bread.backends.pymc.simulation.restricted import read_restrictions
from bread.report.compat import read_group
from bread.running.exactness.prior_integrals import prior_integrals

pytestmark = [pytest.mark.pymc, pytest.mark.statistical]
Y = np.array([0.4, 1.1, -0.3])
STANDARD_ERRORS = 4.0
IS_LKJ_RIGHT = int(pm.__version__.split(".")[0]) >= 6


def draw(mean, sd, rng=None, size=None):
    return rng.normal(mean, sd, size=size)


def short_of_log_two(value, mean, sd):
    return pm.logp(pm.Normal.dist(mean, sd), value) - np.log(2.0)


def short_of_its_scale(value, mean, sd):
    return -0.5 * ((value - mean) / sd) ** 2 - 0.5 * np.log(2.0 * np.pi)  # lacks -log(sd)


def sound(value, mean, sd):
    return pm.logp(pm.Normal.dist(mean, sd), value)


def opened(model):
    return open_model(model, OpenOptions(simulate_from="prior"))


def known(model):
    """Return what is known of the integral of each free variable."""
    restrictions, shapes = read_restrictions(model), model.eval_rv_shapes()
    return {one.name: log_integral(one, shapes[one.name], restrictions) for one in model.free_RVs}


def integrals(model, seed=1):
    one = opened(model)
    nodes = [node for node in one.nodes() if node.kind != "data" and node.log_integral != 0.0]
    return prior_integrals(one, nodes, seed)


def custom(logp):
    with pm.Model() as model:
        sd = pm.HalfNormal("sd", 1.0)
        pm.CustomDist("theta", 0.0, sd, logp=logp, random=draw, shape=2)
        pm.Normal("y", 0.0, 1.0, observed=Y)
    return model


def correlation():
    with pm.Model() as model:
        pm.LKJCorr("corr", n=2, eta=2.0)
        pm.Normal("y", 0.0, 1.0, observed=Y)
    return model


def cholesky():
    with pm.Model() as model:
        pm.LKJCholeskyCov("chol", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0), compute_corr=False)
        pm.Normal("y", 0.0, 1.0, observed=Y)
    return model


@pytest.mark.parametrize("build", [correlation, pytest.param(cholesky, marks=pytest.mark.slow)])
def test_lkj_densities_of_two_dimensions(build):
    """Before PyMC 6 they integrate to exp(0.575), as a grid says of LKJCorr; since, to 1."""
    found = integrals(build())
    (one,) = found.integrals
    assert one.standard_error < 0.03
    assert found.is_named(one) != IS_LKJ_RIGHT
    expected = 0.0 if IS_LKJ_RIGHT else 0.575364
    assert abs(one.log_integral - expected) < STANDARD_ERRORS * one.standard_error


@pytest.mark.slow
def test_custom_densities():
    with pm.Model() as model:
        sd = pm.HalfNormal("sd", 1.0)
        for name, logp in (("right", sound), ("short", short_of_log_two), ("wrong", short_of_its_scale)):
            pm.CustomDist(name, 0.0, sd, logp=logp, random=draw, shape=2)
        pm.Normal("y", 0.0, 1.0, observed=Y)
    found = integrals(model)
    right, short, wrong = found.integrals
    assert not found.is_named(right) and not found.varies(right)
    assert found.is_named(short) and short.standard_error < 0.02
    assert abs(short.log_integral + 2.0 * np.log(2.0)) < STANDARD_ERRORS * short.standard_error
    assert found.varies(wrong) and not found.is_named(wrong)
    assert found.log_constant == short.log_integral


OTHERS = {
    "simplices": lambda: pm.Dirichlet("x", np.ones((2, 3))),
    "truncated": lambda: pm.Truncated("x", pm.Normal.dist(pm.Normal("mean"), 1.0), lower=0.0, upper=2.0),
    "mixture": lambda: pm.NormalMixture("x", w=[0.3, 0.7], mu=[-3.0, 2.0], sigma=[1.0, 0.5]),
    "walk": lambda: pm.GaussianRandomWalk("x", sigma=1.0, init_dist=pm.Normal.dist(), steps=5),
    "grid": lambda: pm.Interpolated("x", np.linspace(-4, 4, 100), norm.pdf(np.linspace(-4, 4, 100))),
    "sum of zero": lambda: pm.ZeroSumNormal("x", shape=4),
    "matrix": lambda: pm.MatrixNormal("x", mu=np.zeros((2, 2)), rowcov=np.eye(2), colcov=np.eye(2)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_other_priors_that_are_integrated_are_sound(name):
    with pm.Model() as model:
        OTHERS[name]()
        pm.Normal("y", 0.0, 1.0, observed=Y)
    found = integrals(model)
    assert [one.variable for one in found.integrals] == ["x"]
    assert not any(found.is_named(one) or found.varies(one) for one in found.integrals)


def test_sorted_vectors_have_a_known_constant():
    with pm.Model() as model:
        pm.Normal("cut", 0.0, 1.0, shape=3, transform=pm.distributions.transforms.ordered, initval=[-1.0, 0.0, 1.0])
        pm.Normal("y", 0.0, 1.0, observed=Y)
    assert known(model) == {"cut": pytest.approx(-np.log(6.0))}


def test_distributions_of_pymc_itself_are_not_integrated():
    with pm.Model() as model:
        mean = pm.Normal("mean")
        sd = pm.HalfCauchy("sd", 1.0)
        pm.Gamma("rate", 2.0, 1.0)
        pm.Beta("share", 2.0, 1.0)
        pm.StudentT("robust", 4.0, mu=mean, sigma=sd)
        pm.MvNormal("both", np.zeros(2), np.eye(2))
        pm.Poisson("count", 3.0)
        pm.Normal("y", mean, sd, observed=Y)
    assert set(known(model).values()) == {0.0} and len(known(model)) == 7
    assert known(custom(sound)) == {"sd": 0.0, "theta": None}


def raises_far_out(value, mean, sd):
    return Assert("far out")(sound(value, mean, sd), pt.all(value < 5.0))


def test_densities_that_raise_are_zero_there_and_nowhere_else():
    models = [custom(logp) for logp in (sound, raises_far_out)]
    right, raising = (NodeTerms(one, read_layout(one, one.initial_point())) for one in models)
    states = np.array([[0.0, 0.1, 0.2], [0.0, 9.0, 9.0], [0.0, -0.2, 0.5]])
    expected = right("theta", states)
    expected[1] = -np.inf
    np.testing.assert_allclose(raising("theta", states), expected, rtol=1e-12)
    with pytest.raises(AssertionError, match="far out"):  # no state at all has a density
        raising("theta", states[1:2])


def conjugate(logp):
    with pm.Model() as model:
        theta = pm.CustomDist("theta", 0.5, 1.5, logp=logp, random=draw)
        pm.Normal("y", theta, 1.0, observed=Y)
    return model


def check(model, path, **arguments):
    settings = {"n_temperatures": 8, "simulations": 4, "chains": 2, "draws": 0, "tune": 100, "cores": 1}
    return bread.check(
        model, path=path, simulate_from="prior", random_seed=2, tune_on="shared", progressbar=False, **settings
    )


def exact_evidence(data):
    precision = 3.0 + 1.0 / 1.5**2
    offset = data - 0.5
    sums = offset.sum(axis=1)
    quadratic = (offset**2).sum(axis=1) - sums**2 / precision
    return -1.5 * np.log(2.0 * np.pi) - 0.5 * np.log(precision * 1.5**2) - 0.5 * quadratic


@pytest.mark.slow
@pytest.mark.parametrize("logp", [short_of_log_two, sound])
def test_log_evidence_along_a_reference_path_is_that_of_the_normalised_prior(logp, tmp_path):
    """Weights from a Gaussian reference are almost the evidence here; log 2 off would be seen."""
    report = check(conjugate(logp), "reference")
    weights = read_group(report, "forward")["log_weight"].isel(n_temperatures=-1).values
    exact = exact_evidence(read_group(report, "simulated_data")["y"].values)
    np.testing.assert_allclose(weights.mean(axis=1), exact[: len(weights)], atol=0.15)
    group = read_group(report, "prior_integrals")
    is_short = logp is short_of_log_two
    assert bool(group["is_named"].values[0]) == is_short
    assert int(read_group(report, "cost")["n_gradients"].sel(phase="prior integrals")) > 0
    verdict = bread.verdict(report)
    assert verdict.status != "bug"
    assert ("Priors that do not integrate to one: the density of theta to exp(-0.69" in verdict.details) == is_short
    assert ("log_constant" in bread.summary(report, kind="bounds")) == is_short
    assert ("integrates to exp(-0.69" in report.attrs["notes"]) == is_short
    report.to_netcdf(tmp_path / "report.nc")
    assert str(bread.verdict(tmp_path / "report.nc")) == str(verdict)


@pytest.mark.slow
def test_a_constant_that_varies_is_a_bug_and_is_named():
    verdict = bread.verdict(check(custom(short_of_its_scale), "prior"))
    assert verdict.status == "bug"
    assert "the density of theta integrates to exp(" in verdict.details or "exact draws fails" in verdict.details


@pytest.mark.slow
def test_nothing_is_run_where_every_prior_is_known():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("theta"), 1.0, observed=Y)
    report = check(model, "prior")
    assert read_group(report, "prior_integrals") is None
    assert "prior integrals" not in read_group(report, "cost")["phase"].values


ADJACENT = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0.0]])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Known defect of PyMC")
def test_a_constant_that_a_density_leaves_out_is_found():
    """PyMC's CAR density lacks one (5.28.5 and 6.4.0); bread's draws of it follow the density, PyMC's do not."""
    with pm.Model() as model:
        pm.CAR("phi", np.zeros(3), ADJACENT, alpha=0.5, tau=1.0)
        pm.Normal("y", 0.0, 1.0, observed=Y)
    found = integrals(model)
    (one,) = found.integrals
    constant = 1.5 * np.log(2.0 * np.pi) - 0.5 * np.log(2.0)  # and log |D|, of (1, 2, 1)
    assert not found.draws_differ(one)
    assert abs(one.log_integral - constant) < STANDARD_ERRORS * one.standard_error


@pytest.mark.slow
def test_draws_that_do_not_follow_their_density_are_a_bug_of_the_distribution():
    """Three numbers that are drawn with the square of their covariance."""
    covariance = np.linalg.inv(np.diag(ADJACENT.sum(axis=1)) - 0.5 * ADJACENT)
    with pm.Model() as model:
        pm.CustomDist(
            "phi",
            np.zeros(3),
            logp=lambda value, mean: pm.logp(pm.MvNormal.dist(mean, covariance), value),
            random=lambda mean, rng=None, size=None: rng.multivariate_normal(mean, covariance @ covariance, size=size),
            signature="(n)->(n)",
        )
        pm.Normal("y", 0.0, 1.0, observed=Y)
    found = integrals(model)
    (one,) = found.integrals
    assert found.draws_differ(one)
    assert not found.is_named(one) and found.log_constant == 0.0
