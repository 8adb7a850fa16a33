"""Pools of chains along reference paths, one path a data set, on reference models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence, default_rng
from scipy.special import expit

from bread.backends.base import Failure, Kernel
from bread.paths.kinds import PriorPath, ReferencePath
from bread.paths.mixture import Component, MixtureReference
from bread.statistics.bounds.alarms import combined_p_value, rank_p_values, theory_alarm, weighted_ranks
from bread.statistics.bounds.bounds import log_evidence_lower_many, log_evidence_upper_many
from tests.models.reference import BetaBinomial, HMCKernel, NormalScale
from tests.support.annealed_pools import KNOTS, Pool, path_functions
from tests.support.conformance import assert_mean
from tests.support.funnel import SMALL, Funnel, RowReferences
from tests.support.reference_models import CONJUGATE

PATH_MODELS = {
    "normal_mean": CONJUGATE["normal_mean_hmc"],
    "beta_binomial": BetaBinomial(np.array([3, 1, 5]), np.array([4, 3, 8]), 2.0, 3.0, kernel=HMCKernel(5)),
    "normal_scale": NormalScale(np.array([0.3, -1.1, 0.8, 1.9, -0.2, 0.6]), kernel=HMCKernel(5)),
    "hierarchical": CONJUGATE["hierarchical_hmc"],
    "funnel": SMALL,
}
NESTED_WIDTHS = {"nested": 1.2, "narrow": 0.5}  # of a funnel's references, in standard deviations of the posterior


def centre_and_scale(model: Any, data: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return where the posterior of every row of data is, (row, dim), and about how wide, (dim,), from data alone."""
    statistics = model.summarise(data)
    if isinstance(model, BetaBinomial):
        successes = model.alpha + statistics["successes"]
        total = model.alpha + model.beta + model.n_trials
        return np.log(successes / (total - successes))[:, None], np.array([0.7])
    if isinstance(model, NormalScale):
        return 0.5 * np.log((statistics["squares"] + 0.1) / (len(model.y) + 1.0))[:, None], np.array([0.35])
    mean, cholesky = model.gaussian_targets(np.array([1.0]), statistics)
    return mean[0, 0], np.sqrt((cholesky[0, 0] ** 2).sum(axis=1))


def centred_reference(kind: str, scale: np.ndarray) -> MixtureReference:
    """Return a reference about the origin, wider than the posterior."""
    zero, dim = np.zeros(len(scale)), len(scale)
    if kind == "gaussian":
        return MixtureReference((Component(zero, 1.3 * scale),), np.ones(1))
    if kind == "t":
        return MixtureReference((Component(zero, 1.2 * scale, degrees=np.full(dim, 7.0)),), np.ones(1))
    if kind == "mixture":
        turned = Component(-0.4 * scale, 1.3 * scale, matrix=np.eye(dim) + 0.2 * np.tri(dim, k=-1))
        return MixtureReference((Component(0.5 * scale, 1.2 * scale), turned), np.array([0.4, 0.6]))
    return MixtureReference((Component(zero, 0.5 * scale),), np.ones(1))  # "narrow"


@dataclass(frozen=True)
class Shifted:
    """A reference for every row: ``base`` moved by that row's centre."""

    base: MixtureReference
    centre: np.ndarray  # (row, dim)
    label: str = "shifted"

    def sample_rows(self, seeds):
        return np.array([self.base.sample(1, default_rng(seed))[0] for seed in seeds]) + self.centre

    def log_density(self, states):
        return self.base.log_density(states - self.centre)

    def gradient(self, states):
        return self.base.gradient(states - self.centre)


def path_of(model, kind, data, *, centre=None, path=ReferencePath):
    """Return the path of every row of data.

    For negative controls ``centre`` replaces what the data say, and ``path`` is another class of paths.
    """
    if isinstance(model, Funnel):
        return path(RowReferences(model.references(data, NESTED_WIDTHS[kind], centre)))
    own, scale = centre_and_scale(model, data)
    centre = own if centre is None else centre
    return path(Shifted(centred_reference(kind, scale), centre))


def tuned_path_kernel(model, kind: str, *, seed: int = 300, n_steps: int = 100) -> Kernel:
    """Adapt at fixed knots along the path of one extra simulated data set."""
    simulate, start, adapt = SeedSequence(seed).spawn(3)
    simulations = model.simulate(1, fixed=None, seed=simulate)
    path, posterior = path_of(model, kind, simulations.data), model.condition(simulations.data_of(0))
    state = posterior.draw_base(PriorPath(), [start])[0]
    adaptations, previous = [], None
    for beta, child in zip(KNOTS, adapt.spawn(len(KNOTS)), strict=True):
        adaptations.append(posterior.adapt(path, beta, state, child, n_steps, previous))
        state, previous = adaptations[-1].state, adaptations[-1].settings
    settings = {name: np.stack([one.settings[name] for one in adaptations]) for name in adaptations[0].settings}
    return Kernel(betas=np.array(KNOTS), settings=settings)


def path_pool(
    model,
    kind,
    kernel,
    betas,
    *,
    n_simulations,
    n_chains,
    seed,
    n_between=5,
    is_given_truth=False,
    weighs=ReferencePath,
) -> Pool:
    """Simulate, and anneal ``n_chains`` chains each way along each data set's own path.

    ``is_given_truth`` puts the exact draw in the place of what the data say, and ``weighs`` is a class
    of paths with other weights (defects, for negative controls).
    """
    simulate, start, forward, evolve, reverse = SeedSequence(seed).spawn(5)
    simulations = model.simulate(n_simulations, fixed=None, seed=simulate)
    total, keep = n_simulations * n_chains, tuple(n_between * chain for chain in range(n_chains))
    few = simulations.data
    many = {name: np.repeat(values, n_chains, axis=0) for name, values in few.items()}
    truth = simulations.states if is_given_truth else None
    many_truth = None if truth is None else np.repeat(truth, n_chains, axis=0)
    path = path_of(model, kind, few, centre=truth, path=weighs)
    starts = model.condition_rows(few).evolve_rows(
        path, kernel, 1.0, simulations.states, keep, evolve.spawn(n_simulations)
    )
    path = path_of(model, kind, many, centre=many_truth, path=weighs)
    posterior = model.condition_rows(many)
    first = path.reference.sample_rows(start.spawn(total))
    runs = {}
    for direction, begin, own in (("forward", first, forward), ("reverse", starts.reshape(total, -1), reverse)):
        run = posterior.anneal(path, betas, kernel, direction=direction, initial=begin, seeds=own.spawn(total))
        assert (run.failure <= Failure.ZERO_RATIO).all(), f"{direction} chains failed: {run.message}"
        runs[direction] = run
    shape = (n_simulations, n_chains)
    return Pool(
        simulations,
        runs["forward"].log_weight.reshape(shape),
        runs["reverse"].log_weight.reshape(shape),
        path_functions(runs["forward"]).reshape((*shape, -1)),
        path_functions(runs["reverse"]).reshape((*shape, -1)),
    )


def check_path_identities(model, pool: Pool, n_errors: float = 4.0) -> None:
    """E[w_fwd] = Z, E[1 / w_rev] = 1 / Z and Crooks' relation, within 4 standard errors over simulations."""
    exact = model.log_evidence_rows(pool.simulations.data)[:, None]
    forward, reverse = pool.forward - exact, pool.reverse - exact
    bounded = expit(forward).mean(axis=1) - expit(-reverse).mean(axis=1)
    assert_mean(bounded, 0.0, n_errors, "Crooks' relation")
    assert_mean(np.exp(forward).mean(axis=1), 1.0, n_errors, "E[w_fwd] / Z")
    assert_mean(np.exp(-reverse).mean(axis=1), 1.0, n_errors, "E[1 / w_rev] Z")


def check_path_sandwich(model, pool: Pool, n_errors: float = 3.0) -> None:
    """The exact log evidence is inside the many-chain sandwich, within 3 standard errors over simulations."""
    exact = model.log_evidence_rows(pool.simulations.data)
    ends = {
        "lower": exact - log_evidence_lower_many(pool.forward),
        "upper": log_evidence_upper_many(pool.forward, pool.reverse) - exact,
    }
    for what, values in ends.items():
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert values.mean() >= -n_errors * error, f"exact log evidence is on the wrong side of the {what} end"


def rank_p_value(pool: Pool, seed: int = 51) -> float:
    uniforms = np.random.default_rng(seed).random((len(pool.forward), pool.reverse_paths.shape[-1]))
    ranks = weighted_ranks(pool.forward, pool.reverse[:, 0], pool.forward_paths, pool.reverse_paths[:, 0], uniforms)
    return combined_p_value(rank_p_values(ranks))


def check_path_ranks(pool: Pool, level: float = 1e-3) -> None:
    """The weighted rank of the reverse path is uniform for functions of both ends of a path."""
    p_value = rank_p_value(pool)
    assert p_value > level, f"weighted ranks are not uniform: p = {p_value:.2g} (level {level})"


def check_path_alarm(pool: Pool, level: float = 0.01) -> None:
    """The theory alarm does not ring."""
    p_value = theory_alarm(pool.forward, pool.reverse).p_value
    assert p_value > level, f"the theory alarm rings: p = {p_value:.2g}"


def part(pool: Pool, rows: slice) -> Pool:
    """Return some simulations of a pool."""
    own = pool.simulations
    simulations = replace(
        own,
        states=own.states[rows],
        parameters={name: values[rows] for name, values in own.parameters.items()},
        data={name: values[rows] for name, values in own.data.items()},
    )
    arrays = [getattr(pool, name)[rows] for name in ("forward", "reverse", "forward_paths", "reverse_paths")]
    return Pool(simulations, *arrays)
