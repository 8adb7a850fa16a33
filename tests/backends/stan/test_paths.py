"""Stan programs along every kind of path: densities, gradients, exact evidence, references of the user's, failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator, SeedSequence, default_rng

from bread.backends.base import AnnealRun, Failure, Kernel
from bread.backends.stan.native.kernels import StanKernel
from bread.backends.stan.posterior import StanPosterior
from bread.errors import DensityError, InvalidArgumentError
from bread.paths.kinds import Path, PriorPath, ReferencePath
from bread.paths.mixture import Component, MixtureReference, diagonal
from bread.paths.user import UserReference
from tests.support.stan_engine_programs import BETAS, EXAMPLE, FAILING, HMC, NUTS, Conjugate, compiled, frozen_kernel
from tests.support.stan_references import FULL, NESTED

pytestmark = pytest.mark.stan

# The exact posterior has mean (2.1, 1.8) and standard deviations (0.63, 0.25); references differ from it on purpose.
LOW_RANK = MixtureReference(
    (
        Component(
            np.array([2.3, 1.7]),
            np.array([0.7, 0.3]),
            directions=np.array([[0.6], [0.8]]),
            stretch=np.array([1.4]),
        ),
    ),
    np.ones(1),
)
DENSE = np.array([[1.1, 0.2], [-0.3, 0.9]])
MIXTURE = MixtureReference(
    (
        Component(np.array([1.8, 1.8]), np.array([0.7, 0.3]), matrix=DENSE, degrees=np.array([5.0, np.inf])),
        Component(np.array([2.6, 1.9]), np.array([0.8, 0.35]), degrees=np.array([np.inf, np.inf])),
    ),
    np.array([0.7, 0.3]),
)
REFERENCES = {"full": FULL, "low rank": LOW_RANK, "mixture with t": MIXTURE, "nested": NESTED}
PATHS: dict[str, Path] = {
    "prior": PriorPath(),
    **{name: ReferencePath(reference) for name, reference in REFERENCES.items()},
}
ALL = pytest.mark.parametrize("path", PATHS.values(), ids=list(PATHS))
OF_REFERENCE = pytest.mark.parametrize("path", [ReferencePath(one) for one in REFERENCES.values()], ids=REFERENCES)
PLAIN = Kernel(np.array([0.0]), {"step_size": np.array([0.5]), "inverse_metric": np.ones((1, 1))})


class Narrow:
    """A reference of a user's, without a gradient: the full Gaussian."""

    def sample(self, n: int, rng: Generator) -> np.ndarray:
        return FULL.sample(n, rng)

    def log_density(self, states: np.ndarray) -> np.ndarray:
        return FULL.log_density(states)


class WithGradient(Narrow):
    def gradient(self, states: np.ndarray) -> np.ndarray:
        return FULL.gradient(states)


class Broken(Narrow):
    def log_density(self, states: np.ndarray) -> np.ndarray:
        if (states[:, 0] > 2.5).any():
            raise LookupError("no density above 2.5")
        return FULL.log_density(states)


def log_base(path: Path, states: np.ndarray) -> np.ndarray:
    return EXAMPLE.log_prior(states) if path.reference is None else path.reference.log_density(states)


def log_ratio(path: Path, states: np.ndarray) -> np.ndarray:
    if path.reference is None:
        return EXAMPLE.log_likelihood(states)
    return EXAMPLE.log_prior(states) + EXAMPLE.log_likelihood(states) - path.reference.log_density(states)


def log_density(path: Path, beta: float, states: np.ndarray) -> np.ndarray:
    return log_base(path, states) + beta * log_ratio(path, states)


# ---- densities -----------------------------------------------------------------------------------------------


@ALL
def test_terms_along_every_path(path: Path) -> None:
    states = default_rng(1).normal(1.5, 1.0, (20, 2))
    start, ratio, message = EXAMPLE.posterior(NUTS).instance.terms(states, path)
    np.testing.assert_allclose(start, log_base(path, states), rtol=1e-11)
    np.testing.assert_allclose(ratio, log_ratio(path, states), rtol=1e-11)
    assert message == ""


@ALL
@pytest.mark.parametrize("beta", [0.0, 0.02, 0.6, 1.0])
def test_density_and_gradient_along_every_path(path: Path, beta: float) -> None:
    """Near the posterior and far from it; the difference quotient errs by 1e-8."""
    instance, step = EXAMPLE.posterior(NUTS).instance, 1e-5
    for state in np.array([[2.0, 1.8], [0.4, 1.3], [-6.0, 4.0]]):
        density, ratio, gradient = instance.gradient(state, beta, path)
        near = np.concatenate([state + step * np.eye(2), state - step * np.eye(2)])
        values = log_density(path, beta, near)
        np.testing.assert_allclose(gradient, (values[:2] - values[2:]) / (2 * step), rtol=1e-6, atol=1e-7)
        assert density == pytest.approx(log_density(path, beta, state[None])[0], rel=1e-11)
        if path.reference is None or beta > 0:
            wanted = log_ratio(path, state[None])[0]
            assert beta == 1.0 or ratio == pytest.approx(wanted, rel=1e-11)
        if path.reference is not None and beta == 1.0:
            value, again = EXAMPLE.posterior(NUTS).end_gradient(path, state)
            assert value == density and np.array_equal(again, gradient)


# ---- references of the user's --------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "tolerance"), [(Narrow(), 1e-7), (WithGradient(), 1e-12)])
def test_a_reference_of_the_users_equals_the_native_one(source: Any, tolerance: float) -> None:
    instance, path, state = EXAMPLE.posterior(NUTS).instance, ReferencePath(UserReference(source)), np.array([1.2, 2.2])
    for beta in (0.0, 0.4, 1.0):
        density, _, gradient = instance.gradient(state, beta, path)
        native = instance.gradient(state, beta, PATHS["full"])
        assert density == pytest.approx(native[0], rel=1e-12)
        np.testing.assert_allclose(gradient, native[2], rtol=tolerance, atol=tolerance)
    runs = [run(EXAMPLE.posterior(HMC), one, "forward", FULL.sample(4, default_rng(2)), 3) for one in
            (path, PATHS["full"])]  # fmt: skip
    np.testing.assert_allclose(runs[0].log_weight, runs[1].log_weight, rtol=1e-4)
    assert (runs[0].failure == Failure.NONE).all()


def test_an_exception_in_a_reference_is_recorded_in_its_own_words() -> None:
    posterior, path = EXAMPLE.posterior(NUTS), ReferencePath(UserReference(Broken()))
    start = np.array([[2.0, 1.8], [3.0, 1.8]])
    one = run(posterior, path, "forward", start, 4)
    assert one.failure[1] == Failure.EXCEPTION and np.isnan(one.log_weight[1])
    assert one.message == "LookupError: no density above 2.5"
    with pytest.raises(DensityError, match="LookupError: no density above 2.5"):
        posterior.evolve(path, frozen_kernel(NUTS), 0.5, start[1], (1,), SeedSequence(5))
    assert np.isnan(posterior.log_ratio(path, start)).tolist() == [False, True]


def test_references_that_do_not_fit_are_refused() -> None:
    instance = EXAMPLE.posterior(NUTS).instance
    with pytest.raises(InvalidArgumentError, match="density of 3 coordinates; here it must be one of 2"):
        instance.terms(np.zeros((1, 2)), ReferencePath(diagonal(np.zeros(3), np.ones(3))))
    crooked = MixtureReference((Component(np.zeros(2), np.ones(2), matrix=np.eye(3)),), np.ones(1))
    with pytest.raises(InvalidArgumentError, match=r"matrix of a component of 2 .* \(2, 2\); received \(3, 3\)"):
        instance.terms(np.zeros((1, 2)), ReferencePath(crooked))


# ---- a law of one coordinate, and of the others given it -----------------------------------------------------


# ---- chains --------------------------------------------------------------------------------------------------


def run(
    posterior: StanPosterior, path: Path, direction: Any, start: np.ndarray, seed: int, **changes: Any
) -> AnnealRun:
    options = {"betas": BETAS, "kernel": frozen_kernel(posterior.kernel)} | changes
    return posterior.anneal(
        path, direction=direction, initial=start, seeds=SeedSequence(seed).spawn(len(start)), **options
    )


def draw_base(path: Path, n: int, rng: Generator) -> np.ndarray:
    return EXAMPLE.draw(0.0, n, rng) if path.reference is None else path.reference.sample(n, rng)


def z_of_one(log_values: np.ndarray) -> float:
    """Return z of E[exp(log_values)] = 1."""
    values = np.exp(log_values)
    return float((values.mean() - 1) / (values.std(ddof=1) / np.sqrt(len(values))))


@pytest.mark.statistical
@pytest.mark.parametrize("kernel", [NUTS, HMC], ids=["NUTS", "HMC"])
@OF_REFERENCE
def test_weights_are_unbiased_and_enclose_the_log_evidence(kernel: StanKernel, path: Path) -> None:
    """E[w_fwd] = Z and E[1 / w_rev] = 1 / Z within 4 standard errors, with as few temperatures as leave a gap."""
    posterior, exact, rng = EXAMPLE.posterior(kernel), EXAMPLE.log_evidence, default_rng(12)
    betas = np.linspace(0, 1, 5)
    forward = run(posterior, path, "forward", draw_base(path, 3000, rng), 13, betas=betas)
    reverse = run(posterior, path, "reverse", EXAMPLE.draw(1.0, 3000, rng), 14, betas=betas)
    assert (forward.failure == Failure.NONE).all() and (reverse.failure == Failure.NONE).all()
    assert forward.log_weight.mean() < exact < reverse.log_weight.mean()
    assert abs(z_of_one(forward.log_weight - exact)) < 4
    assert abs(z_of_one(exact - reverse.log_weight)) < 4
    # Negative control: other weights of the same chains fail the same check.
    assert abs(z_of_one(forward.log_ratio[:, -1] - exact)) > 4


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@ALL
def test_a_run_records_what_the_contract_says(path: Path, direction: str) -> None:
    start = draw_base(path, 3, default_rng(15))
    one = run(EXAMPLE.posterior(NUTS), path, direction, start, 16)
    ends = np.stack([one.state_at_base, one.state_at_end], axis=1)
    for chain, pair in enumerate(ends):
        np.testing.assert_allclose(one.log_ratio[chain, [0, -1]], log_ratio(path, pair), rtol=1e-9)
        np.testing.assert_allclose(one.log_base_density[chain], log_base(path, pair), rtol=1e-9)
    np.testing.assert_allclose(one.log_weight, path.log_weight(BETAS, one.log_ratio), rtol=1e-12)
    assert np.all(one.n_evaluations == 1)


@pytest.mark.parametrize("path", [*list(PATHS.values())[1:], ReferencePath(UserReference(Narrow()))])
def test_runs_are_bit_equal_for_any_batching_and_after_reuse(path: Path) -> None:
    posterior, frozen = EXAMPLE.posterior(NUTS), frozen_kernel(NUTS)
    start, seeds = draw_base(path, 6, default_rng(17)), SeedSequence(18).spawn(6)

    def some(rows: slice) -> AnnealRun:
        return posterior.anneal(path, BETAS, frozen, direction="reverse", initial=start[rows], seeds=seeds[rows])

    whole = some(slice(None))
    many = Conjugate(default_rng(19).normal(size=20_001), np.array([1, 2])).posterior(NUTS)
    many.evolve(path, frozen, 1.0, start[0], (3,), seeds[0])
    many.adapt(path, 0.1, start[0], seeds[1], 30, None)
    for rows in (slice(0, 1), slice(1, 4), slice(4, 6)):
        part = some(rows)
        for name in ("log_weight", "log_ratio", "state_at_base", "log_base_density", "n_gradients"):
            np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[rows], err_msg=name)


@OF_REFERENCE
def test_start_draws_depend_on_their_own_seed_alone(path: ReferencePath) -> None:
    posterior, seeds = EXAMPLE.posterior(NUTS), SeedSequence(20).spawn(5)
    draws = posterior.draw_base(path, seeds)
    np.testing.assert_array_equal(posterior.draw_base(path, seeds[3:]), draws[3:])
    np.testing.assert_array_equal(draws[2], path.reference.sample(1, default_rng(seeds[2]))[0])


@pytest.mark.statistical
@OF_REFERENCE
def test_at_beta_0_the_program_is_not_evaluated(path: ReferencePath) -> None:
    """Counts, and the law of the chain: its means are those of the reference, within 5 batch standard errors."""
    posterior = EXAMPLE.posterior(NUTS)
    state = path.reference.sample(1, default_rng(21))[0]
    evolution = posterior.evolve(path, frozen_kernel(NUTS), 0.0, state, range(1, 4001), SeedSequence(22))
    assert (evolution.n_gradients, evolution.n_evaluations) == (0, 0)
    batches = evolution.states.reshape(40, 100, 2).mean(axis=1)
    exact = path.reference.sample(200_000, default_rng(23)).mean(axis=0)
    z = (batches.mean(axis=0) - exact) / (batches.std(axis=0, ddof=1) / np.sqrt(40))
    assert np.all(np.abs(z) < 5), z
    adaptation = posterior.adapt(path, 0.0, state, SeedSequence(24), 100, None)
    assert (adaptation.n_gradients, adaptation.n_evaluations) == (0, 100)
    assert adaptation.log_ratio[-1] == pytest.approx(log_ratio(path, adaptation.state[None])[0])
    warm = posterior.adapt(path, 0.5, adaptation.state, SeedSequence(25), 100, adaptation.settings)
    assert warm.n_gradients > 100 and warm.n_evaluations == 1
    assert warm.log_ratio[-1] == pytest.approx(log_ratio(path, warm.state[None])[0])


# ---- failures ------------------------------------------------------------------------------------------------


def failing(mode: int, y: float = 0.5) -> StanPosterior:
    return StanPosterior(compiled(FAILING).instance({"mode": mode, "y": y}), EXAMPLE, NUTS)


def test_a_zero_likelihood_does_not_stop_the_prior() -> None:
    posterior, path, state = failing(4), PriorPath(), np.array([1.5])
    density, ratio, gradient = posterior.instance.gradient(state, 0.0, path)
    assert (density, ratio) == (pytest.approx(-0.5 * np.log(2 * np.pi) - 1.125), -np.inf)
    assert gradient.tolist() == [-1.5]
    forward = posterior.anneal(
        path, np.array([0.0, 0.5, 1.0]), PLAIN, direction="forward", initial=np.array([[1.5], [0.2]]),
        seeds=SeedSequence(26).spawn(2),
    )  # fmt: skip
    assert forward.failure.tolist() == [Failure.ZERO_RATIO, Failure.NONE]
    assert forward.log_weight[0] == -np.inf and np.isfinite(forward.log_weight[1])


@pytest.mark.parametrize(
    ("mode", "failure"),
    [(1, Failure.ZERO_RATIO), (3, Failure.NAN), (4, Failure.ZERO_RATIO), (5, Failure.ZERO_RATIO)],
)
def test_draws_of_a_reference_outside_the_support_of_the_program(mode: int, failure: Failure) -> None:
    path = ReferencePath(diagonal(np.array([0.3]), np.array([1.0])))
    one = failing(mode).anneal(
        path, BETAS, PLAIN, direction="forward", initial=np.array([[0.2], [1.5]]), seeds=SeedSequence(27).spawn(2)
    )
    assert one.failure.tolist() == [Failure.NONE, failure]
    assert np.isfinite(one.log_weight[0])
    assert one.log_weight[1] == -np.inf if failure == Failure.ZERO_RATIO else np.isnan(one.log_weight[1])


class Bounded:
    """A reference that is zero above 1."""

    def sample(self, n: int, rng: Generator) -> np.ndarray:
        return -np.abs(rng.normal(size=(n, 1))) + 1.0

    def log_density(self, states: np.ndarray) -> np.ndarray:
        inside = states[:, 0] < 1.0
        return np.where(inside, np.log(2 / np.sqrt(2 * np.pi)) - 0.5 * (states[:, 0] - 1.0) ** 2, -np.inf)


def test_exact_draws_outside_the_support_of_a_reference_are_errors() -> None:
    path = ReferencePath(UserReference(Bounded()))
    one = failing(0).anneal(
        path, BETAS, PLAIN, direction="reverse", initial=np.array([[1.5], [0.2]]), seeds=SeedSequence(28).spawn(2)
    )
    assert one.failure[0] == Failure.ZERO_INITIAL and np.isnan(one.log_weight[0])


def test_paths_that_a_program_does_not_allow_are_refused() -> None:
    posterior = StanPosterior(EXAMPLE.posterior(NUTS).instance, EXAMPLE, NUTS, {"prior": "No split."})
    with pytest.raises(InvalidArgumentError, match="No split. The path is PriorPath"):
        posterior.log_ratio(PriorPath(), np.zeros((1, 2)))
    assert posterior.draw_base(PriorPath(), SeedSequence(1).spawn(2)).shape == (2, 2)
    assert np.isfinite(posterior.log_ratio(PATHS["full"], np.zeros((1, 2)))).all()
