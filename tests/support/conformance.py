"""Checks that every backend must pass, as functions of any `Model`; each raises AssertionError.

The first group checks the contract (shapes, seeds, bit-equality), the second the mathematics of annealed chains
against exact log evidence. A negative control runs the same function on a broken model and expects the error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cloudpickle
import numpy as np
from numpy.random import SeedSequence

from bread.backends.base import AnnealRun, Failure, Kernel, Model, Posterior
from bread.paths.kinds import Path
from bread.statistics.bounds.alarms import combined_p_value, rank_p_values, weighted_ranks
from bread.statistics.bounds.bounds import log_evidence_lower_many, log_evidence_upper_many
from tests.support.annealed_pools import PATH, anneal_pool, log_evidences, tuned_kernel

__all__ = [
    "PATH",
    "anneal_pool",
    "assert_mean",
    "check_bit_equal_batching",
    "check_contract_shapes",
    "check_end_gradient",
    "check_evidence",
    "check_forward_reverse_identities",
    "check_frozen",
    "check_gap_rate",
    "check_simulate_is_exact",
    "check_weighted_ranks",
    "tuned_kernel",
]
INTEGER_FIELDS = ("n_gradients", "n_evaluations", "n_divergences", "failure")


def global_numbers() -> np.ndarray:
    """Return the state of NumPy's global random numbers."""
    return np.array(np.random.get_state()[1])  # noqa: NPY002


def assert_mean(values: np.ndarray, expected: float, n_errors: float, what: str) -> None:
    """Assert that the mean of independent values is within ``n_errors`` standard errors of what is expected."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    z = (values.mean() - expected) / error
    assert np.isfinite(z) and abs(z) <= n_errors, (
        f"{what}: mean {values.mean():.4g}, expected {expected:.4g}, z = {z:.1f} (limit {n_errors})"
    )


# ---- the contract --------------------------------------------------------------------------------------------


def check_simulate_is_exact(model: Model, *, n: int = 6, seed: int = 1) -> None:
    """Seeds, round trip of the coordinates, held parameters, shapes and types of the data."""
    layout, real = model.info.layout, model.info.data
    root = SeedSequence(seed)
    before = global_numbers()
    simulations = model.simulate(n, fixed=None, seed=root)
    assert (global_numbers() == before).all(), "simulate touched NumPy's global random numbers"
    assert root.n_children_spawned == 0, "simulate spawned from the caller's seed"
    assert len(simulations) == n and simulations.states.shape == (n, layout.dim)
    assert list(simulations.parameters) == list(layout.parameters)
    assert list(simulations.data) == list(real.observed_dims)
    for name, values in simulations.data.items():
        assert values.shape == (n, *real.observed[name].shape), f"shape of {name!r}"
        assert values.dtype == real.observed[name].dtype, f"type of {name!r}"
        assert n < 2 or not np.array_equal(values[0], values[1]), f"{name!r} is the same in two simulations"
    for name, values in model.constrain(simulations.states).items():
        np.testing.assert_allclose(
            np.asarray(values, float), np.asarray(simulations.parameters[name], float), rtol=1e-9, atol=1e-12
        )
    again = model.simulate(n, fixed=None, seed=SeedSequence(seed))
    fewer = model.simulate(n - 2, fixed=None, seed=SeedSequence(seed))
    assert np.array_equal(again.states, simulations.states), "the same seed gave other states"
    assert np.array_equal(fewer.states, simulations.states[: n - 2]), "draw i depends on the number of draws"
    for name, values in simulations.data.items():
        assert np.array_equal(again.data[name], values) and np.array_equal(fewer.data[name], values[: n - 2])
    fixed = {name: simulations.parameters[name][0] for name in layout.hyperparameters}
    held = model.simulate(n, fixed=fixed, seed=SeedSequence(seed + 1))
    for name, value in fixed.items():
        np.testing.assert_allclose(
            np.asarray(held.parameters[name], float), np.broadcast_to(value, held.parameters[name].shape), rtol=1e-9
        )


def check_contract_shapes(model: Model, kernel: Kernel, *, n_chains: int = 3, path: Path = PATH) -> None:
    """Shapes, types, and the definition of the log weight, in both directions."""
    layout, real = model.info.layout, model.info.data
    assert len(layout.discrete) == layout.dim and set(layout.hyperparameters) <= set(layout.parameters)
    for name, dims in real.observed_dims.items():
        assert real.observed[name].ndim == len(dims), f"dimensions of {name!r}"
    simulations = model.simulate(1, fixed=None, seed=SeedSequence(5))
    posterior = model.condition(simulations.data_of(0))
    betas = np.array([0.0, 0.1, 0.3, 0.6, 1.0])
    seeds = SeedSequence(6).spawn(n_chains)
    start = posterior.draw_base(path, SeedSequence(7).spawn(n_chains))
    assert start.shape == (n_chains, layout.dim) and len(np.unique(start, axis=0)) == n_chains
    exact = np.repeat(simulations.states, n_chains, axis=0)
    for direction, begin in (("forward", start), ("reverse", exact)):
        run = posterior.anneal(path, betas, kernel, direction=direction, initial=begin, seeds=seeds)
        assert run.log_weight.shape == (n_chains,) and run.log_ratio.shape == (n_chains, len(betas))
        assert run.state_at_base.shape == run.state_at_end.shape == (n_chains, layout.dim)
        assert run.log_base_density.shape == (n_chains, 2)
        for field in INTEGER_FIELDS:
            values = getattr(run, field)
            assert values.shape == (n_chains,) and np.issubdtype(values.dtype, np.integer), field
        assert run.seconds > 0 and run.message == "" and (run.failure == Failure.NONE).all()
        np.testing.assert_allclose(run.log_weight, path.log_weight(betas, run.log_ratio), rtol=1e-9)
        kept = run.state_at_base if direction == "forward" else run.state_at_end
        moved = run.state_at_end if direction == "forward" else run.state_at_base
        assert np.array_equal(kept, begin), f"{direction}: the chain does not start where it was told to"
        assert not np.array_equal(moved, begin), f"{direction}: the chain never moved"
        for knot, states in ((0, run.state_at_base), (-1, run.state_at_end)):
            ratio = posterior.log_ratio(path, states)
            np.testing.assert_allclose(run.log_ratio[:, knot], ratio, rtol=1e-9, atol=1e-12)
            end = run.log_base_density[:, knot] + run.log_ratio[:, knot]
            np.testing.assert_allclose(posterior.log_density(path, states), end, rtol=1e-9, atol=1e-9)
            base = posterior.log_base(path, states)
            np.testing.assert_allclose(base, run.log_base_density[:, knot], rtol=1e-9, atol=1e-9)
    evolution = posterior.evolve(path, kernel, 1.0, exact[0], (0, 2, 2, 5), seeds[0])
    assert evolution.states.shape == (4, layout.dim)
    assert np.array_equal(evolution.states[0], exact[0]) and np.array_equal(evolution.states[1], evolution.states[2])
    adaptation = posterior.adapt(path, 0.5, start[0], seeds[0], 40, None)
    assert adaptation.state.shape == (layout.dim,) and adaptation.log_ratio.ndim == 1 and len(adaptation.log_ratio) > 0
    assert all((np.asarray(value) > 0).all() for value in adaptation.settings.values())
    assert set(adaptation.settings) == set(kernel.settings)
    if path.reference is not None:
        check_end_gradient(posterior, path, exact[0])


def check_end_gradient(posterior: Posterior, path: Path, state: np.ndarray) -> None:
    """Log density and gradient at beta = 1, by central differences."""
    reference = path.reference
    assert reference is not None
    around = state + 1e-5 * np.concatenate([np.zeros((1, len(state))), np.eye(len(state)), -np.eye(len(state))])
    values = posterior.log_ratio(path, around) + reference.log_density(around)
    value, gradient = posterior.end_gradient(path, state)
    np.testing.assert_allclose(value, values[0], rtol=1e-9)
    up, down = values[1:].reshape(2, -1)
    np.testing.assert_allclose(gradient, (up - down) / 2e-5, rtol=1e-4, atol=1e-4)


def check_bit_equal_batching(model: Model, kernel: Kernel, *, n_chains: int = 4, path: Path = PATH) -> None:
    """A chain does not depend on the batch it runs in, nor on the order of the chains."""
    simulations = model.simulate(1, fixed=None, seed=SeedSequence(11))
    posterior = model.condition(simulations.data_of(0))
    betas = np.linspace(0.0, 1.0, 7)
    seeds = SeedSequence(12).spawn(n_chains)
    starts = {
        "forward": posterior.draw_base(path, seeds),
        "reverse": np.repeat(simulations.states, n_chains, axis=0),
    }
    for direction, start in starts.items():
        whole = posterior.anneal(path, betas, kernel, direction=direction, initial=start, seeds=seeds)
        for rows in [[chain] for chain in range(n_chains)] + [[2, 0]]:
            part = posterior.anneal(
                path, betas, kernel, direction=direction, initial=start[rows], seeds=[seeds[row] for row in rows]
            )
            _assert_same_run(part, whole, rows)


def check_frozen(model: Model, kernel: Kernel, *, path: Path = PATH) -> None:
    """Annealing changes nothing: not the kernel, the start, the data nor the global random numbers."""
    simulations = model.simulate(2, fixed=None, seed=SeedSequence(21))
    data = simulations.data_of(0)
    for values in (kernel.betas, *kernel.settings.values(), *data.values(), simulations.states):
        if isinstance(values, np.ndarray):
            values.setflags(write=False)  # a write raises
    copies = {name: values.copy() for name, values in kernel.settings.items()}
    posterior, betas = model.condition(data), np.linspace(0.0, 1.0, 6)
    seeds = SeedSequence(22).spawn(2)
    start = simulations.states[[0, 0]]
    start.setflags(write=False)
    before = global_numbers()

    def reverse(one: Any) -> AnnealRun:
        return one.anneal(path, betas, kernel, direction="reverse", initial=start, seeds=seeds)

    run = reverse(posterior)
    model.condition(simulations.data_of(1)).anneal(
        path, betas, kernel, direction="forward", initial=start, seeds=SeedSequence(23).spawn(2)
    )
    _assert_same_run(reverse(posterior), run, [0, 1])
    _assert_same_run(reverse(model.condition(data)), run, [0, 1])
    copy = cloudpickle.loads(cloudpickle.dumps(model))
    _assert_same_run(reverse(copy.condition(data)), run, [0, 1])
    assert (global_numbers() == before).all(), "annealing touched NumPy's global random numbers"
    for name, values in copies.items():
        assert np.array_equal(kernel.settings[name], values), f"annealing changed the setting {name!r}"


def _assert_same_run(part: AnnealRun, whole: AnnealRun, rows: list[int]) -> None:
    for field in ("log_weight", "log_ratio", "state_at_base", "state_at_end", "log_base_density", *INTEGER_FIELDS):
        assert np.array_equal(getattr(part, field), getattr(whole, field)[rows], equal_nan=True), field


# ---- the mathematics ------------------------------------------------------------------------------------------


def check_evidence(
    model: Model,
    kernel: Kernel,
    *,
    log_evidence: Callable[[Any], float] | None = None,
    n_temperatures: int = 512,
    n_simulations: int = 20,
    n_chains: int = 4,
    seed: int = 31,
    betas: np.ndarray | None = None,
    n_errors: float = 3.0,
    path: Path = PATH,
) -> None:
    """The exact log evidence is inside the many-chain sandwich, within 3 standard errors over simulations."""
    betas = np.linspace(0.0, 1.0, n_temperatures) if betas is None else betas
    pool = anneal_pool(model, kernel, betas, n_simulations=n_simulations, n_chains=n_chains, seed=seed, path=path)
    exact = log_evidences(model, pool.simulations.data, log_evidence)
    below = exact - log_evidence_lower_many(pool.forward)
    above = log_evidence_upper_many(pool.forward, pool.reverse) - exact
    for what, values in (("lower", below), ("upper", above)):
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert values.mean() >= -n_errors * error, (
            f"exact log evidence is on the wrong side of the {what} end by {-values.mean():.3g} nats "
            f"(standard error {error:.2g})"
        )


def check_forward_reverse_identities(
    model: Model,
    kernel: Kernel,
    betas: np.ndarray,
    *,
    log_evidence: Callable[[Any], float] | None = None,
    n_simulations: int = 1000,
    n_chains: int = 4,
    seed: int = 41,
    n_errors: float = 4.0,
    exact_starts: Callable[[np.ndarray], np.ndarray] | None = None,
    path: Path = PATH,
) -> None:
    """E[w_fwd] = Z, E[1 / w_rev] = 1 / Z and Crooks' relation for a bounded function, within 4 standard errors.

    The last, E_fwd[w / (w + Z)] = E_rev[Z / (w + Z)], has bounded terms, so that its standard error can be trusted
    whatever the tails (Bennett 1976).
    """
    pool = anneal_pool(
        model,
        kernel,
        betas,
        n_simulations=n_simulations,
        n_chains=n_chains,
        seed=seed,
        exact_starts=exact_starts,
        path=path,
    )
    exact = log_evidences(model, pool.simulations.data, log_evidence)[:, None]
    forward, reverse = pool.forward - exact, pool.reverse - exact
    bounded = (1.0 / (1.0 + np.exp(-forward))).mean(axis=1) - (1.0 / (1.0 + np.exp(reverse))).mean(axis=1)
    assert_mean(np.exp(forward).mean(axis=1), 1.0, n_errors, "E[w_fwd] / Z")
    assert_mean(np.exp(-reverse).mean(axis=1), 1.0, n_errors, "E[1 / w_rev] Z")
    assert_mean(bounded, 0.0, n_errors, "Crooks' relation")


def check_weighted_ranks(
    model: Model,
    kernel: Kernel,
    betas: np.ndarray,
    *,
    n_simulations: int = 1000,
    n_chains: int = 4,
    seed: int = 51,
    level: float = 1e-3,
    exact_starts: Callable[[np.ndarray], np.ndarray] | None = None,
    path: Path = PATH,
) -> None:
    """The weighted rank of the reverse path is uniform for functions of both ends of a path.

    Products of the two ends show a kernel that leaves its target invariant but is not run by its true reversal.
    """
    pool = anneal_pool(
        model,
        kernel,
        betas,
        n_simulations=n_simulations,
        n_chains=n_chains,
        seed=seed,
        exact_starts=exact_starts,
        path=path,
    )
    uniforms = np.random.default_rng(seed).random((n_simulations, pool.reverse_paths.shape[-1]))
    ranks = weighted_ranks(pool.forward, pool.reverse[:, 0], pool.forward_paths, pool.reverse_paths[:, 0], uniforms)
    p_value = combined_p_value(rank_p_values(ranks))
    assert p_value > level, f"weighted ranks are not uniform: p = {p_value:.2g} (level {level})"


def check_gap_rate(
    model: Model,
    kernel: Kernel,
    *,
    counts: Sequence[int] = (16, 32, 64, 128),
    n_simulations: int = 120,
    n_chains: int = 4,
    seed: int = 61,
    n_errors: float = 3.0,
    curvature: float = 0.1,
    path: Path = PATH,
) -> None:
    """The gap falls as 1 / T: log-log slope -1 within 3 standard errors, plus the curvature that is left at these T.

    The standard deviation of a gap falls as the root of 1 / T only, so the number of simulations grows with T.
    """
    x = np.log(np.array(counts, dtype=float))
    means, errors = [], []
    for place, count in enumerate(counts):
        betas = np.linspace(0.0, 1.0, count)
        gaps = anneal_pool(
            model,
            kernel,
            betas,
            n_simulations=n_simulations * count // counts[0],
            n_chains=n_chains,
            seed=seed + place,
            path=path,
        ).gaps
        means.append(gaps.mean())
        errors.append(gaps.std(ddof=1) / np.sqrt(len(gaps)))
    assert min(means) > 0, f"a mean gap is negative: {means}"
    relative = np.array(errors) / np.array(means)
    weights = 1.0 / relative**2
    centred = x - np.average(x, weights=weights)
    slope = float((weights * centred * np.log(means)).sum() / (weights * centred**2).sum())
    slope_error = float(1.0 / np.sqrt((weights * centred**2).sum()))
    assert slope_error < 0.2, f"too few simulations to see the rate: standard error {slope_error:.2g}"
    assert abs(slope + 1.0) <= n_errors * slope_error + curvature, (
        f"the gap falls as T^{slope:.2f} (standard error {slope_error:.2g}), not as 1 / T; gaps {means}"
    )
