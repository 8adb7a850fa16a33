"""Canary: every private name of PyMC that bread uses, tried against what it is used for.

Where one fails, the message says which version of PyMC broke it: mend `bread.backends.pymc.internals`, or lower the
upper bound of PyMC in pyproject.toml.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cloudpickle
import numpy as np
import pytest
from pytest import MonkeyPatch

pm = pytest.importorskip("pymc")

from pymc.blocking import RaveledVars  # noqa: E402
from pymc.step_methods.compound import Competence  # noqa: E402
from pymc.step_methods.hmc.integration import CpuLeapfrogIntegrator, IntegrationError  # noqa: E402
from pymc.step_methods.hmc.quadpotential import (  # noqa: E402
    QuadPotentialDiag,
    QuadPotentialDiagAdapt,
    QuadPotentialFull,
)

from bread.backends.pymc import internals  # noqa: E402
from bread.backends.pymc.correlated import Correlation, FrozenMetric  # noqa: E402
from bread.backends.pymc.density.density import TemperedDensity  # noqa: E402
from bread.backends.pymc.density.gradients import TemperedGradient  # noqa: E402
from bread.backends.pymc.density.tempered_model import TemperedModel  # noqa: E402
from bread.backends.pymc.versions import seed_step  # noqa: E402
from tests.support.pymc_layout import layout_of  # noqa: E402

pytestmark = pytest.mark.pymc


class Unpicklable:
    def __reduce__(self) -> Any:
        raise TypeError("a pickled step holds the user's model")


def small() -> Any:
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1)
        pm.Normal("y", x, 2.0, observed=0.7)
    return model


def hmc(**options: Any) -> Any:
    """Return an HMC step on the tempered density of a small model, seeded."""
    model = small()
    layout = layout_of(model)
    view = TemperedModel.view(model, TemperedDensity(model, layout), {"x": np.zeros(())})
    view.secret = Unpicklable()
    with view:
        step = pm.HamiltonianMC(vars=view.value_vars, model=view, **options)
    seed_step(step, np.random.default_rng(1))
    step.tune = False
    return step


def try_model_is_forgotten() -> None:
    step = hmc(step_rand=None)
    internals.leave_out_details(step)
    with pytest.raises(TypeError, match="holds the user's model"):
        cloudpickle.dumps(step)
    internals.forget_model(step)
    copy = cloudpickle.loads(cloudpickle.dumps(step))
    assert type(copy) is pm.HamiltonianMC


def try_competence() -> None:
    with pm.Model():
        x, z = pm.Normal("x"), pm.Bernoulli("z", 0.3)
    assert internals.competence(pm.BinaryGibbsMetropolis, x, True) == Competence.INCOMPATIBLE
    assert internals.competence(pm.BinaryGibbsMetropolis, z, False) != Competence.INCOMPATIBLE


def try_details() -> None:
    step = hmc(step_rand=None)
    step._logp_dlogp_func.function = lambda position: (np.array(np.nan), np.zeros(1), np.array(0.0))  # noqa: SLF001
    internals.leave_out_details(step)
    with pytest.raises(pm.exceptions.SamplingError, match="Bad initial energy"):
        step.step({"x": np.zeros(())})


def try_gradient() -> None:
    step = hmc(step_rand=None)
    gradient = internals.gradient_of(step)
    assert isinstance(gradient, TemperedGradient)
    step.step({"x": np.zeros(())})
    assert len(gradient.trail) > 1  # every step of the trajectory went through it


def try_callable_gradient() -> None:
    """The integrator calls an object of the class as its own function: the kinetic and potential energy are right."""
    step = hmc(step_rand=None)
    state = step.integrator.compute_state(RaveledVars(np.array([0.4]), (("x", (), 1, np.float64),)), np.array([0.3]))
    expected = -0.5 * 0.4**2 - 0.5 * ((0.7 - 0.4) / 2) ** 2 - np.log(2 * np.pi) - np.log(2.0)
    assert state.model_logp == pytest.approx(expected, rel=1e-8)
    np.testing.assert_allclose(state.q_grad, [-0.4 + (0.7 - 0.4) / 4], rtol=1e-8)


def try_dual_averaging() -> None:
    found = internals.read_dual_averaging(hmc(step_scale=0.3, target_accept=0.77, gamma=0.06, k=0.7, t0=9))
    assert found[1:] == (0.77, 0.06, 0.7, 9)
    assert found.initial_step == pytest.approx(0.3)  # over the fourth root of the dimension, 1
    assert found.start(0.2).current(True) == pytest.approx(0.2)


def try_step_size() -> None:
    """A trajectory of length 2 in steps of 0.01 keeps the energy; in one step of 2 it does not."""
    errors = {}
    for size in (0.01, 2.0):
        step = hmc(step_rand=None)
        internals.set_log_step_size(step, np.log(size))
        assert internals.read_log_step_size(step) == np.log(size)
        _, (statistics,) = step.step({"x": np.array(1.0)})
        errors[size] = abs(statistics["energy_error"])
        assert statistics["n_steps"] == pytest.approx(2.0 / size, abs=1)
    assert errors[0.01] < 1e-3 < errors[2.0]


def try_jitter() -> None:
    step = hmc()
    assert internals.step_size_rule(step) is not None  # PyMC's default
    internals.remove_default_jitter(step)
    assert internals.step_size_rule(step) is None

    def rule(size: float) -> float:
        return size

    step = hmc(step_rand=rule)
    internals.remove_default_jitter(step)
    assert internals.step_size_rule(step) is rule


def try_metric() -> None:
    step = hmc(step_rand=None)
    internals.set_metric(step, QuadPotentialDiag(np.array([4.0])))
    position = RaveledVars(np.array([0.4]), (("x", (), 1, np.float64),))
    state = step.integrator.compute_state(position, np.array([0.3]))
    np.testing.assert_allclose(state.v, [1.2])  # variance times momentum, in the integrator
    assert state.energy + state.model_logp == pytest.approx(0.5 * 0.3 * 1.2)


def try_adapted_variance() -> None:
    potential = QuadPotentialDiagAdapt(2, np.zeros(2), np.array([3.0, 5.0]), initial_weight=10)
    np.testing.assert_array_equal(internals.adapted_variance(potential), [3.0, 5.0])


def try_history() -> None:
    step = hmc(step_rand=None)
    internals.set_log_step_size(step, np.log(500.0))
    for name in ("iter_count", "divergences", "_num_divs_sample"):
        assert hasattr(step, name), name  # or it would be set in vain
    for _ in range(3):
        step.step({"x": np.array(1.0)})
    assert step.divergences == 3
    assert step.iter_count == 3
    internals.forget_history(step)
    assert (step.iter_count, step.divergences, step.step_adapt._tuned_stats) == (0, 0, [])  # noqa: SLF001
    _, (statistics,) = step.step({"x": np.array(1.0)})
    assert statistics["warning"] is None or statistics["warning"].divergence_point_source is None  # no copy


class Skewed(internals.CallableGradient):
    """A density of five coordinates with an asymmetric gradient, which is a view with strides."""

    dtype = "float64"

    def __call__(self, position: Any) -> Any:
        if position[0] > 4.0:
            raise ValueError("array must not contain infs or nans")
        gradient = np.zeros((5, 2))
        gradient[:, 0] = -np.exp(position / 3.0) + 0.3 * np.roll(position, 1)
        return float(-(position**2).sum() / 7.0), gradient[:, 0]


def try_leapfrog() -> None:
    """The same bits as PyMC's integrator at every step in both directions, for every potential, and its errors."""
    gradient, rng = Skewed({}), np.random.default_rng(3)
    variance = np.array([0.3, 1.7, 0.9, 2.2, 0.1])
    dense = FrozenMetric(variance, Correlation(np.eye(5) * 0.7 + 0.3, np.float64), "float64")
    for potential in (QuadPotentialDiag(variance), QuadPotentialFull(np.eye(5) + 0.3), dense):
        integrators = [kind(potential, gradient) for kind in (CpuLeapfrogIntegrator, internals.Leapfrog)]
        start = RaveledVars(rng.normal(size=5), (("x", (5,), 5, "float64"),))
        states = [one.compute_state(start, np.arange(5) / 7.0) for one in integrators]
        for size in (0.11, -0.07, np.asarray(0.23), -np.asarray(0.19)) * 10:
            states = [one.step(size, state) for one, state in zip(integrators, states, strict=True)]
            theirs, ours = states
            assert theirs.q.data.tobytes() == ours.q.data.tobytes() and theirs.q.point_map_info == ours.q.point_map_info
            for name in ("p", "v", "q_grad"):
                assert getattr(theirs, name).tobytes() == getattr(ours, name).tobytes(), name
            assert (theirs.energy, theirs.model_logp) == (ours.energy, ours.model_logp)
            assert theirs.index_in_trajectory == ours.index_in_trajectory
        far = RaveledVars(np.full(5, 3.9), start.point_map_info)
        for one in integrators:
            with pytest.raises(IntegrationError):
                one.step(0.5, one.compute_state(far, np.full(5, 9.0)))


def try_use_leapfrog() -> None:
    """A trajectory is the same with either, and one that is not PyMC's own stays."""
    positions = []
    for is_ours in (False, True):
        step = hmc(step_rand=None)
        if is_ours:
            internals.use_leapfrog(step, internals.gradient_of(step))
        assert (type(step.integrator) is internals.Leapfrog) == is_ours
        point: Any = {"x": np.array(0.4)}
        for _ in range(20):
            point, _ = step.step(point)
        positions.append(float(point["x"]))
    assert positions[0] == positions[1]
    step.integrator = own = object()
    internals.use_leapfrog(step, internals.gradient_of(step))
    assert step.integrator is own


def try_random() -> None:
    with pm.Model():
        without = pm.CustomDist("a", logp=lambda value: -(value**2))
        drawn = pm.CustomDist("b", logp=lambda value: -(value**2), random=lambda rng=None, size=None: rng.normal())
    assert internals.lacks_random(without.owner.op)
    assert not internals.lacks_random(drawn.owner.op)


def try_default_transform() -> None:
    with pm.Model():
        x, scale = pm.Normal("x"), pm.HalfNormal("scale")
    assert internals.default_transform(x) is None
    assert internals.default_transform(scale).name == "log"


def try_registered() -> None:
    kind = type(pm.Normal.dist().owner.op)
    assert all(callable(one) for one in internals.registered_for(kind)[:2])  # its density and distribution function
    assert internals.registered_for(kind) != internals.registered_for(type("Own", (), {}))


TRIED: dict[Callable[[], None], tuple[str, ...]] = {
    try_model_is_forgotten: ("forget_model",),
    try_competence: ("competence",),
    try_details: ("leave_out_details",),
    try_gradient: ("gradient_of",),
    try_callable_gradient: ("CallableGradient",),
    try_dual_averaging: ("read_dual_averaging", "DualAveraging"),
    try_step_size: ("set_log_step_size", "read_log_step_size"),
    try_jitter: ("step_size_rule", "remove_default_jitter"),
    try_metric: ("set_metric",),
    try_adapted_variance: ("adapted_variance",),
    try_history: ("forget_history",),
    try_leapfrog: ("Leapfrog",),
    try_use_leapfrog: ("use_leapfrog",),
    try_random: ("lacks_random",),
    try_default_transform: ("default_transform",),
    try_registered: ("registered_for",),
}


def run(attempt: Callable[[], None]) -> None:
    """Run one attempt; where it fails, say which version of PyMC broke which names."""
    try:
        attempt()
    except (Exception, pytest.fail.Exception) as error:
        names = ", ".join(TRIED[attempt])
        pytest.fail(f"PyMC {pm.__version__} broke {names} of bread.backends.pymc.internals: {error!r}")


@pytest.mark.parametrize("attempt", TRIED, ids=lambda attempt: attempt.__name__.removeprefix("try_"))
def test_private_names_do_what_they_are_used_for(attempt: Callable[[], None]) -> None:
    run(attempt)


def test_all_of_them_are_tried() -> None:
    assert sorted(name for names in TRIED.values() for name in names) == sorted(internals.__all__)


@pytest.mark.parametrize(
    ("attempt", "name"),
    [(try_metric, "set_metric"), (try_jitter, "remove_default_jitter"), (try_step_size, "set_log_step_size")],
)
def test_a_name_that_no_longer_does_it_is_reported(attempt: Any, name: str, monkeypatch: MonkeyPatch) -> None:
    """Negative control: as if PyMC read another attribute than the one that is set."""
    monkeypatch.setattr(internals, name, lambda *arguments: None)
    with pytest.raises(pytest.fail.Exception, match=rf"PyMC {pm.__version__} broke .*{name}"):
        run(attempt)
