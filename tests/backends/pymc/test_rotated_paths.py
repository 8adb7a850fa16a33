"""A PyMC model that rotations leave alone: its reference, the evidence along it, and the whole check."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest
from numpy.random import SeedSequence
from scipy import integrate, stats

import bread
from bread.backends import open_model
from bread.backends.base import Kernel, OpenOptions
from bread.fitting.search.before_chains import finds_reference
from bread.fitting.search.reference_fit import FitRequest, fit_reference
from bread.fitting.symmetries.find_rotations import rotatable
from bread.paths.kinds import ROUND_DEPTH, ReferencePath
from bread.paths.mixture import diagonal
from bread.paths.rotated import RotatedReference, gauge_at
from bread.report.compat import read_group

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]

DISTANCE, NOISE, WIDTH = 3.0, 0.2, 2.0


def ring() -> pm.Model:
    """A point in the plane, by the names of its axes, whose distance from the origin was measured."""
    with pm.Model(coords={"axis": ["east", "north"]}) as model:
        at = pm.Normal("at", 0.0, WIDTH, dims="axis")
        pm.Normal("y", pm.math.sqrt((at**2).sum()), NOISE, observed=np.array([DISTANCE]))
    return model


def log_evidence() -> float:
    def density(r: float) -> float:
        return r / WIDTH**2 * np.exp(-0.5 * (r / WIDTH) ** 2) * stats.norm.pdf(DISTANCE, r, NOISE)

    return float(np.log(integrate.quad(density, 0.0, 10.0, points=[DISTANCE])[0]))


def test_the_evidence_along_a_reference_across_rotations_is_exact():
    model = open_model(ring(), OpenOptions())
    layout = model.info.layout
    request = FitRequest(layout.dim, layout.may_be_scale, 60, rotatable=rotatable(layout))
    posterior = model.condition(model.info.data.observed)
    assert finds_reference(posterior, request, root=1, simulation=-2)[0]
    fit = fit_reference(posterior, request, root=1, simulation=-2)
    assert fit.family == "rotated" and fit.criterion["rotated"] < 0.2
    path = ReferencePath(fit.reference)
    kernel = Kernel(np.array([1.0]), {name: np.asarray(value)[None] for name, value in fit.settings.items()})
    n, betas = 60, np.linspace(0.0, 1.0, 6)
    start, seeds = posterior.draw_base(path, SeedSequence(1).spawn(n)), SeedSequence(2).spawn(n)
    run = posterior.anneal(path, betas, kernel, direction="forward", initial=start, seeds=seeds)
    weight = np.exp(run.log_weight - log_evidence())
    # within 4 standard errors, which are small; and the control: 0.1 nats more would not be
    error = weight.std(ddof=1) / np.sqrt(n)
    assert error < 0.02
    assert abs(weight.mean() - 1.0) < 4.0 * error < abs(weight.mean() * np.exp(0.1) - 1.0)


def gradients_a_transition(kernel, *references):
    """Of chains with short steps along each path in turn."""
    model = open_model(ring(), OpenOptions(kernel=kernel))
    posterior = model.condition(model.info.data.observed)
    short = Kernel(np.array([1.0]), {"step_size": np.array([0.01]), "inverse_metric": np.ones((1, 2))})
    state, steps = np.array([2.0, 2.2]), range(1, 11)
    runs = [posterior.evolve(ReferencePath(one), short, 0.5, state, steps, SeedSequence(4)) for one in references]
    return [run.n_gradients / len(steps) for run in runs]


def test_trajectories_of_nuts_are_short_across_rotations_unless_a_limit_is_set():
    """At most 2^4 gradients a transition, and the first; whatever path came before. Control: another reference."""
    rotated = RotatedReference(gauge_at(np.array([[0], [1]]), np.array([2.0, 2.2])), diagonal(np.ones(1), np.ones(1)))
    other = diagonal(np.zeros(2), np.full(2, 3.0))
    first, between, again = gradients_a_transition(None, rotated, other, rotated)
    assert first == again <= 2**ROUND_DEPTH + 1 < between
    (limited,) = gradients_a_transition(lambda model: pm.NUTS(max_treedepth=6, model=model), rotated)
    assert 2**ROUND_DEPTH + 1 < limited <= 2**6 + 1


@pytest.mark.slow
def test_a_check_of_a_ring_needs_few_temperatures():
    """Along the prior path V is above 0.1 at hundreds of temperatures."""
    report = bread.check(
        ring(), simulate_from="prior", path="reference", n_temperatures=16, simulations=20, chains=4, draws=0,
        random_seed=1, cores=1, progressbar=False,
    )  # fmt: skip
    assert "uniform over rotations in 2 dimensions" in read_group(report, "reference").attrs["label"]
    assert bread.summary(report, kind="bounds")["error_limit"].iloc[-1] <= 0.1
