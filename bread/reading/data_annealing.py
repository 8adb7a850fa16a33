"""What a report of `bread.data_annealing` says: how far apart the bounds are, and what is known of the real data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from bread.reading.direct import bug_of_draws
from bread.report.compat import read_group, require_group
from bread.report.data_annealing import GROUP

FEWEST_SIMULATIONS = 5
_DIGITS = 5


def is_data_annealing(report: Any) -> bool:
    """Return whether a report is one of `bread.data_annealing`."""
    return read_group(report, GROUP) is not None


def data_annealing_text(report: Any) -> tuple[str, str]:
    """Return status and sentences: "bug", "sandwiched", or "inconclusive" with the reason."""
    if (bug := bug_of_draws(report)) is not None:
        return "bug", bug
    found = require_group(report, GROUP)
    told, n = found.attrs, found.sizes["simulation"]
    percent = f"{100 * told['level']:g}%"
    if told["n_failed"]:
        return "inconclusive", (
            f"Inconclusive. {told['n_failed']} runs failed: a density was NaN or raised. Mend the model; nothing is "
            "said from the runs that were left."
        )
    sure = 100 * (1 + told["level"]) / 2
    real = (
        f" On the real data, where no exact draw is known, log evidence is at least {told['real_lower']:.2f} nats "
        f"(confidence {sure:g}%; estimate {told['real_log_evidence']:.2f}), and no upper bound is known: a mode that "
        "no particle met is not in it."
    )
    if n < FEWEST_SIMULATIONS:
        few = f"Inconclusive: {n} simulated data sets have been sandwiched, and {FEWEST_SIMULATIONS} are needed."
        return "inconclusive", few + real
    n_dead = int(np.isneginf(found["forward"].values).any(axis=1).sum())
    if n_dead:
        return "inconclusive", (
            f"Inconclusive: on {n_dead} of {n} data sets simulated from the model, all particles of a forward run lost "
            "their weight, so that the bounds are infinitely far apart. Raise particles or blocks." + real
        )
    low, high = told["mean_gap_lower"], told["mean_gap_upper"]
    gap = f"{told['mean_gap']:.2g} nats ({percent} interval {low:.2g} to {high:.2g})"
    average = f"on {n} data sets simulated from the model, upper minus lower bound of log evidence is {gap} on average"
    if high < 0.0:
        return "inconclusive", (
            f"Inconclusive: {average}, and its expectation cannot be negative. Either this is chance, or simulator, "
            "density and kernel do not belong together: run bread.check."
        )
    if np.isfinite(told["mean_gap"]) and high <= told["max_gap"]:
        unseen = 1.0 - 0.05 ** (1.0 / n)
        return "sandwiched", (
            f"Sandwiched: {average}. What fails on fewer than {100 * unseen:.2g}% of data sets may go unseen." + real
        )
    return "inconclusive", (
        f"Inconclusive: {average}, and its limit is not below {told['max_gap']:g}. Raise particles, moves or blocks."
        + real
    )


def data_annealing_summary(report: Any) -> pd.DataFrame:
    """Return the table over simulated data sets: log evidence with limits, gap, cost of both directions."""
    found = require_group(report, GROUP)
    table = found[["log_evidence", "lower", "upper", "gap"]].to_dataframe()
    table["forward"] = found["forward"].mean("run").values
    table["reverse"] = found["reverse"].mean("run").values
    table = table.map(lambda value: float(f"{value:.{_DIGITS}g}"))
    for name in ("gradients", "evaluations"):
        both = found[f"forward_{name}"].sum("run") + found[f"reverse_{name}"].sum("run")
        table[f"n_{name}"] = both.values.astype(np.int64)
    return table
