"""Every distribution of PyMC: draws as bread makes them against PyMC's density, at ordinary and edge parameters."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

from bread.backends.pymc.density.compiling import detach, interpret_function, interpreted
from bread.backends.pymc.density.node_terms import NodeTerms
from bread.backends.pymc.known_bugs import find_known_bugs
from bread.backends.pymc.model.reading import read_layout
from bread.backends.pymc.simulation.prior_graph import prior_graph
from bread.backends.pymc.simulation.restricted import read_restrictions
from tests.support.distribution_tests import LEVEL, Bins, Counts, integral_z
from tests.support.pymc_distributions import CONTINUOUS, COUNTS, JOINT, NOT_DRAWN, TABLES

pytestmark = [pytest.mark.pymc, pytest.mark.statistical, pytest.mark.filterwarnings("ignore")]

N = 4000
MOST_SDS = 5.0  # of three integrals
BUILT = {
    name for name in (*CONTINUOUS, *COUNTS) if name.startswith(("Hurdle", "Mixture", "Truncated,", "ZeroInflated"))
}


def drawn(outputs, seed=1):
    graph = detach(outputs)
    function = interpret_function(graph.generators, graph.outputs)
    return function(*(np.random.default_rng([seed, number]) for number in range(len(graph.generators))))


def density(law, values):
    """Log densities of values (n, ...) of a law, (n, columns)."""
    value = pt.tensor("value", shape=(None,) * values.ndim, dtype=str(values.dtype))
    with interpreted():
        graph = detach([pm.logp(law, value)])
        function = pm.pytensorf.compile(
            [*graph.generators, value], graph.outputs, mode=Mode("vm", "fast_compile"), on_unused_input="ignore"
        )
    return np.asarray(function(*(np.random.default_rng(0) for _ in graph.generators), values)[0])


def cells(make, rows):
    """Draws, (n, columns), and the log density as a function of points of the same columns."""
    n = len(rows)
    at = {name: np.reshape(values, (-1, *[1] * (n - 1 - i))) for i, (name, values) in enumerate(rows.items())}
    shape = np.broadcast_shapes(*(values.shape for values in at.values()))
    make = getattr(make, "dist", make)
    (draws,) = drawn([make(size=(N, *shape), **at)])

    def log_density(points):
        return density(make(**at), points.reshape(-1, *shape)).reshape(points.shape)

    return draws.reshape(N, -1), log_density


def named(table):
    return [pytest.param(name, marks=pytest.mark.slow if name in BUILT else ()) for name in table]


@pytest.mark.parametrize("name", named(CONTINUOUS))
def test_continuous_draws_follow_their_density(name):
    make, rows = CONTINUOUS[name]
    draws, log_density = cells(make, rows)
    bins = Bins(draws)
    found = bins.p_values(log_density(bins.at))
    model = pm.Model()
    model.register_rv(getattr(make, "dist", make)(**{key: values[-1] for key, values in rows.items()}), "x")
    is_known = bool(find_known_bugs(model, pm.__version__))
    assert np.isfinite(found).all() and (found.min() < LEVEL) == is_known, found


@pytest.mark.parametrize("name", named(COUNTS))
def test_counts_follow_their_mass_function(name):
    draws, log_mass = cells(*COUNTS[name])
    counts = Counts(draws)
    assert counts.p_values(log_mass(counts.at)).min() > LEVEL


@pytest.mark.parametrize("name", TABLES)
def test_counts_of_many_categories_follow_their_mass_function(name):
    make, values = TABLES[name]
    (draws,) = drawn([make((N,))])
    log_mass = density(make(None), values)
    assert np.exp(log_mass).sum() == pytest.approx(1.0)
    counts = Counts(np.argmax((draws[:, None] == values).all(axis=2), axis=1)[:, None], 0, len(values) - 1)
    assert counts.p_values(log_mass[counts.at]).min() > LEVEL


def states_of(model):
    """Unconstrained draws of all free variables, as bread makes them; (n, dim)."""
    prior = prior_graph(model, read_restrictions(model))
    many = prior.draw_many()
    try:
        values = many.call(np.int64(N), *(np.random.default_rng([1, i]) for i in range(many.n_generators)))
        return np.concatenate([value.reshape(N, -1) for value in values], axis=1)
    except Exception:  # what bread draws one by one
        function = interpret_function(prior.generators, prior.values)
        streams = [[np.random.default_rng([row, i]) for i in range(len(prior.generators))] for row in range(N)]
        return np.array([np.concatenate([np.ravel(value) for value in function(*each)]) for each in streams])


@pytest.mark.slow
@pytest.mark.parametrize("name", JOINT)
def test_draws_of_many_coordinates_follow_their_density(name):
    """A density that is known to be off by a constant, or not to be that of the draws, fails, and no other."""
    with pm.Model() as model:
        JOINT[name]()
    terms = NodeTerms(model, read_layout(model, model.initial_point()))
    found = integral_z(states_of(model), lambda states: terms("x", states).sum(axis=1))
    assert (np.abs(found).max() > MOST_SDS) == bool(find_known_bugs(model, pm.__version__)), found


def test_every_distribution_of_pymc_is_in_a_table():
    tables = {name.split(",")[0] for name in (*CONTINUOUS, *COUNTS, *JOINT, *TABLES)}
    known = set(pm.distributions.__all__) - NOT_DRAWN - {"PolyaGamma", "Wishart"}  # these in some environments
    assert not known - tables and not tables - set(pm.distributions.__all__)


def test_other_laws_are_seen():
    draws, log_density = cells(*CONTINUOUS["Normal"])
    bins = Bins(1.1 * draws)
    assert bins.p_values(log_density(bins.at)).min() < LEVEL
    assert Bins(draws).p_values(log_density(Bins(draws).at) + 0.2).max() < LEVEL  # not normalised
    draws, log_mass = cells(*COUNTS["DiscreteUniform"])
    assert Counts(draws + 1).p_values(log_mass(Counts(draws + 1).at)).max() < LEVEL
