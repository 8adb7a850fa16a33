"""Figures 1 and 2 of Habeck (2017): evidence estimators on a path of Gaussians.

From N(20, 10^2) to N(0, 1) through K steps; the kernels keep tau of the distance to the mean, so that all laws along a
path are Gaussian, and the mean work of both directions, and with it B, is known.

    python examples/papers/habeck_figure_2.py --output output
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from bread_figures import arguments, save, write_csv

from bread.statistics.evidence import evidence
from bread.statistics.evidence.evidence_posterior import histogram_posterior

TRUTH = -np.log(10.0)
TAU = 0.5  # the paper does not say; from 0 (independent draws) to 1 (no move)
N_CHAINS = 100  # M of the paper
LENGTHS = (3, 5, 10, 20, 30, 50, 100, 200)
HEADER = ("K", "estimator", "bias", "standard_deviation")
ESTIMATORS = ("cumulant, forward", "cumulant, combined", "AIS", "reverse AIS", "BAR", "histogram")


def laws(n_steps):
    """Return means and standard deviations of the n_steps + 1 laws of the path."""
    return np.linspace(20.0, 0.0, n_steps + 1), np.linspace(10.0, 1.0, n_steps + 1)


def log_weights(rng, shape, n_steps):
    """Return forward and reverse log weights of independent chains."""
    mean, deviation = laws(n_steps)

    def log_density(x, k):
        return -0.5 * ((x - mean[k]) / deviation[k]) ** 2

    def move(x, k):
        noise = np.sqrt(1 - TAU**2) * deviation[k] * rng.standard_normal(shape)
        return mean[k] + TAU * (x - mean[k]) + noise

    forward, reverse = np.zeros(shape), np.zeros(shape)
    x = mean[0] + deviation[0] * rng.standard_normal(shape)
    for k in range(n_steps):
        forward += log_density(x, k + 1) - log_density(x, k)
        x = move(x, k + 1)
    x = mean[-1] + deviation[-1] * rng.standard_normal(shape)
    for k in reversed(range(n_steps)):
        x = move(x, k + 1)
        reverse += log_density(x, k + 1) - log_density(x, k)
    return forward, reverse


def expected_log_weights(n_steps):
    """Return the mean log weight of forward and of reverse chains, in closed form."""
    mean, deviation = laws(n_steps)

    def work(centre, variance, k):
        return sum(
            sign * (variance + (centre - mean[place]) ** 2) / deviation[place] ** 2
            for sign, place in ((-0.5, k + 1), (0.5, k))
        )

    def moved(centre, variance, k):
        return mean[k] + TAU * (centre - mean[k]), TAU**2 * variance + (1 - TAU**2) * deviation[k] ** 2

    law, forward = (mean[0], deviation[0] ** 2), 0.0
    for k in range(n_steps):
        forward += work(*law, k)
        law = moved(*law, k + 1)
    law, reverse = (mean[-1], deviation[-1] ** 2), 0.0
    for k in reversed(range(n_steps)):
        law = moved(*law, k + 1)
        reverse += work(*law, k)
    return forward, reverse


def estimates(forward, reverse, seed):
    """Return the six estimates of one repetition, in the order of the paper's panels."""
    posterior = histogram_posterior(forward, reverse, np.random.default_rng(seed), n_draws=400)
    return (
        evidence.cumulant_forward(forward).value,
        evidence.cumulant_combined(forward, reverse).value,
        evidence.average_weight(forward).value,
        evidence.harmonic_weight(reverse).value,
        evidence.bennett(forward, reverse).value,
        posterior.mean,
    )


def main():
    """Write the table, the figure, and a check of simulated against closed-form means."""
    options = arguments(__doc__)
    lengths = LENGTHS[1::3] if options.quick else LENGTHS
    repetitions = 40 if options.quick else 1000
    rng, rows, bounds, tables = np.random.default_rng(options.seed), [], [], {}
    for n_steps in lengths:
        forward, reverse = log_weights(rng, (repetitions, N_CHAINS), n_steps)
        expected = expected_log_weights(n_steps)
        errors = [w.std() / np.sqrt(w.size) for w in (forward, reverse)]
        scores = [
            (w.mean() - mean) / error for w, mean, error in zip((forward, reverse), expected, errors, strict=True)
        ]
        bounds.append((n_steps, *map(float, expected), float(expected[1] - expected[0]), *map(float, scores)))
        found = np.array([estimates(f, r, i) for i, (f, r) in enumerate(zip(forward, reverse, strict=True))]) - TRUTH
        tables[n_steps] = found
        rows += [
            (n_steps, name, float(found[:, i].mean()), float(found[:, i].std(ddof=1)))
            for i, name in enumerate(ESTIMATORS)
        ]
        print(f"K = {n_steps}: bounds {expected[0]:.3f}, {expected[1]:.3f}; B = {expected[1] - expected[0]:.3f} nats")
    write_csv(options.output / "habeck_figure_2.csv", HEADER, rows)
    write_csv(
        options.output / "habeck_figure_1c.csv",
        ("K", "lower_bound", "upper_bound", "B", "z_forward", "z_reverse"),
        bounds,
    )
    figure, axes = plt.subplots(2, 3, figsize=(9.5, 5.2), sharex=True, sharey=True, layout="constrained")
    for i, (ax, name) in enumerate(zip(axes.ravel(), ESTIMATORS, strict=True)):
        means, spreads = (np.array([f(tables[k][:, i]) for k in lengths]) for f in (np.mean, np.std))
        ax.fill_between(lengths, means - spreads, means + spreads, color="#56B4E9", alpha=0.4, linewidth=0)
        ax.plot(lengths, means, color="#D55E00")
        ax.axhline(0.0, color="0.4", linewidth=0.8, linestyle="--")
        ax.set_title(f"{'ABCDEF'[i]}  {name}", fontsize=10)
        ax.set_ylim(-0.35, 0.35)
    for ax in axes[1]:
        ax.set_xlabel("steps K")
    for ax in axes[:, 0]:
        ax.set_ylabel("error of log Z (nats)")
    save(figure, options.output / "habeck_figure_2.png")


if __name__ == "__main__":
    main()
