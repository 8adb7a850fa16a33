"""Figures 1 and 2 of Rischard, Jacob & Pillai (2018): unbiased path sampling of two log ratios that are known.

From N(0, 1) to N(4, 1), whose log ratio is 0, and from a normal law to a double well in two dimensions. As in the
paper: random walks with maximally coupled proposals, meeting times on a grid of inverse temperatures, from them the
window of each estimate, from second moments the law of the inverse temperature, and then independent estimates. Beside
them the same estimates with the line through the pilots' means taken out, as `bread.lab.path_sampling` does.

    python examples/papers/ups_toys.py --output output
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from bread_figures import arguments, save, write_csv
from numpy.random import SeedSequence, default_rng
from scipy.special import logsumexp

from bread.couplings.chains import run_pairs
from bread.couplings.geometric import held
from bread.couplings.random_walk import RandomWalk
from bread.couplings.temperatures import law_from_spread, log_ratio_estimates

D = 4.0  # of the normal example
GRID = np.linspace(0.0, 1.0, 11)
HORIZON = 200_000
Z95 = 1.96
HEADER = ("example", "estimator", "estimate", "standard_error", "lower", "upper", "exact", "n", "k", "m")


@dataclass(frozen=True)
class Example:
    """A path of densities; states carry their inverse temperature as the last coordinate."""

    name: str
    log_density: Callable[[Any], Any]
    slope: Callable[[Any], Any]  # d log f / d lambda
    start: tuple[Any, Any]  # means and standard deviations of the first states
    spread: Any  # standard deviations of proposals
    n_meetings: int
    n_estimates: int
    exact: float
    n_pilots: int = 100
    factor: float = 1.0  # k over the 99% quantile of meeting times
    adapts: bool = False  # start and proposals at each inverse temperature, from its first two moments


def normal(quick: bool) -> Example:
    """Return the example of section 3.1.1 on the geometric path, which the paper's interval belongs to.

    The derivative that it prints, D (x - lambda D), is that of the same laws, normalised.
    """
    return Example(
        "normal",
        lambda s: -0.5 * (1.0 - s[:, 1]) * s[:, 0] ** 2 - 0.5 * s[:, 1] * (s[:, 0] - D) ** 2,
        lambda s: D * (s[:, :1] - 0.5 * D),
        (np.array([-1.0]), np.array([2.0])),
        np.array([1.0]),
        100,
        1000 if quick else 5000,
        0.0,
        adapts=True,
    )


def potentials(x: Any) -> tuple[Any, Any]:
    """Return U_0 and U_1 of the double well at points, shape (n, 2).

    The factor 1/10 is of the whole of U_1: only so is the log ratio -6.9. As printed, it is of the first term alone.
    """
    a, b = x[:, 0], x[:, 1]
    well = ((a - 1.0) ** 2 - b**2) ** 2 + 10.0 * (a**2 - 5.0) ** 2 + (a + b) ** 4 + (a - b) ** 4
    return (a + 2.0) ** 2 + 0.5 * b**2, 0.1 * well


def double_well(quick: bool) -> Example:
    """Return the example of section 3.1.2; the exact log ratio by integration over a fine grid."""

    def log_density(s: Any) -> Any:
        first, last = potentials(s[:, :2])
        return -(1.0 - s[:, 2]) * first - s[:, 2] * last

    def slope(s: Any) -> Any:
        first, last = potentials(s[:, :2])
        return (first - last)[:, None]

    axis = np.linspace(-9.0, 9.0, 2401)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    constants = [logsumexp(-values) for values in potentials(grid)]
    return Example(
        "double well",
        log_density,
        slope,
        (np.array([-2.0, -2.0]), np.ones(2)),
        np.full(2, np.sqrt(2.0)),
        100 if quick else 1000,
        100 if quick else 1000,
        float(constants[1] - constants[0]),
        n_pilots=30 if quick else 100,
        factor=2.0,
    )


class Chains:
    """Coupled chains of an example, with start and proposals that may differ by place of the grid."""

    def __init__(self, example: Example, root: SeedSequence) -> None:
        self.example, self.root = example, root
        self.starts = [example.start] * len(GRID)
        self.spreads = [example.spread] * len(GRID)

    def run(self, place: int, at: Any, k: int, m: int, functions: Any = None) -> Any:
        """Run one pair at each inverse temperature of ``at`` with the settings of a place."""
        n = len(at)
        own, *seeds = self.root.spawn(n + 1)
        rng, (mean, deviation) = default_rng(own), self.starts[place]
        first, second = (held(mean + deviation * rng.standard_normal((n, len(mean))), at) for _ in range(2))
        kernel = RandomWalk(self.example.log_density, np.append(self.spreads[place], 0.0))
        found = run_pairs(
            kernel, (first, second), seeds, lag=1, horizon=HORIZON, functions=functions or self.example.slope,
            window=(k, m),
        )  # fmt: skip
        if not np.isfinite(found.meeting_times).all():
            raise RuntimeError(f"{self.example.name}: a pair did not meet in {HORIZON} iterations.")
        return found


def estimate(example: Example, seed: int) -> dict[str, Any]:
    """Return meeting times, roots of second moments, places and estimates."""
    chains = Chains(example, SeedSequence(seed))
    times = np.array([chains.run(i, np.full(example.n_meetings, x), 0, 0).meeting_times for i, x in enumerate(GRID)])
    k = np.ceil(example.factor * np.quantile(times, 0.99, axis=1)).astype(int)
    mean = times.mean(axis=1)
    m = np.ceil(5 * k.max() + mean.max() - mean).astype(int)  # equation 11
    if example.adapts:
        for i, x in enumerate(GRID):
            moments = chains.run(i, np.full(100, x), k[i], m[i], lambda s: np.stack([s[:, 0], s[:, 0] ** 2], 1))
            first, second = moments.estimates.mean(axis=0)
            deviation = np.array([np.sqrt(second - first**2)])
            chains.starts[i], chains.spreads[i] = (np.array([first]), deviation), deviation
    pilots = np.array(
        [chains.run(i, np.full(example.n_pilots, x), k[i], m[i]).estimates[:, 0] for i, x in enumerate(GRID)]
    )
    roots = np.sqrt((pilots**2).mean(axis=1))
    law = law_from_spread(GRID, roots)
    where = law.draw(default_rng(chains.root.spawn(1)[0]).random(example.n_estimates))
    nearest, expectations = np.abs(where[:, None] - GRID).argmin(axis=1), np.empty(len(where))
    for i in np.unique(nearest):
        rows = np.flatnonzero(nearest == i)
        expectations[rows] = chains.run(i, where[rows], k[i], m[i]).estimates[:, 0]
    return {
        "times": times,
        "quantile": k,
        "roots": roots,
        "k": int(k.max()),
        "m": int(m.max()),
        "as in the paper": (where, log_ratio_estimates(law, where, expectations)),
        "line taken out": (where, log_ratio_estimates(law, where, expectations, pilots.mean(axis=1))),
    }


def main() -> None:
    """Write the table and the figure."""
    options = arguments(__doc__)
    figure, axes = plt.subplots(2, 3, figsize=(10, 5.6), layout="constrained")
    rows = []
    for row, make in zip(axes, (normal, double_well), strict=True):
        example = make(options.quick)
        found = estimate(example, options.seed)
        for name in ("as in the paper", "line taken out"):
            values = found[name][1]
            error = float(values.std(ddof=1) / np.sqrt(len(values)))
            mean = float(values.mean())
            rows.append((
                example.name, name, mean, error, mean - Z95 * error, mean + Z95 * error, example.exact, len(values),
                found["k"], found["m"],
            ))  # fmt: skip
            print(
                f"{example.name}, {name}: {mean:.3f} (95% interval {mean - Z95 * error:.2f} to "
                f"{mean + Z95 * error:.2f}), exact {example.exact:.3f}; k up to {found['k']}, m up to {found['m']}"
            )
        left, middle, right = row
        left.violinplot(list(found["times"]), positions=GRID, widths=0.08, showextrema=False)
        left.plot(GRID, found["quantile"], color="#D55E00", label="k")
        left.set(yscale="log", ylabel=f"{example.name}\nmeeting time")
        left.legend(frameon=False)
        middle.plot(GRID, found["roots"], "o-", color="#0072B2")
        middle.set(ylabel="root of second moment", ylim=(0.0, None))
        for name, colour in (("as in the paper", "#0072B2"), ("line taken out", "#D55E00")):
            right.plot(*found[name], ".", markersize=2, color=colour, label=name, alpha=0.6)
        right.axhline(example.exact, color="0.3", linewidth=0.8)
        right.set(ylabel="estimate of the log ratio")
        right.legend(frameon=False, markerscale=4, fontsize="small")
        for ax in row:
            ax.set_xlabel("inverse temperature")
    write_csv(options.output / "ups_toys.csv", HEADER, rows)
    save(figure, options.output / "ups_toys.png")


if __name__ == "__main__":
    main()
