"""Modes on the real data: what share of the posterior each holds, and what share of the draws is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bread.errors import InvalidArgumentError
from bread.reading.plots.plot_axes import new_axes
from bread.reading.plots.plot_data import require
from bread.reading.plots.plot_text import begin, finish, names_that_fit
from bread.reading.sentences.modes import place_of, read_modes
from bread.reading.sentences.words import YOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MASS, TESTED, OWN = "#7F7F7F", "#0072B2", "#D55E00"  # Okabe & Ito, colour-blind safe; markers differ too
MOST_ROWS = 10
_APART = 0.12  # of a row, between the draws that stand in it


def plot_modes(report: Any) -> Axes:
    """Draw for each mode the share of the posterior that it holds at least, and the shares of draws in it with limits.

    Raises
    ------
    InvalidArgumentError
        No mode was found that draws miss.
    """
    group = require(report, "modes", "plot")
    found = read_modes(group)
    if not found.n_missed:
        raise InvalidArgumentError(
            f"plot needs a mode that draws miss, and the report has {found.n_missed}. Read it by bread.verdict."
        )
    shown = group.isel(mode=slice(0, MOST_ROWS))
    rows = np.arange(shown.sizes["mode"])
    ax = new_axes(1)[0]
    begin(ax)
    ax.barh(rows, shown["mass_lower"].values, height=0.7, color=MASS, alpha=0.35, label="of the posterior, at least")
    tested = "of the certified draws" if found.tested_draws == "annealed" else "of the draws compared"
    own = "of your draws" if found.own_draws == YOURS else "of the fit's draws"
    for name, label, colour, marker, away in (
        ("share_own", own, OWN, "D", -_APART), ("share_annealed", tested, TESTED, "o", _APART),
    ):  # fmt: skip
        share, limits = shown[name].values, shown[f"{name}_ci"].transpose("mode", "ci_bound").values
        if np.isfinite(share).any():
            ax.hlines(rows + away, *limits.T, color=colour, linewidth=1.4)
            ax.plot(share, rows + away, marker, color=colour, markersize=6, label=label)
    ax.set_yticks(rows, names_that_fit(ax, [place_of(shown.isel(mode=int(row))) for row in rows]))
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylabel("mode")
    ax.set_xlabel("share")
    what = "A mode is" if found.n_missed == 1 else f"{found.n_missed} modes are"
    ax.set_title(f"{what} missed: the draws are not where the posterior is")
    finish(ax, legend={}, is_below=True, columns=3)
    return ax
