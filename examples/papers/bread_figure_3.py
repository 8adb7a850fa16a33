"""Figure 3 of BREAD: the true Jeffreys divergence J and its bound B on three toys, from 10 to 100,000 temperatures.

Also computed: limits of V, the bound on the error of a probability, and where the paper's numbers for the random toys
lie among those of other random draws.

    python examples/papers/bread_figure_3.py --output output
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from bread_figures import arguments, save, toys, write_csv

from bread import exact

COUNTS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
LARGEST_FOR_V = 1000  # beyond, limits of V are those that the marginals give
# what the text of appendix B.1.1 prints: (toy, T, J or B) -> nats
PAPER = {
    ("EASY RANDOM", 100, "J"): 0.13,
    ("EASY RANDOM", 1000, "J"): 0.00518,
    ("EASY RANDOM", 1000, "B"): 0.0705,
    ("HARD RANDOM", 100, "J"): 4.73,
    ("HARD RANDOM", 1000, "J"): 1.840,
    ("HARD RANDOM", 1000, "B"): 2.309,
    ("BARRIER", 100, "J"): 1.65,
    ("BARRIER", 1000, "J"): 1.085,
    ("BARRIER", 1000, "B"): 1.184,
}
HEADER = (
    "toy", "n_temperatures", "J", "B", "kl_approx_exact", "kl_exact_approx", "expected_forward", "expected_reverse",
    "log_evidence", "total_variation", "V_lower", "V_upper",
)  # fmt: skip


def curve(chain, counts):
    """Return a row of the table for each number of temperatures."""
    rows = []
    for count in counts:
        betas = np.linspace(0.0, 1.0, count)
        result = exact.anneal(chain, betas)
        lower, upper = exact.path_error(chain, betas) if count <= LARGEST_FOR_V else result.error_limits
        rows.append(
            (
                chain.name, count, result.jeffreys, result.bound, result.kl_approx_exact, result.kl_exact_approx,
                result.expected_forward, result.expected_reverse, result.log_evidence, result.total_variation,
                lower, upper,
            )
        )  # fmt: skip
    return rows


def compare_with_paper(n_draws):
    """Return the paper's numbers beside ours: one value for BARRIER, quantiles over draws for the random toys."""
    makers = {"EASY RANDOM": exact.easy_random, "HARD RANDOM": exact.hard_random}
    found = {}
    for toy, count in sorted({(toy, count) for toy, count, _ in PAPER}):
        chains = [exact.barrier()] if toy == "BARRIER" else [makers[toy](seed) for seed in range(n_draws)]
        results = [exact.anneal(chain, np.linspace(0.0, 1.0, count)) for chain in chains]
        found[toy, count, "J"] = np.array([result.jeffreys for result in results])
        found[toy, count, "B"] = np.array([result.bound for result in results])
    rows = []
    for (toy, count, what), printed in PAPER.items():
        ours = found[toy, count, what]
        low, median, high = np.quantile(ours, [0.05, 0.5, 0.95])
        rows.append((toy, count, what, printed, float(median), float(low), float(high), float((ours < printed).mean())))
    return rows


def draw(rows, path):
    """Draw J (solid) and B (dashed) against T."""
    figure, axis = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
    for place, toy in enumerate(dict.fromkeys(row[0] for row in rows)):
        counts, jeffreys, bound = np.array([row[1:4] for row in rows if row[0] == toy]).T
        axis.loglog(counts, jeffreys, color=f"C{place}", label=toy)
        axis.loglog(counts, bound, color=f"C{place}", linestyle="--")
    for (toy, count, what), printed in PAPER.items():
        place = list(dict.fromkeys(row[0] for row in rows)).index(toy)
        style = {"facecolors": f"C{place}" if what == "J" else "none", "edgecolors": f"C{place}"}
        axis.scatter([count], [printed], s=28, zorder=3, **style)
    axis.set(xlabel="temperatures T", ylabel="nats", title="J (solid), B (dashed); dots: printed in the paper")
    axis.legend(frameon=False)
    save(figure, path)
    plt.close(figure)


if __name__ == "__main__":
    options = arguments(__doc__)
    counts = COUNTS[:5] if options.quick else COUNTS
    rows = [row for chain in toys(options.seed) for row in curve(chain, counts)]
    for row in rows:
        print(
            f"{row[0]:12s} T = {row[1]:6d}   J = {row[2]:.4g}   B = {row[3]:.4g}   V in [{row[10]:.4g}, {row[11]:.4g}]"
        )
    write_csv(options.output / "bread_figure_3.csv", HEADER, rows)
    paper = compare_with_paper(20 if options.quick else 200)
    for toy, count, what, printed, median, low, high, below in paper:
        ours = f"{median:.4g} ({low:.4g} to {high:.4g})"
        print(f"{toy:12s} {what}({count}): paper {printed}, ours {ours}, {below:.0%} of draws below")
    header = ("toy", "n_temperatures", "what", "paper", "median", "quantile_05", "quantile_95", "fraction_below_paper")
    write_csv(options.output / "bread_figure_3_paper.csv", header, paper)
    draw(rows, options.output / "bread_figure_3.png")
