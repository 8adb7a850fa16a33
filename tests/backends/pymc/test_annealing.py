"""Annealing with PyMC's step methods: exact evidence, determinism, failures, pickling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cloudpickle
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.random import SeedSequence
from scipy import stats

from bread.backends.base import AnnealRun, Failure, Kernel
from bread.backends.pymc.kernels.engines import compile_engine
from bread.backends.pymc.posterior import PyMCPosterior
from bread.errors import DensityError, InvalidArgumentError
from bread.paths.kinds import PriorPath, ReferencePath
from bread.paths.mixture import diagonal
from tests.support.marks import slow_but
from tests.support.pymc_layout import layout_of, mixed

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]

PATH = PriorPath()
Y = np.array([1.2, 0.3, 2.1, 0.9, 1.7])
SCALE = 2.0


@dataclass(frozen=True)
class NormalPrior:
    """Stand-in for a simulator: independent normal draws."""

    mean: float
    scale: float
    dim: int

    def draw_states(self, seeds: Any) -> np.ndarray:
        return np.array([np.random.default_rng(seed).normal(self.mean, self.scale, self.dim) for seed in seeds])


def normal_mean() -> pm.Model:
    with pm.Model() as model:
        theta = pm.Normal("theta", 0, SCALE)
        pm.Normal("y", theta, 1, observed=Y)
    return model


def exact_posterior(rng: np.random.Generator, n: int) -> np.ndarray:
    variance = 1 / (1 / SCALE**2 + len(Y))
    return rng.normal(variance * Y.sum(), np.sqrt(variance), size=(n, 1))


LOG_EVIDENCE = float(stats.multivariate_normal(np.zeros(5), np.eye(5) + SCALE**2 * np.ones((5, 5))).logpdf(Y))


def make_posterior(kernel: Any = None, build: Any = normal_mean, data: Any = None) -> PyMCPosterior:
    model = build()
    layout = layout_of(model)
    return PyMCPosterior(compile_engine(model, layout, kernel), NormalPrior(0, SCALE, layout.dim), data or {"y": Y})


def tuned(posterior: PyMCPosterior, knots: tuple[float, ...] = (0.0, 0.1, 1.0), n_steps: int = 120) -> Kernel:
    state, settings, adapted = np.zeros(posterior.engine.layout.dim), None, []
    for beta in knots:
        adaptation = posterior.adapt(PATH, beta, state, SeedSequence(5), n_steps, settings)
        state, settings = adaptation.state, adaptation.settings
        adapted.append(settings)
    return Kernel(np.array(knots), {name: np.array([each[name] for each in adapted]) for name in adapted[0]})


def same(first: AnnealRun, second: AnnealRun) -> bool:
    names = [name for name in vars(first) if name not in ("seconds", "message")]
    return all(np.array_equal(getattr(first, name), getattr(second, name), equal_nan=True) for name in names)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "kernel",
    slow_but([None, "hmc"], [None, "hmc", pm.Slice, pm.Metropolis]),
    ids=["nuts", "hmc", "slice", "metropolis"],
)
def test_conjugate_evidence_lies_between_the_directions(kernel):
    posterior = make_posterior(kernel)
    frozen = tuned(posterior)
    betas, n = np.linspace(0, 1, 12) ** 2, 300
    seeds = SeedSequence(1).spawn(2 * n)
    start = posterior.draw_base(PATH, seeds[:n])
    forward = posterior.anneal(PATH, betas, frozen, direction="forward", initial=start, seeds=seeds[:n])
    exact = exact_posterior(np.random.default_rng(2), n)
    reverse = posterior.anneal(PATH, betas, frozen, direction="reverse", initial=exact, seeds=seeds[n:])
    assert not forward.failure.any()
    assert not reverse.failure.any()
    # 4 standard errors, three independent claims. E[w_fwd] = Z, E[1 / w_rev] = 1 / Z.
    for weights in (np.exp(forward.log_weight - LOG_EVIDENCE), np.exp(LOG_EVIDENCE - reverse.log_weight)):
        error = weights.std(ddof=1) / np.sqrt(n)
        assert error < 0.1  # precise enough to mean something
        assert abs(weights.mean() - 1) < 4 * error
    gaps = [LOG_EVIDENCE - forward.log_weight, reverse.log_weight - LOG_EVIDENCE]
    for gap in gaps:  # both bounds hold, and clearly: the gap is many standard errors wide at 12 temperatures
        assert gap.mean() > 2 * gap.std(ddof=1) / np.sqrt(n)
    # Negative control: weights that read each log ratio one temperature too late.
    scores = []
    for run, sign in ((forward, 1), (reverse, -1)):
        wrong = np.exp(sign * (run.log_ratio[:, 1:] @ np.diff(betas) - LOG_EVIDENCE))
        scores.append(abs(wrong.mean() - 1) / (wrong.std(ddof=1) / np.sqrt(n)))
    assert max(scores) > 4


def test_weights_are_sums_of_log_ratios():
    posterior = make_posterior()
    frozen = tuned(posterior)
    betas, seeds = np.linspace(0, 1, 7), SeedSequence(3).spawn(3)
    for direction in ("forward", "reverse"):
        start = posterior.draw_base(PATH, seeds)
        run = posterior.anneal(PATH, betas, frozen, direction=direction, initial=start, seeds=seeds)
        assert run.log_ratio.shape == (3, 7)
        np.testing.assert_allclose(run.log_weight, run.log_ratio[:, :-1] @ np.diff(betas), rtol=1e-12)
        ends = {0: run.state_at_base, -1: run.state_at_end}
        for knot, states in ends.items():
            np.testing.assert_allclose(run.log_ratio[:, knot], posterior.log_ratio(PATH, states), rtol=1e-12)
        expected = stats.norm(0, SCALE).logpdf(np.hstack([run.state_at_base, run.state_at_end]))
        np.testing.assert_allclose(run.log_base_density, expected, rtol=1e-7)  # PyMC's constant has 9 digits
        np.testing.assert_array_equal(run.state_at_base if direction == "forward" else run.state_at_end, start)
        assert np.all(run.n_gradients > 2 * 6)
        assert not run.n_evaluations.any()


KERNELS = {
    "nuts": (normal_mean, None),
    "hmc": (normal_mean, "hmc"),
    "metropolis": (normal_mean, pm.Metropolis),
    "slice": (normal_mean, pm.Slice),
    "compound": (mixed, None),
    "all discrete kinds": (mixed, [pm.BinaryGibbsMetropolis, pm.BinaryMetropolis, pm.Slice]),
}


@pytest.mark.parametrize("name", [*KERNELS][:-1])
def test_results_depend_on_the_seeds_alone(name):
    build, kernel = KERNELS[name]
    data = {"y": Y} if build is normal_mean else {"y": np.array(1.0)}
    posterior = make_posterior(kernel, build, data)
    frozen = tuned(posterior)
    betas, seeds = np.linspace(0, 1, 6), SeedSequence(8).spawn(4)
    start = posterior.draw_base(PATH, seeds)
    start[:, posterior.engine.layout.discrete] = 1
    copy = cloudpickle.loads(cloudpickle.dumps(posterior))  # never used before
    for direction in ("forward", "reverse"):
        arguments = {"direction": direction, "initial": start, "seeds": seeds}
        first = posterior.anneal(PATH, betas, frozen, **arguments)
        assert not first.failure.any()
        assert len(set(first.log_weight)) == 4
        assert same(first, posterior.anneal(PATH, betas, frozen, **arguments))
        assert same(first, copy.anneal(PATH, betas, frozen, **arguments))
        posterior.adapt(PATH, 0.3, start[0], SeedSequence(99), 25, None)
        for index in (2, 0, 3, 1):
            alone = {"direction": direction, "initial": start[index : index + 1], "seeds": [seeds[index]]}
            run = posterior.anneal(PATH, betas, frozen, **alone)
            assert run.log_weight[0] == first.log_weight[index]
            np.testing.assert_array_equal(run.state_at_end[0], first.state_at_end[index])
        seeds[1].spawn(3)  # spawning elsewhere changes nothing
        assert same(first, posterior.anneal(PATH, betas, frozen, **arguments))
    first = posterior.adapt(PATH, 0.3, start[0], SeedSequence(4), 30, None)
    second = copy.adapt(PATH, 0.3, start[0], SeedSequence(4), 30, None)
    assert first.settings.keys() == second.settings.keys()
    assert all(np.array_equal(first.settings[key], second.settings[key]) for key in first.settings)
    np.testing.assert_array_equal(first.log_ratio, second.log_ratio)
    evolved = [each.evolve(PATH, frozen, 0.7, start[0], [0, 3, 3, 9], seeds[0]).states for each in (posterior, copy)]
    np.testing.assert_array_equal(*evolved)
    np.testing.assert_array_equal(evolved[0][0], start[0])
    np.testing.assert_array_equal(evolved[0][1], evolved[0][2])
    assert np.any(evolved[0][3] != evolved[0][1])


def test_a_pickle_holds_no_model():
    model = normal_mean()
    model.unpicklable = (value for value in [1])  # a generator cannot be pickled
    layout = layout_of(model)
    for kernel in (None, pm.Slice):
        assert cloudpickle.loads(cloudpickle.dumps(compile_engine(model, layout, kernel))).layout == layout


def test_two_data_sets_do_not_disturb_each_other():
    first = make_posterior()
    second = PyMCPosterior(first.engine, first.simulator, {"y": Y + 3})
    frozen, seeds, betas = tuned(first), SeedSequence(8).spawn(2), np.linspace(0, 1, 5)
    start = first.draw_base(PATH, seeds)

    def run(posterior: PyMCPosterior) -> AnnealRun:
        return posterior.anneal(PATH, betas, frozen, direction="forward", initial=start, seeds=seeds)

    before, other = run(first), run(second)
    assert same(before, run(first))
    assert np.all(before.log_weight != other.log_weight)
    assert first.log_ratio(PATH, start) == pytest.approx(stats.norm(start, 1).logpdf(Y).sum(axis=1))


def test_global_random_numbers_and_the_model_are_not_touched():
    model = normal_mean()
    layout = layout_of(model)
    names = set(model.named_vars)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    for kernel in (None, "hmc", pm.Slice, pm.Metropolis):
        posterior = PyMCPosterior(compile_engine(model, layout, kernel), NormalPrior(0, 1, 1), {"y": Y})
        frozen = tuned(posterior, n_steps=20)
        seeds = SeedSequence(1).spawn(2)
        start = posterior.draw_base(PATH, seeds)
        posterior.anneal(PATH, np.linspace(0, 1, 4), frozen, direction="reverse", initial=start, seeds=seeds)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    assert set(model.named_vars) == names
    assert float(model.compile_logp()({"theta": np.array(0.4)})) == pytest.approx(
        stats.norm(0, SCALE).logpdf(0.4) + stats.norm(0.4, 1).logpdf(Y).sum()
    )


@pytest.mark.parametrize("kernel", [None, pm.Slice], ids=["gradient", "density"])
def test_failures_are_recorded_by_chain(kernel):
    def build() -> pm.Model:
        with pm.Model() as model:
            x = pm.Normal("x", 0, SCALE)
            pm.Uniform("y", 0, pt.exp(x), observed=5.0)  # likelihood zero where exp(x) < 5
        return model

    posterior = make_posterior(kernel, build, {"y": np.array(5.0)})
    names = posterior.engine.settings()
    frozen = Kernel(np.array([0.0, 1.0]), {name: np.ones((2, *np.shape(names[name]))) for name in names})
    betas, seeds = np.linspace(0, 1, 5), SeedSequence(1).spawn(3)
    start = np.array([[2.0], [0.0], [3.0]])
    assert posterior.log_ratio(PATH, start)[1] == -np.inf
    forward = posterior.anneal(PATH, betas, frozen, direction="forward", initial=start, seeds=seeds)
    np.testing.assert_array_equal(forward.failure, [Failure.NONE, Failure.ZERO_RATIO, Failure.NONE])
    assert forward.log_weight[1] == -np.inf
    assert np.all(np.isfinite(forward.log_weight[[0, 2]]))
    assert forward.log_ratio[1, 0] == -np.inf
    assert np.all(np.isnan(forward.log_ratio[1, 1:]))
    np.testing.assert_array_equal(forward.state_at_end[1], start[1])
    reverse = posterior.anneal(PATH, betas, frozen, direction="reverse", initial=start, seeds=seeds)
    np.testing.assert_array_equal(reverse.failure, [Failure.NONE, Failure.ZERO_INITIAL, Failure.NONE])
    assert np.isnan(reverse.log_weight[1])
    broken = posterior.anneal(
        PATH, betas, frozen, direction="forward", initial=np.array([[np.inf], [np.nan]]), seeds=seeds[:2]
    )
    np.testing.assert_array_equal(broken.failure, [Failure.ZERO_INITIAL, Failure.NAN])
    with pytest.raises(DensityError, match="cannot start at a state of log prior"):
        posterior.adapt(PATH, 0.5, np.array([0.0]), seeds[0], 10, None)
    with pytest.raises(DensityError, match="cannot start"):
        posterior.evolve(PATH, frozen, 0.5, np.array([0.0]), [3], seeds[0])
    # At beta = 0 states of zero likelihood are allowed, but the next knot gets one it can start from.
    adaptation = posterior.adapt(PATH, 0.0, np.array([2.0]), SeedSequence(3), 40, None)
    assert np.any(adaptation.log_ratio == -np.inf)
    assert np.isfinite(posterior.log_ratio(PATH, adaptation.state[None])[0])


def test_nan_and_exceptions_outside_a_kernel():
    def build() -> pm.Model:
        with pm.Model() as model:
            x = pm.Normal("x", 0, SCALE)
            pm.Normal("y", pt.log(x), 1, observed=0.0)  # NaN where x < 0
        return model

    posterior = make_posterior(pm.Metropolis, build, {"y": np.array(0.0)})
    frozen = Kernel(np.array([0.0, 1.0]), {"scaling": np.full((2, 1), 3.0)})
    betas, seeds = np.linspace(0, 1, 30), SeedSequence(1).spawn(2)
    run = posterior.anneal(PATH, betas, frozen, direction="forward", initial=np.array([[-1.0], [1.0]]), seeds=seeds)
    # Inside the kernel of the second chain, NaN proposals (half of all) were rejected.
    np.testing.assert_array_equal(run.failure, [Failure.NAN, Failure.NONE])
    assert np.isnan(run.log_weight[0])
    assert run.state_at_end[1, 0] > 0

    def raises(_: Any) -> Any:
        raise ArithmeticError("no convergence")

    posterior.engine.compiled_terms = raises
    run = posterior.anneal(PATH, betas, frozen, direction="reverse", initial=np.ones((2, 1)), seeds=seeds)
    np.testing.assert_array_equal(run.failure, [Failure.EXCEPTION] * 2)
    assert np.all(np.isnan(run.log_weight))
    assert run.message == "ArithmeticError: no convergence"
    assert np.all(np.isnan(posterior.log_ratio(PATH, np.ones((2, 1)))))


def test_divergences_are_counted():
    posterior = make_posterior("hmc")
    frozen = Kernel(np.array([0.0, 1.0]), {"step_size": np.full(2, 300.0), "inverse_metric": np.ones((2, 1))})
    seeds = SeedSequence(1).spawn(2)
    run = posterior.anneal(
        PATH, np.linspace(0, 1, 6), frozen, direction="reverse", initial=np.ones((2, 1)), seeds=seeds
    )
    np.testing.assert_array_equal(run.n_divergences, [5, 5])
    assert not run.failure.any()
    np.testing.assert_array_equal(run.state_at_base, run.state_at_end)
    assert run.log_ratio == pytest.approx(np.full((2, 6), stats.norm(1, 1).logpdf(Y).sum()))


@pytest.mark.statistical
def test_adaptation_finds_the_scale_and_is_warm_started():
    posterior = make_posterior()
    adaptation = posterior.adapt(PATH, 1.0, np.array([0.5]), SeedSequence(2), 1000, None)
    variance = 1 / (1 / SCALE**2 + len(Y))
    # Some 300 to 600 weakly dependent draws: standard error below 10 %; 4 of them.
    assert adaptation.settings["inverse_metric"][0] == pytest.approx(variance, rel=0.4)
    assert 0.3 < adaptation.settings["step_size"] < 3
    assert adaptation.log_ratio.shape == (500,)
    assert adaptation.n_gradients > 1000
    warm = posterior.adapt(PATH, 1.0, np.array([0.5]), SeedSequence(2), 1, {**adaptation.settings})
    assert warm.settings["inverse_metric"] == pytest.approx(adaptation.settings["inverse_metric"])


def test_wrong_arguments():
    posterior = make_posterior()
    good = {
        "betas": np.linspace(0, 1, 3), "direction": "forward", "initial": np.zeros((2, 1)),
        "seeds": SeedSequence(1).spawn(2),
    }  # fmt: skip
    kernel = tuned(posterior, n_steps=5)
    for change, message in (
        ({"initial": np.zeros((3, 1))}, "3 rows and seeds has 2 entries"),
        ({"initial": np.zeros((2, 2))}, r"one row of 1 coordinates for each of 2 seeds.*\(2, 2\)"),
        ({"betas": np.array([0.0, 0.5])}, "betas must increase from 0 to 1"),
        ({"betas": np.array([0.0, 0.7, 0.7, 1.0])}, "betas must increase from 0 to 1"),
        ({"direction": "up"}, "direction must be"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            posterior.anneal(path=PATH, kernel=kernel, **(good | change))
    other = Kernel(np.array([0.0, 1.0]), {"scaling": np.ones((2, 1))})
    with pytest.raises(InvalidArgumentError, match=r"settings of NUTS.*'step_size'.*\['scaling'\]"):
        posterior.evolve(PATH, other, 0.5, np.zeros(1), [1], SeedSequence(1))
    reference = ReferencePath(diagonal(np.zeros(1), np.ones(1)))
    with pytest.raises(InvalidArgumentError, match="Slice does not move all coordinates by their gradient"):
        make_posterior(pm.Slice).log_ratio(reference, np.zeros((1, 1)))
