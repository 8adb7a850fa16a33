"""The Stan engine: densities, kernels, annealed chains, failures, all against exact answers."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng
from scipy import stats

from bread.backends.base import AnnealRun, Failure
from bread.backends.stan.native.kernels import StanKernel, read_kernel
from bread.backends.stan.posterior import StanPosterior
from bread.errors import DensityError, InvalidArgumentError, UnsupportedKernelError
from tests.support.stan_engine_programs import (
    BETAS,
    CONJUGATE,
    EXAMPLE,
    HMC,
    NUTS,
    PATH,
    Conjugate,
    anneal,
    compiled,
    frozen_kernel,
)

JITTERED = StanKernel("NUTS", step_size_jitter=0.5)
BOTH = pytest.mark.parametrize("kernel", [NUTS, HMC], ids=["NUTS", "HMC"])


# ---- densities and coordinates -------------------------------------------------------------------------------


def test_terms_are_normalised_and_exact() -> None:
    states = EXAMPLE.draw(0.3, 20, default_rng(1))
    log_prior, log_likelihood, message = EXAMPLE.posterior(NUTS).instance.terms(states)
    np.testing.assert_allclose(log_prior, EXAMPLE.log_prior(states), rtol=1e-12)
    np.testing.assert_allclose(log_likelihood, EXAMPLE.log_likelihood(states), rtol=1e-12)
    assert message == ""


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_gradient_is_that_of_the_tempered_density(beta: float) -> None:
    instance, state, step = EXAMPLE.posterior(NUTS).instance, np.array([0.4, 1.3]), 1e-5
    density, log_likelihood, gradient = instance.gradient(state, beta)
    near = np.concatenate([state + step * np.eye(2), state - step * np.eye(2)])
    log_prior, ratio, _ = instance.terms(near)
    values = log_prior + beta * ratio
    np.testing.assert_allclose(gradient, (values[:2] - values[2:]) / (2 * step), rtol=1e-7)
    exact = EXAMPLE.log_prior(state[None])[0] + beta * EXAMPLE.log_likelihood(state[None])[0]
    assert density == pytest.approx(exact, rel=1e-12)
    assert log_likelihood == pytest.approx(EXAMPLE.log_likelihood(state[None])[0], rel=1e-12)


def test_an_instance_collected_during_a_call_is_freed_later() -> None:
    """The garbage collector may run inside a call: freeing then must neither wait for the call nor be forgotten."""
    instance = EXAMPLE.posterior(NUTS).instance
    loaded = instance.loaded
    other = EXAMPLE.posterior(NUTS).instance
    assert other.loaded is loaded and other is not instance
    finished = threading.Event()

    def collect(doomed: list[object]) -> None:
        with loaded.lock:  # as inside a call
            doomed.clear()
        finished.set()

    doomed: list[object] = [other]
    del other
    gc.collect()
    threading.Thread(target=collect, args=(doomed,), daemon=True).start()
    assert finished.wait(timeout=30), "freeing waits for the call that it interrupts"
    assert len(loaded.garbage) == 1
    fresh = EXAMPLE.posterior(NUTS).instance
    assert fresh is not instance and not loaded.garbage


def test_an_interrupt_while_an_instance_is_collected_does_not_block_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded = EXAMPLE.posterior(NUTS).instance.loaded
    usual = loaded.lock

    class Interrupted:
        def acquire(self, blocking: bool = True) -> bool:
            usual.acquire(blocking)
            raise KeyboardInterrupt  # between taking the lock and the next instruction

    doomed = [EXAMPLE.posterior(NUTS).instance]
    with monkeypatch.context() as patch:
        patch.setattr(loaded, "lock", Interrupted())
        doomed.clear()
        gc.collect()
    assert not usual.locked()


def test_coordinates_round_trip_with_shapes() -> None:
    instance = EXAMPLE.posterior(NUTS).instance
    states = EXAMPLE.draw(0.5, 3, default_rng(2))
    assert instance.coordinates == ("mu", "rate")
    assert (instance.names("parameters"), instance.names("transformed")) == (("mu", "rate"), ("table",))
    parameters = instance.constrain(states)
    np.testing.assert_allclose(parameters["rate"], np.exp(states[:, 1]))
    np.testing.assert_allclose(instance.unconstrain(parameters), states, rtol=1e-12)
    table = instance.constrain(states, "transformed")["table"]
    np.testing.assert_allclose(table[2], [[states[2, 0], 2, 3], [4, np.exp(states[2, 1]), 6]])
    with pytest.raises(DensityError, match=r"Lower bounded variable is -1.*line 11"):
        instance.unconstrain({"mu": np.zeros(1), "rate": -np.ones(1)})
    with pytest.raises(InvalidArgumentError, match="'rate' is missing"):
        instance.unconstrain({"mu": np.zeros(1)})
    with pytest.raises(InvalidArgumentError, match="no variable 'sigma'"):
        instance.shape("sigma")


def test_generated_quantities_depend_on_their_own_seed_alone() -> None:
    instance = EXAMPLE.posterior(NUTS).instance
    states, seeds = np.repeat([[1.0, 1.0]], 2000, axis=0), SeedSequence(3).spawn(2000)
    drawn = instance.constrain(states, "generated", seeds)["y_new"]
    np.testing.assert_array_equal(instance.constrain(states[:2], "generated", seeds[5:7])["y_new"], drawn[5:7])
    # 10,000 draws of N(1, 1.5^2): 4 standard errors are 0.06; streams of different seeds must not repeat.
    assert abs(drawn.mean() - 1) < 0.06
    assert stats.kstest(drawn.ravel(), stats.norm(1, 1.5).cdf).pvalue > 1e-3
    assert len(np.unique(drawn)) == drawn.size


def test_a_program_without_bread_temper_is_all_prior() -> None:
    plain = CONJUGATE.replace("functions { real bread_temper(real x); vector bread_temper(vector x);\n}\n", "\n\n")
    plain = plain.replace("bread_temper", "")
    original = compiled(plain).instance(EXAMPLE.data)
    states = EXAMPLE.draw(0.5, 10, default_rng(35))
    log_prior, log_likelihood, _ = original.terms(states)
    np.testing.assert_allclose(log_prior, EXAMPLE.log_prior(states) + EXAMPLE.log_likelihood(states), rtol=1e-12)
    assert not log_likelihood.any()


# ---- kernels -------------------------------------------------------------------------------------------------


def one_transition(case: Conjugate, kernel: StanKernel, start: np.ndarray, seed: int) -> np.ndarray:
    """Return the states after one transition at beta = 1."""
    return anneal(case.posterior(kernel), "forward", start, seed, betas=np.array([0.0, 1.0])).state_at_end


def invariance_p_value(before: np.ndarray, after: np.ndarray, case: Conjugate, beta: float) -> float:
    """Return the p-value of the law after a transition from exact draws; log rate is the skewed coordinate."""
    moved = after[:, 1] != before[:, 1]
    assert moved.mean() > 0.5
    return float(stats.kstest(case.log_rate_cdf(beta, after[:, 1]), "uniform").pvalue)


def reversal_z(before: np.ndarray, after: np.ndarray) -> float:
    """Return z of E[f(x) g(x') - g(x) f(x')] = 0, which holds for any f, g if pairs are exchangeable."""
    u, v = before - before.mean(), after - before.mean()
    difference = u * v**2 - v * u**2
    return float(difference.mean() / (difference.std() / np.sqrt(len(u))))


@pytest.mark.statistical
@pytest.mark.parametrize("kernel", [NUTS, HMC, JITTERED], ids=["NUTS", "HMC", "jittered NUTS"])
def test_kernels_are_invariant_and_reversible(kernel: StanKernel) -> None:
    start = EXAMPLE.draw(1.0, 10_000, default_rng(4))
    end = one_transition(EXAMPLE, kernel, start, 5)
    assert invariance_p_value(start, end, EXAMPLE, 1.0) > 1e-3
    assert abs(reversal_z(start[:, 1], end[:, 1])) < 4


@pytest.mark.statistical
def test_invariance_and_reversal_reject_broken_kernels() -> None:
    rng = default_rng(6)
    start = EXAMPLE.draw(1.0, 10_000, rng)
    other = Conjugate(EXAMPLE.y, EXAMPLE.count + np.array([0, 2]))  # a kernel of a slightly different density
    assert invariance_p_value(start, one_transition(other, NUTS, start, 7), EXAMPLE, 1.0) < 1e-6
    # Turning the quantile by a fifth leaves the law as it is but runs one way only.
    turned = EXAMPLE.log_rate_quantile(1.0, (EXAMPLE.log_rate_cdf(1.0, start[:, 1]) + 0.2) % 1.0)
    assert stats.kstest(EXAMPLE.log_rate_cdf(1.0, turned), "uniform").pvalue > 1e-3
    assert abs(reversal_z(start[:, 1], turned)) > 10


@pytest.mark.statistical
@pytest.mark.parametrize("beta", [0.0, 0.25])
@pytest.mark.slow
def test_evolve_is_invariant_at_any_temperature(beta: float) -> None:
    posterior = EXAMPLE.posterior(NUTS)
    start, seeds = EXAMPLE.draw(beta, 3000, default_rng(8)), SeedSequence(9).spawn(3000)
    runs = [
        posterior.evolve(PATH, frozen_kernel(NUTS), beta, state, (0, 2), seed)
        for state, seed in zip(start, seeds, strict=True)
    ]
    states = np.array([run.states for run in runs])
    np.testing.assert_array_equal(states[:, 0], start)
    assert invariance_p_value(start, states[:, 1], EXAMPLE, beta) > 1e-3
    assert all(run.n_gradients > 3 for run in runs)


@BOTH
def test_adaptation_finds_step_size_and_variances(kernel: StanKernel) -> None:
    posterior = EXAMPLE.posterior(kernel)
    adaptation = posterior.adapt(PATH, 1.0, np.array([0.0, 0.0]), SeedSequence(10), 1000, None)
    exact = EXAMPLE.draw(1.0, 100_000, default_rng(11)).var(axis=0)
    # 600 correlated draws estimate a variance to some 10 %; factors of 1.5 exclude the unit metric it began with.
    ratio = adaptation.settings["inverse_metric"] / exact
    assert np.all((ratio > 1 / 1.5) & (ratio < 1.5)), ratio
    assert 0.2 < adaptation.settings["step_size"] < 2.0
    assert adaptation.log_ratio.shape == (500,)
    assert adaptation.log_ratio[-1] == pytest.approx(EXAMPLE.log_likelihood(adaptation.state[None])[0], rel=1e-12)
    assert adaptation.n_gradients > 1000
    assert adaptation.n_evaluations == 1


def test_read_kernel_lists_the_names() -> None:
    assert read_kernel(None) == read_kernel("nuts") == NUTS
    assert read_kernel("hmc") == HMC
    with pytest.raises(UnsupportedKernelError, match=r"'nuts' or 'hmc'.*'metropolis'"):
        read_kernel("metropolis")
    with pytest.raises(UnsupportedKernelError, match=r"below 1; received 1\.5"):
        StanKernel("NUTS", step_size_jitter=1.5)


def test_jitter_is_each_kernels_own_unless_given() -> None:
    assert [kernel.struct(PATH).step_size_jitter for kernel in (NUTS, HMC, JITTERED)] == [0.0, 0.2, 0.5]
    start = EXAMPLE.draw(1.0, 5, default_rng(4))
    assert np.any(one_transition(EXAMPLE, NUTS, start, 5) != one_transition(EXAMPLE, JITTERED, start, 5))


# ---- annealed chains -----------------------------------------------------------------------------------------


def z_of_one(log_values: np.ndarray) -> float:
    """Return z of E[exp(log_values)] = 1."""
    values = np.exp(log_values)
    return float((values.mean() - 1) / (values.std(ddof=1) / np.sqrt(len(values))))


@pytest.mark.statistical
@BOTH
def test_weights_are_unbiased_and_enclose_the_log_evidence(kernel: StanKernel) -> None:
    posterior, exact, rng = EXAMPLE.posterior(kernel), EXAMPLE.log_evidence, default_rng(12)
    forward = anneal(posterior, "forward", EXAMPLE.draw(0.0, 4000, rng), 13)
    reverse = anneal(posterior, "reverse", EXAMPLE.draw(1.0, 4000, rng), 14)
    assert forward.log_weight.mean() < exact < reverse.log_weight.mean()
    assert reverse.log_weight.mean() - forward.log_weight.mean() < 1.0
    # 4 standard errors.
    assert abs(z_of_one(forward.log_weight - exact)) < 4
    assert abs(z_of_one(exact - reverse.log_weight)) < 4
    # Negative control: every log ratio taken one temperature late is rejected by the same check.
    late = forward.log_ratio[:, 1:] @ np.diff(BETAS)
    assert abs(z_of_one(late - exact)) > 4


@BOTH
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_a_run_records_what_the_contract_says(kernel: StanKernel, direction: str) -> None:
    start = EXAMPLE.draw(0.5, 3, default_rng(15))
    run = anneal(EXAMPLE.posterior(kernel), direction, start, 16)
    kept, moved = (run.state_at_base, run.state_at_end)[:: 1 if direction == "forward" else -1]
    np.testing.assert_array_equal(kept, start)
    assert np.all(moved != start)
    ends = np.stack([run.state_at_base, run.state_at_end], axis=1)
    for chain, pair in enumerate(ends):
        np.testing.assert_allclose(run.log_ratio[chain, [0, -1]], EXAMPLE.log_likelihood(pair), rtol=1e-10)
        np.testing.assert_allclose(run.log_base_density[chain], EXAMPLE.log_prior(pair), rtol=1e-10)
    np.testing.assert_allclose(run.log_weight, run.log_ratio[:, :-1] @ np.diff(BETAS), rtol=1e-12)
    assert np.all(run.failure == Failure.NONE)
    # The log likelihood falls out of the gradients that Stan takes anyway: one evaluation more, at the end.
    assert np.all(run.n_evaluations == 1)
    assert np.all(run.n_gradients >= 2 * (len(BETAS) - 1))


RUN_FIELDS = ("log_weight", "log_ratio", "state_at_base", "state_at_end", "log_base_density", "n_gradients")


def assert_equal_runs(run: AnnealRun, other: AnnealRun, rows: slice = slice(None)) -> None:
    for name in RUN_FIELDS:
        np.testing.assert_array_equal(getattr(run, name), getattr(other, name)[rows], err_msg=name)


@BOTH
def test_runs_are_bit_equal_for_any_batching_and_after_reuse(kernel: StanKernel) -> None:
    posterior, frozen = EXAMPLE.posterior(kernel), frozen_kernel(kernel)
    start, seeds = EXAMPLE.draw(0.0, 6, default_rng(17)), SeedSequence(18).spawn(6)

    def run(rows: slice) -> AnnealRun:
        return posterior.anneal(PATH, BETAS, frozen, direction="forward", initial=start[rows], seeds=seeds[rows])

    whole = run(slice(None))
    for rows in (slice(0, 1), slice(1, 4), slice(4, 6)):
        assert_equal_runs(run(rows), whole, rows)
    # Other data sets, sizes and uses of the same library in between change the state of Stan's arena.
    many = Conjugate(default_rng(19).normal(size=20_001), np.array([1, 2])).posterior(kernel)
    many.log_ratio(PATH, start)
    many.evolve(PATH, frozen, 1.0, start[0], (3,), seeds[0])
    many.adapt(PATH, 0.1, start[0], seeds[1], 30, None)
    assert_equal_runs(run(slice(2, 5)), whole, slice(2, 5))
    copy = pickle.loads(pickle.dumps(posterior.instance))
    again = StanPosterior(copy, EXAMPLE, kernel)
    assert_equal_runs(again.anneal(PATH, BETAS, frozen, direction="forward", initial=start, seeds=seeds), whole)


def test_runs_are_bit_equal_in_another_process_and_in_threads(tmp_path: Path) -> None:
    posterior, frozen = EXAMPLE.posterior(NUTS), frozen_kernel(NUTS)
    start, seeds = EXAMPLE.draw(0.0, 4, default_rng(20)), SeedSequence(21).spawn(4)

    def run() -> AnnealRun:
        return posterior.anneal(PATH, BETAS, frozen, direction="reverse", initial=start, seeds=seeds)

    here, found = run(), []
    threads = [threading.Thread(target=lambda: found.append([run() for _ in range(20)])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    for item in found:
        assert_equal_runs(item[-1], here)
    (tmp_path / "task").write_bytes(cloudpickle.dumps((posterior.instance, frozen, start, seeds, BETAS, NUTS)))
    code = (
        "import sys, pickle\n"
        "from bread.backends.stan.posterior import StanPosterior\nfrom bread.paths.kinds import PriorPath\n"
        "instance, frozen, start, seeds, betas, kernel = pickle.load(open(sys.argv[1] + '/task', 'rb'))\n"
        "run = StanPosterior(instance, None, kernel).anneal(\n"
        "    PriorPath(), betas, frozen, direction='reverse', initial=start, seeds=seeds)\n"
        "pickle.dump(run, open(sys.argv[1] + '/run', 'wb'))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=environment)
    assert_equal_runs(pickle.loads((tmp_path / "run").read_bytes()), here)


def test_bad_runs_are_refused() -> None:
    start = EXAMPLE.draw(0.0, 2, default_rng(22))
    for change, message in (
        ({"betas": np.array([0.0, 0.5])}, "from 0 to 1"),
        ({"direction": "sideways"}, "'sideways'"),
        ({"initial": start[:, :1]}, r"shape \(n, 2\)"),
    ):
        options = {"direction": "forward", "initial": start} | change
        with pytest.raises(InvalidArgumentError, match=message):
            anneal(EXAMPLE.posterior(NUTS), seed=1, **options)
