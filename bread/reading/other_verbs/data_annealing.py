"""What a report of `bread.lab.data_annealing` says: how far apart bounds are, and what is known of the real data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from bread.reading.sentences.direct import bug_answer
from bread.reading.sentences.lines import Answer, counted
from bread.reading.sentences.words import NOT_EXCLUDED, YOUR_DATA
from bread.report.compat import read_group, require_group
from bread.report.data_annealing import GROUP

FEWEST_SIMULATIONS = 5
_DIGITS = 5
_EVIDENCE = "Log evidence"


def is_data_annealing(report: Any) -> bool:
    """Return whether a report is one of `bread.lab.data_annealing`."""
    return read_group(report, GROUP) is not None


def data_annealing_answer(report: Any) -> Answer:
    """Return status and sentences: "bug", "sandwiched", or "inconclusive" with the reason."""
    if (bug := bug_answer(report)) is not None:
        return bug
    found = require_group(report, GROUP)
    told, n = found.attrs, found.sizes["simulation"]
    if told["n_failed"]:
        return Answer(
            "inconclusive",
            f"{counted(told['n_failed'], 'run')} failed",
            ((_EVIDENCE, "no bound is given: a density was NaN or raised an error"),),
            advice="mend the model where that happened",
            details=f"Inconclusive. {told['n_failed']} runs failed: a density was NaN or raised. Mend the model; "
            "nothing is said from the runs that were left.",
        )
    n_dead = int(np.isneginf(found["forward"].values).any(axis=1).sum())
    status, finding, reason, advice = _status(told, n, n_dead)
    sure = 100 * (1 + told["level"]) / 2
    unseen = f"{100 * (1.0 - 0.05 ** (1.0 / max(n, 1))):.2g}%"
    details = [
        f"{status.capitalize()}{': ' if finding else ''}{finding}.",
        _gap(told, n) if n >= FEWEST_SIMULATIONS and not n_dead else "",
        reason,
        f"What fails on fewer than {unseen} of data sets may go unseen." if status == "sandwiched" else "",
        "On the real data, where no exact draw is known, log evidence is at least "
        f"{told['real_lower']:.2f} nats (confidence {sure:g}%; estimate {told['real_log_evidence']:.2f}), and no upper "
        "bound is known: a mode that no particle met is not in it.",
    ]
    rows = (
        (_EVIDENCE, _gap_line(told, n) if n >= FEWEST_SIMULATIONS and not n_dead else ""),
        (
            YOUR_DATA,
            f"log evidence at least {told['real_lower']:.2f} nats (estimate {told['real_log_evidence']:.2f}); "
            "no upper bound",
        ),
        (
            NOT_EXCLUDED,
            f"modes that no particle met; failures in up to {unseen} of data sets" if status == "sandwiched" else "",
        ),
    )
    return Answer(status, finding, rows, advice=advice, details=" ".join(one for one in details if one))


def _status(told: Any, n: int, n_dead: int) -> tuple[str, str, str, str]:
    """Return status, finding, what there is to be said of it, and what to do."""
    open_ = "inconclusive"
    if n < FEWEST_SIMULATIONS:
        few = f"{counted(n, 'simulated data set')} decide nothing"
        return open_, few, f"{FEWEST_SIMULATIONS} are needed.", f"run it with {FEWEST_SIMULATIONS} simulations= or more"
    if n_dead:
        return (
            open_,
            f"the bounds are infinitely far apart on {n_dead} of {n} data sets",
            "All particles of a forward run lost their weight there.",
            "raise particles or blocks",
        )
    if told["mean_gap_upper"] < 0.0:
        return (
            open_,
            "the bounds contradict each other",
            "The expectation of their gap cannot be negative: this is chance, or simulator, density and kernel do not "
            "belong together.",
            "run bread.check, which tests whether simulator, density and kernel belong together",
        )
    if np.isfinite(told["mean_gap"]) and told["mean_gap_upper"] <= told["max_gap"]:
        return "sandwiched", "", "", ""
    return (
        open_,
        "the bounds are too far apart",
        f"The limit of their gap is not below {told['max_gap']:g}.",
        "raise particles, moves or blocks",
    )


def _gap(told: Any, n: int) -> str:
    return (
        f"On {n} data sets simulated from the model, upper minus lower bound of log evidence is {told['mean_gap']:.2g} "
        f"nats ({100 * told['level']:g}% interval {told['mean_gap_lower']:.2g} to {told['mean_gap_upper']:.2g}) on "
        "average."
    )


def _gap_line(told: Any, n: int) -> str:
    limits = f"{told['mean_gap_lower']:.2g} to {told['mean_gap_upper']:.2g}; asked: {told['max_gap']:g}"
    return f"bounds {told['mean_gap']:.2g} nats apart ({limits}), on {counted(n, 'simulated data set')}"


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
