"""PyMC's gradient steps with the correlations of a reference: exact, in the right order, and cheaper."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pm = pytest.importorskip("pymc")

from pymc.step_methods.hmc.quadpotential import QuadPotentialFull  # noqa: E402

import bread  # noqa: E402
from bread.backends import open_model  # noqa: E402
from bread.backends.base import Kernel, OpenOptions  # noqa: E402
from bread.backends.pymc.correlated import AdaptedMetric, Correlation, FrozenMetric  # noqa: E402
from bread.backends.values import CORRELATION  # noqa: E402
from bread.fitting.search.pilot_chains import run_chain  # noqa: E402
from bread.fitting.search.reference_fit import FitRequest  # noqa: E402
from bread.paths.kinds import PriorPath, ReferencePath  # noqa: E402
from bread.paths.mixture import gaussian  # noqa: E402
from bread.paths.nested import NestedReference  # noqa: E402
from bread.report.compat import read_attributes  # noqa: E402
from bread.running.pilots.tuning import moved_pilot, run_pilot, settings_of_widths, tune  # noqa: E402
from bread.running.state.plan import PathRequest  # noqa: E402

pytestmark = pytest.mark.pymc

R = np.array([[1.0, 0.9, -0.2], [0.9, 1.0, 0.1], [-0.2, 0.1, 1.0]])
VARIANCE = np.array([4.0, 0.01, 1.0])
COVARIANCE = R * np.sqrt(np.outer(VARIANCE, VARIANCE))
DIM = 12


def metrics(matrix: np.ndarray = R) -> dict[str, Any]:
    correlation = Correlation(matrix, np.float64)
    adapted = AdaptedMetric(correlation, 3, np.zeros(3), VARIANCE, initial_weight=10, dtype="float64")
    return {"frozen": FrozenMetric(VARIANCE, correlation, "float64"), "adapted": adapted}


def chain_of_levels(data: float = 3.0) -> Any:
    """A level that is walked along, seen at its end: strongly correlated coordinates, jointly normal."""
    with pm.Model() as model:
        steps = pm.Normal("start", 0.0, 1.0)
        for index in range(DIM - 1):
            steps = pm.Normal(f"level_{index}", steps, 0.1)
        pm.Normal("y", steps, 0.05, observed=data)
    return model


@pytest.mark.parametrize("kind", ["frozen", "adapted"])
def test_velocity_and_energy_are_those_of_the_whole_matrix(kind: str) -> None:
    metric, whole, p = metrics()[kind], QuadPotentialFull(COVARIANCE), np.array([0.3, -2.0, 0.7])
    np.testing.assert_allclose(metric.velocity(p), whole.velocity(p), rtol=1e-12)
    assert metric.energy(p) == pytest.approx(float(whole.energy(p)), rel=1e-12)
    out = np.empty(3)
    assert metric.velocity_energy(p, out) == pytest.approx(float(whole.energy(p)), rel=1e-12)
    np.testing.assert_array_equal(out, metric.velocity(p))
    assert metric.energy(p, velocity=out) == metric.energy(p)


@pytest.mark.parametrize("kind", ["frozen", "adapted"])
def test_momenta_have_the_inverse_of_the_whole_matrix_as_covariance(kind: str) -> None:
    """Each entry to five standard errors of 20,000 draws; control: momenta of the diagonal metric do not pass."""
    n, expected = 20_000, np.linalg.inv(COVARIANCE)
    error = np.sqrt((expected**2 + np.outer(np.diag(expected), np.diag(expected))) / n)

    def distance(metric: Any) -> float:
        metric.rng = np.random.default_rng(1)
        drawn = np.array([metric.random() for _ in range(n)])
        return float((np.abs(drawn.T @ drawn / n - expected) / error).max())

    assert distance(metrics()[kind]) < 5.0
    assert distance(metrics(np.eye(3))[kind]) > 50.0


def opened_with(names: list[str] | None = None) -> tuple[Any, Any]:
    kernel = None if names is None else lambda model: pm.NUTS([model[name] for name in names], model=model)
    opened = open_model(chain_of_levels(), OpenOptions(kernel=kernel))
    return opened, opened.condition(opened.info.data.observed)


def test_a_step_has_correlations_in_its_own_order_and_loses_them_with_the_next_kernel() -> None:
    """The matrix is given in the order of a state; here the step holds the coordinates the other way round."""
    backwards = [*(f"level_{index}" for index in reversed(range(DIM - 1))), "start"]
    opened, posterior = opened_with(backwards)
    names = list(opened.info.layout.coordinates)
    engine = posterior.load(PriorPath())
    step = engine.steps[0]
    rank = {name: index for index, name in enumerate(backwards)}
    order = [rank[name] for name in names]
    given = 0.5 ** np.abs(np.subtract.outer(order, order)) + 1e-3 * np.eye(DIM)
    settings = {"step_size": np.array(0.1), "inverse_metric": np.arange(1.0, DIM + 1.0)}
    engine.apply(1.0, {**settings, CORRELATION: given})
    held = [rank[name] for name in step.gradient.names]
    expected = 0.5 ** np.abs(np.subtract.outer(held, held)) + 1e-3 * np.eye(DIM)
    np.testing.assert_array_equal(step.step.potential.correlation.matrix, expected)
    assert held != order
    engine.apply(1.0, settings)
    assert not hasattr(step.step.potential, "correlation")
    np.testing.assert_array_equal(step.step.potential.v, settings["inverse_metric"])


def moved(posterior: Any, kernel: Kernel, starts: np.ndarray, steps: int) -> np.ndarray:
    seeds = np.random.SeedSequence(7).spawn(len(starts))
    path = PriorPath()
    return np.array(
        [posterior.evolve(path, kernel, 1.0, x, (steps,), s).states[-1] for x, s in zip(starts, seeds, strict=True)]
    )


def exact_law() -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the levels, in the order of states, which is the order of the walk."""
    increments = np.tril(np.ones((DIM, DIM))) * np.array([1.0, *[0.1] * (DIM - 1)])
    prior = increments @ increments.T
    gain = prior[:, -1] / (prior[-1, -1] + 0.05**2)
    return gain * 3.0, prior - np.outer(gain, prior[-1])


@pytest.mark.statistical
def test_the_kernel_leaves_the_posterior_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """400 exact draws, moved three times: whitened second moments to five standard errors.

    Controls: draws wider by a tenth in each direction, before they are moved, and a kernel that draws its momenta from
    another law than its energy says, are both seen.
    """
    opened, posterior = opened_with()
    assert list(opened.info.layout.coordinates) == ["start", *(f"level_{index}" for index in range(DIM - 1))]
    mean, covariance = exact_law()
    n, root = 400, np.linalg.cholesky(covariance)
    normal = np.random.default_rng(2).normal(size=(n, DIM))
    correlation = covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    settings = {"step_size": np.array([0.4]), "inverse_metric": np.diag(covariance)[None]}
    kernel = Kernel(np.array([1.0]), settings, correlation=correlation)

    def distance(states: np.ndarray) -> float:
        white = np.linalg.solve(root, (states - mean).T).T
        square = (white**2).mean() - 1.0
        return float(abs(square) / np.sqrt(2.0 / white.size))

    assert distance(moved(posterior, kernel, mean + normal @ root.T, 3)) < 5.0
    assert distance(mean + 1.1 * normal @ root.T) > 5.0
    right = FrozenMetric.random
    monkeypatch.setattr(FrozenMetric, "random", lambda self: 2.0 * right(self))
    assert distance(moved(posterior, kernel, mean + normal @ root.T, 3)) > 5.0


def pilot_on(kernel: Any) -> tuple[Any, Any, Any]:
    opened = open_model(chain_of_levels(), OpenOptions(kernel=kernel))
    posterior = opened.condition(opened.info.data.observed)
    layout = opened.info.layout
    request = PathRequest("reference", None, FitRequest(layout.dim, layout.transformed, 200))
    pilot = run_pilot(posterior, request, root=3, simulation=0, n_steps=100, shows_tail=False, source="")
    return opened, posterior, pilot


def gradients_of(posterior: Any, pilot: Any) -> float:
    seeds = np.random.SeedSequence(5).spawn(8)
    base = posterior.draw_base(pilot.path, seeds)
    betas = np.linspace(0.0, 1.0, 9)
    run = posterior.anneal(pilot.path, betas, pilot.kernel, direction="forward", initial=base, seeds=seeds)
    return float(run.n_gradients.sum())


def test_a_pilot_gives_correlations_to_the_default_kernel_alone_and_saves_gradients() -> None:
    """Less than half of the gradients of a diagonal metric; each data set has the matrix of its own reference."""
    opened, posterior, pilot = pilot_on(None)
    _, plain, named = pilot_on("nuts")
    assert posterior.takes_correlation and not plain.takes_correlation
    assert named.kernel.correlation is None
    _, covariance = exact_law()
    expected = covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    np.testing.assert_allclose(pilot.kernel.correlation, expected, atol=0.15)
    assert 2.0 * gradients_of(posterior, pilot) < gradients_of(plain, named)
    other = opened.condition({"y": np.array(-1.0)})
    elsewhere = moved_pilot(other, pilot, root=3, simulation=1)
    assert elsewhere.kernel.correlation is not None
    assert not np.array_equal(elsewhere.kernel.correlation, pilot.kernel.correlation)


def law_given_the_first() -> NestedReference:
    """The exact posterior, as a law of the others given one coordinate."""
    mean, covariance = exact_law()
    slope = covariance[1:, 0] / covariance[0, 0]
    matrix = np.linalg.inv(np.linalg.cholesky(covariance[1:, 1:] - np.outer(slope, covariance[0, 1:])))
    knots = mean[0] + np.array([-2.0, 2.0])
    values = np.zeros((2, 2, DIM - 1))
    values[:, 0] = np.outer(knots - mean[0], matrix @ slope)
    slopes = np.stack([np.tile(matrix @ slope, (2, 1)), np.zeros((2, DIM - 1))], axis=1)
    return NestedReference(0, gaussian(mean[:1], covariance[:1, :1]), mean[1:], matrix, knots, values, slopes)


class Watched:
    """A posterior whose adaptations are noted."""

    def __init__(self, posterior: Any) -> None:
        self.adaptations: list[tuple[float, int, Any]] = []
        self._posterior = posterior

    def __getattr__(self, name: str) -> Any:
        return getattr(self._posterior, name)

    def adapt(self, path: Any, beta: float, state: Any, seed: Any, n_steps: int, previous: Any) -> Any:
        self.adaptations.append((beta, n_steps, previous))
        return self._posterior.adapt(path, beta, state, seed, n_steps, previous)


def test_along_a_law_given_scales_a_dense_metric_begins_at_the_widths_of_the_law() -> None:
    """One adaptation of half as many steps at the law, in place of two; the kernel takes no more gradients."""
    opened = open_model(chain_of_levels(), OpenOptions())
    posterior = opened.condition(opened.info.data.observed)
    law, (_, covariance) = law_given_the_first(), exact_law()
    settings = {"step_size": np.array(0.1), "inverse_metric": np.full(DIM, 77.0)}
    pilots, noted = {}, {}
    for name, reference in {"given": law, "mixture": gaussian(*exact_law()), "alone": law}.items():
        watched = Watched(posterior)
        fit: Any = None if name == "alone" else SimpleNamespace(reference=reference, settings=settings)
        pilots[name] = tune(
            watched, ReferencePath(reference), root=4, simulation=0, n_steps=100, n_base_draws=250, source="", fit=fit
        )  # fmt: skip
        noted[name] = [(n_steps, previous) for beta, n_steps, previous in watched.adaptations if beta == 0.0]
    assert [n_steps for n_steps, _ in noted["given"]] == [50]
    assert [n_steps for n_steps, _ in noted["mixture"]] == [n_steps for n_steps, _ in noted["alone"]] == [100, 100]
    ((_, begun),) = noted["given"]
    np.testing.assert_allclose(begun["inverse_metric"], np.diag(covariance), rtol=0.1)  # of 2000 draws: 4 errors
    assert (np.abs(np.diag(covariance)[::-1] / np.diag(covariance) - 1.0) > 0.1).any(), "control: another order"
    np.testing.assert_allclose(begun[CORRELATION], pilots["given"].kernel.correlation)
    assert begun["step_size"] == settings["step_size"]
    spent = {name: gradients_of(posterior, pilot) for name, pilot in pilots.items()}
    assert spent["given"] < 1.3 * min(spent.values())


def test_a_kernel_without_a_metric_has_no_widths() -> None:
    opened = open_model(chain_of_levels(), OpenOptions())
    posterior = opened.condition(opened.info.data.observed)
    law, metric = law_given_the_first(), {"inverse_metric": np.ones(DIM)}
    assert settings_of_widths(posterior, SimpleNamespace(reference=law, settings={"scaling": np.ones(1)})) is None  # type: ignore[arg-type]
    assert settings_of_widths(SimpleNamespace(), SimpleNamespace(reference=law, settings=metric)) is None  # type: ignore[arg-type]
    flat = replace(law, marginal=gaussian(law.marginal.components[0].mean, np.zeros((1, 1)) + 1e-320))
    assert settings_of_widths(posterior, SimpleNamespace(reference=flat, settings=metric)) is None  # type: ignore[arg-type]


def test_settings_of_a_kernel_hold_the_matrix_at_every_temperature() -> None:
    kernel = Kernel(np.array([0.0, 1.0]), {"step_size": np.array([0.1, 0.4])}, correlation=R)
    for settings, size in zip(kernel.along(np.array([0.0, 1.0])), (0.1, 0.4), strict=True):
        assert settings[CORRELATION] is R and settings["step_size"] == pytest.approx(size)
    assert CORRELATION not in replace(kernel, correlation=None).at(0.5)


@pytest.mark.slow
def test_a_check_says_that_its_chains_had_a_dense_metric() -> None:
    options: dict[str, Any] = {"simulations": 4, "n_temperatures": [2, 4], "random_seed": 1, "progressbar": False}
    report = bread.check(chain_of_levels(), path="reference", **options)
    assert "dense metric" in str(read_attributes(report)["kernel"])
    assert "dense metric" in bread.verdict(report).details
    named = bread.check(chain_of_levels(), path="reference", kernel="nuts", **options)
    assert "dense" not in str(read_attributes(named)["kernel"]) + str(bread.verdict(named))


def test_a_pilot_chain_that_begins_with_a_kernel_of_other_data_keeps_its_correlations_and_saves_gradients() -> None:
    opened, _, pilot = pilot_on(None)
    other = opened.condition({"y": np.array(-1.0)})
    begin = np.zeros(DIM)
    alone = run_chain(other, begin, 0, 50, root=3, simulation=1)
    like = run_chain(other, begin, 0, 50, root=3, simulation=1, like=pilot.kernel)
    assert alone.failure is None and like.failure is None
    assert alone.kernel.correlation is None and like.kernel.correlation is pilot.kernel.correlation
    assert 2 * like.n_gradients < alone.n_gradients
