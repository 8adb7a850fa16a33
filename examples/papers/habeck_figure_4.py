"""Figure 4 of Habeck (2017): the ten-state Potts model on 32 x 32 sites, and a restricted Boltzmann machine.

The Potts model at beta = 1 is so cold that a series in exp(-2) gives its log Z, where the paper has a run of parallel
tempering. The machine is small (20 visible, 12 hidden units, random couplings), so that a sum over its
hidden states is the truth; the full model, moved by Gibbs steps, against the marginal one, moved by single flips.

    python examples/papers/habeck_figure_4.py --output output
"""

from __future__ import annotations

from itertools import pairwise

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from bread_figures import arguments, save, write_csv
from habeck_figure_3 import estimates
from lattices import log_weights, potts_series
from scipy.special import expit, logsumexp

COLOURS, COUPLING = 10, 2.0
BUDGET = 10_000_000  # K N of one chain; the paper has 10^9 a chain
LENGTHS = (300, 1000, 3000)  # K
PAPER = {"Potts": 1742.0}
HEADER = ("model", "K", "N", "M", "estimator", "estimate", "standard_error", "exact")
VISIBLE, HIDDEN = 20, 12


class Machine:
    """A restricted Boltzmann machine with log f(v, h) = a v + b h + v W h."""

    def __init__(self, rng):
        self.a, self.b = rng.normal(0.0, 0.5, VISIBLE), rng.normal(0.0, 0.5, HIDDEN)
        self.w = rng.normal(0.0, 0.8, (VISIBLE, HIDDEN))
        states = (np.arange(2**HIDDEN)[:, None] >> np.arange(HIDDEN)) & 1
        self.states = states.astype(float)
        self.log_f = self.marginal(self.states)
        self.log_z = float(logsumexp(self.log_f))

    def full(self, v, h):
        """Return log f at pairs of states."""
        return v @ self.a + h @ self.b + ((v @ self.w) * h).sum(axis=1)

    def marginal(self, h):
        """Return the log of the sum of f over the visible units."""
        return h @ self.b + np.logaddexp(0.0, self.a + h @ self.w.T).sum(axis=1)

    def hidden(self, rng, v, beta):
        """Draw hidden units given visible ones."""
        return (rng.random((len(v), HIDDEN)) < expit(beta * (self.b + v @ self.w))).astype(float)

    def visible(self, rng, h, beta):
        """Draw visible units given hidden ones."""
        return (rng.random((len(h), VISIBLE)) < expit(beta * (self.a + h @ self.w.T))).astype(float)

    def exact_hidden(self, rng, n):
        """Draw hidden units from their marginal law, exactly."""
        return self.states[rng.choice(len(self.states), n, p=np.exp(self.log_f - self.log_z))]


def anneal_full(machine, rng, betas, n_updates, n):
    """Return log weights of the full model; reverse chains take the two Gibbs steps in the opposite order."""
    v, h = (rng.integers(0, 2, (n, size)).astype(float) for size in (VISIBLE, HIDDEN))
    forward, reverse = np.zeros(n), np.zeros(n)
    for low, high in pairwise(betas):
        forward += (high - low) * machine.full(v, h)
        for _ in range(n_updates):
            h = machine.hidden(rng, v, high)
            v = machine.visible(rng, h, high)
    h = machine.exact_hidden(rng, n)
    v = machine.visible(rng, h, 1.0)
    for low, high in zip(betas[-2::-1], betas[:0:-1], strict=True):
        for _ in range(n_updates):
            v = machine.visible(rng, h, high)
            h = machine.hidden(rng, v, high)
        reverse += (high - low) * machine.full(v, h)
    return forward + (VISIBLE + HIDDEN) * np.log(2), reverse + (VISIBLE + HIDDEN) * np.log(2)


def anneal_marginal(machine, rng, betas, n_updates, n):
    """Return log weights of the marginal model of the hidden units; Metropolis flips of random units."""

    def move(h, value, beta):
        for _ in range(n_updates):
            other = h.copy()
            rows, places = np.arange(n), rng.integers(0, HIDDEN, n)
            other[rows, places] = 1.0 - other[rows, places]
            proposed = machine.marginal(other)
            accepted = np.log(rng.random(n)) < beta * (proposed - value)
            h, value = np.where(accepted[:, None], other, h), np.where(accepted, proposed, value)
        return h, value

    h = rng.integers(0, 2, (n, HIDDEN)).astype(float)
    value = machine.marginal(h)
    forward, reverse = np.zeros(n), np.zeros(n)
    for low, high in pairwise(betas):
        forward += (high - low) * value
        h, value = move(h, value, high)
    h = machine.exact_hidden(rng, n)
    value = machine.marginal(h)
    for low, high in zip(betas[-2::-1], betas[:0:-1], strict=True):
        h, value = move(h, value, high)
        reverse += (high - low) * value
    constant = HIDDEN * np.log(2)  # log Z at beta = 0, where the marginal model is uniform over hidden states
    return forward + constant, reverse + constant


def main():
    """Write the table and the figure."""
    options = arguments(__doc__)
    side, budget, n_chains = (6, 30_000, 20) if options.quick else (32, BUDGET, 50)
    lengths = (100, 300) if options.quick else LENGTHS
    n_sites, rows, potts = side**2, [], {}
    truth = potts_series(side, COLOURS, COUPLING) - n_sites * np.log(COLOURS)
    for length in lengths:
        weights = log_weights(side, COLOURS, COUPLING, length, budget // length, n_chains, options.seed + 1)
        potts[length] = estimates(*weights)
        rows += [
            ("Potts", length, budget // length, n_chains, name, float(value), float(error), float(truth))
            for name, (value, error) in potts[length].items()
        ]
        print(f"Potts, K = {length}: " + ", ".join(f"{n} {e.value:.2f}" for n, e in potts[length].items()), flush=True)
    print(f"Potts, series: {truth:.3f}; paper (parallel tempering): {PAPER['Potts']}")
    rng = np.random.default_rng(options.seed)
    machine, betas = Machine(rng), np.linspace(0.0, 1.0, 31 if options.quick else 101)
    machines = {
        name: run(machine, rng, betas, n_updates, 100 if options.quick else 1000)
        for name, run, n_updates in (("full", anneal_full, 1), ("marginal", anneal_marginal, 2 * HIDDEN))
    }
    for name, weights in machines.items():
        found = estimates(*weights)
        rows += [
            (f"RBM, {name}", len(betas) - 1, "", len(weights[0]), key, float(value), float(error), machine.log_z)
            for key, (value, error) in found.items()
        ]
        print(f"RBM, {name}: " + ", ".join(f"{n} {e.value:.3f}" for n, e in found.items()), flush=True)
    print(f"RBM, by enumeration: {machine.log_z:.4f}")
    write_csv(options.output / "habeck_figure_4.csv", HEADER, rows)
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
    styles = {"lower bound": "v", "AIS": "o", "BAR": "s", "histogram": "X", "reverse AIS": "D", "upper bound": "^"}
    palette = ("#56B4E9", "#009E73", "#D55E00", "#000000", "#CC79A7", "#0072B2")
    for (name, marker), colour in zip(styles.items(), palette, strict=True):
        axes[0].plot(lengths, [potts[k][name].value - truth for k in lengths], marker=marker, color=colour, label=name)
    axes[0].axhline(0.0, color="0.4", linewidth=0.8, linestyle="--")
    axes[0].set_xscale("log")
    axes[0].set_yscale("symlog", linthresh=1.0)
    axes[0].set_xticks(lengths, [str(k) for k in lengths])
    axes[0].minorticks_off()
    axes[0].set_xlabel(f"inverse temperatures K, K N = {budget:,}")
    axes[0].set_ylabel("Potts: error of log Z (nats)")
    axes[0].legend(fontsize=8)
    for (name, weights), shades in zip(machines.items(), (("#0072B2", "#56B4E9"), ("#D55E00", "#E69F00")), strict=True):
        for values, way, colour in zip(weights, ("forward", "reverse"), shades, strict=True):
            axes[1].hist(
                values - machine.log_z, 40, density=True, histtype="step", color=colour, label=f"{name}, {way}"
            )
    axes[1].axvline(0.0, color="0.4", linewidth=0.8, linestyle="--")
    axes[1].set_xlabel("RBM: log weight less log Z (nats)")
    axes[1].set_ylabel("density")
    axes[1].legend(fontsize=8)
    save(figure, options.output / "habeck_figure_4.png")


if __name__ == "__main__":
    main()
