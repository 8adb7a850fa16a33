"""Figure 4 of BREAD: three toys on a 7 x 7 grid, annealed; the target, and the exact law of AIS samples at T = 100.

python examples/papers/bread_figure_4.py --output output
"""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from bread_figures import arguments, save, toys, write_csv

from bread import exact

BETAS = (0.02, 0.1, 0.4)  # the paper's text does not name its own


if __name__ == "__main__":
    options = arguments(__doc__)
    n_temperatures = 20 if options.quick else 100
    titles = [*(f"beta = {beta:g}" for beta in BETAS), "target", f"AIS, T = {n_temperatures}"]
    chains, rows = toys(options.seed), []
    figure, axes = plt.subplots(len(chains), len(titles), figsize=(10, 6.4), layout="constrained")
    for line, chain in zip(axes, chains, strict=True):
        result = exact.anneal(chain, np.linspace(0.0, 1.0, n_temperatures))
        laws = [*chain.laws(np.array(BETAS)), result.target, result.final_law]
        top = max(laws[-1].max(), laws[-2].max())  # target and samples share a scale of grey
        for place, (axis, law, title) in enumerate(zip(line, laws, titles, strict=True)):
            axis.imshow(law.reshape(chain.shape), cmap="gray", vmin=0.0, vmax=top if place >= len(BETAS) else None)
            axis.set(xticks=[], yticks=[])
            if chain is chains[0]:
                axis.set_title(title, fontsize=10)
            for state, probability in enumerate(law):
                row, column = np.unravel_index(state, chain.shape)
                rows.append((chain.name, title, int(row), int(column), float(probability)))
        line[0].set_ylabel(chain.name)
        line[-1].set_xlabel(f"J = {result.jeffreys:.2f}, B = {result.bound:.2f}", fontsize=9)
        print(f"{chain.name:12s} J = {result.jeffreys:.4g}, B = {result.bound:.4g}, TV = {result.total_variation:.3f}")
    write_csv(options.output / "bread_figure_4.csv", ("toy", "law", "row", "column", "probability"), rows)
    save(figure, options.output / "bread_figure_4.png")
