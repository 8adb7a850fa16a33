"""Figure 3 of Habeck (2017): evidence of the 32 x 32 Ising model from both directions, against Kaufman's exact value.

K = 1000 even inverse temperatures from 0 to 1, M = 1000 chains each way; forward from random spins, reverse from a
ground state. Minutes on one core (numba): pip install "bread-mcmc[examples]".

    python examples/papers/habeck_figure_3.py --output output
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from bread_figures import arguments, save, write_csv
from lattices import ising_log_z, log_weights

from bread.statistics.evidence import evidence
from bread.statistics.evidence.evidence_posterior import histogram_posterior

K = 1000
UPDATES = (100, 300, 1000, 3000)  # N: single-spin updates at each inverse temperature
SHOWN = 1000  # N of panel A and of the paper's numbers
PAPER = {
    "lower bound": 1290.5, "AIS": 1333.66, "BAR": 1338.05, "histogram": 1338.28, "reverse AIS": 1342.05,
    "upper bound": 1352.0,
}  # fmt: skip
HEADER = ("side", "N", "M", "estimator", "estimate", "standard_error", "paper", "exact")
COLOURS = {
    "lower bound": "#56B4E9", "upper bound": "#0072B2", "AIS": "#009E73", "reverse AIS": "#004D3A", "BAR": "#D55E00",
    "histogram": "#000000",
}  # fmt: skip


def estimates(forward, reverse):
    """Return every estimate of log Z(1) - log Z(0) with its standard error."""
    posterior = histogram_posterior(forward, reverse, np.random.default_rng(0))
    return {
        "lower bound": evidence.mean_log_weight(forward),
        "AIS": evidence.average_weight(forward),
        "BAR": evidence.bennett(forward, reverse),
        "histogram": evidence.Estimate(posterior.mean, posterior.standard_deviation),
        "reverse AIS": evidence.harmonic_weight(reverse),
        "upper bound": evidence.mean_log_weight(reverse),
    }


def main():
    """Write the table and the figure."""
    options = arguments(__doc__)
    side, n_chains, updates = (8, 40, (64, 256)) if options.quick else (32, 1000, UPDATES)
    shown = updates[-1] if options.quick else SHOWN
    truth = ising_log_z(side, 1.0) - side**2 * np.log(2.0)
    rows, found, kept = [], {}, ()
    for n_updates in updates:
        forward, reverse = log_weights(side, 2, 2.0, K, n_updates, n_chains, options.seed + 1)
        weights = forward - 2 * side**2, reverse - 2 * side**2  # -E = 2 equal bonds - all bonds
        kept = weights if n_updates == shown else kept
        found[n_updates] = estimates(*weights)
        for name, (value, error) in found[n_updates].items():
            printed = PAPER[name] if n_updates == SHOWN and side == 32 else ""
            rows.append((side, n_updates, n_chains, name, float(value), float(error), printed, float(truth)))
            print(f"N = {n_updates:5d}  {name:12s} {value:9.2f} +- {error:.2f}   paper {printed or '-'}", flush=True)
    print(f"exact (Kaufman): {truth:.3f}")
    write_csv(options.output / "habeck_figure_3.csv", HEADER, rows)
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
    bins = np.histogram_bin_edges(np.concatenate(kept), 60)
    for weights, name, colour in zip(kept, ("forward", "reverse"), ("#0072B2", "#009E73"), strict=True):
        axes[0].hist(weights, bins, density=True, color=colour, alpha=0.6, label=name)
    axes[0].axvline(truth, color="0.2", linestyle="--", label="exact log Z")
    axes[0].set_xlabel(f"log weight (nats), N = {shown}")
    axes[0].set_ylabel("density")
    axes[0].legend(fontsize=8)
    for name, marker in zip(COLOURS, "v^ososX"[: len(COLOURS)], strict=True):
        axes[1].plot(
            updates, [found[n][name].value - truth for n in updates], color=COLOURS[name], marker=marker, label=name
        )
    axes[1].axhline(0.0, color="0.4", linewidth=0.8, linestyle="--")
    axes[1].set_xscale("log")
    axes[1].set_yscale("symlog", linthresh=1.0)
    axes[1].set_xticks(updates, [str(n) for n in updates])
    axes[1].minorticks_off()
    axes[1].set_xlabel("updates N at each inverse temperature")
    axes[1].set_ylabel("error of log Z (nats)")
    axes[1].legend(fontsize=8)
    save(figure, options.output / "habeck_figure_3.png")


if __name__ == "__main__":
    main()
