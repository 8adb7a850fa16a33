"""Figure 4 of Habeck (2017): the ten-state Potts model on 32 x 32 sites, and restricted Boltzmann machines.

The Potts model at beta = 1 is so cold that a series in exp(-2) gives its log Z, where the paper has a run of parallel
tempering. One machine has 784 visible and 500 hidden units, as the paper's, and is trained on scikit-learn's digits,
drawn on 28 x 28 pixels; its log Z is not known. Another is so small (20 and 12, random couplings) that a sum
over its hidden states is the truth. The full model, moved by Gibbs sweeps, against the marginal one, moved by flips.

    python examples/papers/habeck_figure_4.py --output output
"""

from __future__ import annotations

import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from boltzmann import anneal_full, anneal_marginal, digits, random_machine, reverse_start, trained
from bread_figures import arguments, save, write_csv
from habeck_figure_3 import estimates
from lattices import log_weights, potts_series

COLOURS, COUPLING = 10, 2.0
BUDGETS = ((300, 10**7, 50), (1000, 10**7, 50), (3000, 10**7, 50), (1000, 10**8, 10))  # K, K N, M; the paper: 10^9, 100
QUICK_BUDGETS = ((100, 30_000, 20), (300, 30_000, 20))
PAPER = {"Potts": 1742.0, "RBM": 451.42}  # another machine, of other data
HEADER = ("model", "K", "N", "M", "estimator", "estimate", "standard_error", "exact", "seconds")
SIDE, HIDDEN, EPOCHS = 28, 500, 8
STYLES = {"lower bound": "v", "AIS": "o", "BAR": "s", "histogram": "X", "reverse AIS": "D", "upper bound": "^"}
PALETTE = ("#56B4E9", "#009E73", "#D55E00", "#000000", "#CC79A7", "#0072B2")


def potts(options):
    """Anneal the Potts model; return rows of the table, and errors by (K, K N) and estimator."""
    side, budgets = (6, QUICK_BUDGETS) if options.quick else (32, BUDGETS)
    truth = float(potts_series(side, COLOURS, COUPLING) - side**2 * np.log(COLOURS))
    rows, errors = [], {}
    for length, budget, n_chains in budgets:
        began = time.perf_counter()
        weights = log_weights(side, COLOURS, COUPLING, length, budget // length, n_chains, options.seed + 1)
        found, seconds = estimates(*weights), time.perf_counter() - began
        rows += _rows(("Potts", length, budget // length, n_chains), found, truth, seconds)
        errors[length, budget] = {name: one.value - truth for name, one in found.items()}
    print(f"Potts, series: {truth:.3f}; paper (parallel tempering): {PAPER['Potts']}")
    return rows, errors


def machines(options):
    """Anneal the machines; return rows of the table, log weights by model, and the value that they are shown from."""
    rng = np.random.default_rng(options.seed)
    n_chains = 100 if options.quick else 1000
    betas = np.linspace(0.0, 1.0, 31 if options.quick else 101)
    small = random_machine(rng, 20, 12)
    rows, weights = _machine("RBM 20 x 12", small, rng, betas, n_chains, small.exact_hidden(rng, n_chains), 24)
    if options.quick:
        return rows, weights, small.exact_log_z()
    images = digits(SIDE)
    began = time.perf_counter()
    large = trained(images, HIDDEN, rng, n_epochs=EPOCHS)
    print(f"RBM 784 x 500: trained in {time.perf_counter() - began:.0f} s", flush=True)
    start = reverse_start(large, rng, images, 100)
    more, weights = _machine("RBM 784 x 500", large, rng, np.linspace(0.0, 1.0, 1001), 100, start, 100)
    (centre,) = (row[5] for row in more if row[0].endswith("marginal") and row[4] == "BAR")
    return rows + more, weights, centre


def _machine(name, machine, rng, betas, n_chains, start, n_flips):
    exact = machine.exact_log_z() if len(machine.b) < 16 else ""
    rows, kept = [], {}
    for way, run, n_updates in (("full", anneal_full, 1), ("marginal", anneal_marginal, n_flips)):
        began = time.perf_counter()
        weights = run(machine, rng, betas, n_updates, n_chains, start)
        seconds = time.perf_counter() - began
        kept[way] = weights
        rows += _rows((f"{name}, {way}", len(betas) - 1, n_updates, n_chains), estimates(*weights), exact, seconds)
    print(f"{name}, by enumeration: {exact or 'not possible'}")
    return rows, kept


def _rows(setting, found, exact, seconds):
    said = ", ".join(f"{name} {value:.2f} +- {error:.2f}" for name, (value, error) in found.items())
    print(f"{setting[0]}, K = {setting[1]}, N = {setting[2]}, M = {setting[3]}, {seconds:.0f} s: {said}", flush=True)
    return [(*setting, name, float(value), float(error), exact, seconds) for name, (value, error) in found.items()]


def main():
    """Write the table and the figure."""
    options = arguments(__doc__)
    rows, errors = potts(options)
    more, weights, centre = machines(options)
    write_csv(options.output / "habeck_figure_4.csv", HEADER, rows + more)
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
    lowest = min(budget for _, budget in errors)
    lengths = [length for length, budget in errors if budget == lowest]
    for (name, marker), colour in zip(STYLES.items(), PALETTE, strict=True):
        axes[0].plot(lengths, [errors[k, lowest][name] for k in lengths], marker=marker, color=colour, label=name)
    axes[0].axhline(0.0, color="0.4", linewidth=0.8, linestyle="--")
    axes[0].set_xscale("log")
    axes[0].set_yscale("symlog", linthresh=1.0)
    axes[0].set_xticks(lengths, [str(k) for k in lengths])
    axes[0].minorticks_off()
    axes[0].set_xlabel(f"inverse temperatures K, K N = {lowest:,}")
    axes[0].set_ylabel("Potts: error of log Z (nats)")
    axes[0].legend(fontsize=8)
    for (name, both), shades in zip(weights.items(), (("#0072B2", "#56B4E9"), ("#D55E00", "#E69F00")), strict=True):
        for values, way, colour in zip(both, ("forward", "reverse"), shades, strict=True):
            axes[1].hist(values - centre, 40, density=True, histtype="step", color=colour, label=f"{name}, {way}")
    axes[1].axvline(0.0, color="0.4", linewidth=0.8, linestyle="--")
    axes[1].set_xlabel(f"RBM: log weight less log Z {'' if options.quick else '(BAR, marginal) '}(nats)")
    axes[1].set_ylabel("density")
    axes[1].legend(fontsize=8)
    save(figure, options.output / "habeck_figure_4.png")


if __name__ == "__main__":
    main()
