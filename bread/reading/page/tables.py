"""The tables of a page: temperatures, draws, p-values, priors that do not integrate to one, tests of samplers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bread.reading.as_json import as_json
from bread.reading.other_verbs.debug import debug_summary
from bread.reading.page.numbers import NONE
from bread.reading.page.parts import Table
from bread.reading.sentences.agreement import agreement_table
from bread.reading.summary import summary
from bread.report.compat import read_group

_QUESTIONS = (
    ("direct", "Exact draws", "Do simulator, density and kernel fit together? Small: a bug."),
    ("prior_integrals", "Priors", "Do their draws follow their density, and do they integrate to one? Small: a bug."),
    ("alarm", "Theory alarm", "Do forward and reverse log weights contradict each other? Small: a bug."),
    ("forms", "Forms of V", "Have both forms of V one mean? Small: a bug."),
    ("ranks", "Weighted ranks", "Does an exact draw look like the annealed ones? Small: a bug."),
    ("consistency", "Consistency", "Do your data anneal like simulated data? Small: the bound says little about them."),
    ("fit", "Fit", "Do your data look like the model's? Small: a misfit of the model."),
    ("agreement", "Draws", "Do the draws that were compared have the law of the annealed ones? Small: they differ."),
)
_LOG_INTEGRAL = "log of the integral (nats)"
MOST_ROWS = 200


def tables_of_check(report: Any) -> tuple[Table, ...]:
    """Return the tables of a report of `bread.check` that it has rows for."""
    tables = (_temperatures(report), _draws(report), _tests(report), _priors(report))
    return tuple(table for table in tables if table is not None and table.rows)


def tables_of_debug(report: Any) -> tuple[Table, ...]:
    """Return the tests of a report of `bread.debug`, worst first, and what could not be tested."""
    frame = debug_summary(report)
    tested, left = frame[frame["left_out"] == ""], frame[frame["left_out"] != ""]
    rows = tuple(
        (row["test"], row["subject"], _p(row["p_value"]), str(row["n"]), row["worst"],
         "fails" if row["fails"] else "passes")
        for _, row in tested.iterrows()
    )  # fmt: skip
    columns = ("test", "of", "p", "draws", "worst comparison", "result")
    tests = Table("Tests", columns, rows, (True, True, False, False, True, True), "Worst first; p is adjusted.")
    reasons = tuple((row["test"], row["subject"], row["left_out"]) for _, row in left.iterrows())
    left_out = Table("Not tested", ("test", "of", "why"), reasons, (True, True, True))
    return tuple(table for table in (tests, left_out) if table.rows)


def _temperatures(report: Any) -> Table | None:
    frame = summary(report, kind="bounds")
    if not len(frame):
        return None
    rows = []
    for n_temperatures, row in frame.iterrows():
        if not row.get("n_simulations"):  # it served the consistency test alone
            continue
        is_reliable = bool(row["reliable"])
        rows.append((
            str(n_temperatures), _number(row["error"]), _number(row["error_limit"]), _number(row["error_limit_exact"]),
            _number(row["jeffreys"]) if is_reliable else NONE,
            f"{_number(row['lower'])} to {_number(row['upper'])}" if is_reliable else NONE,
            f"{row['n_simulations']} ({row['role']})", str(row["n_gradients"]), str(row["n_divergences"]),
            str(row["n_failures"]),
        ))  # fmt: skip
    columns = (
        "T", "V", "limit", "limit, exact", "B (nats)", "95% interval of B", "data sets", "gradients", "divergences",
        "failures",
    )  # fmt: skip
    caption = (
        "T: number of temperatures. V: bound of the error of any probability computed from one annealed draw, with the "
        "limit that decides and one that holds whatever other data sets are like. B: bound of the Jeffreys divergence; "
        "– where it may have no finite mean. “search” data sets chose T, “confirm” ones did not."
    )
    is_text = tuple(column == "data sets" for column in columns)
    return Table("Temperatures", columns, tuple(rows), is_text, caption)


def _draws(report: Any) -> Table | None:
    frame = agreement_table(report)
    if frame is None:
        return None
    rows = tuple(
        (str(parameter), f"{row['content']:.2f}", f"{row['lower']:.2f} to {row['upper']:.2f}",
         f"{row['mean_shift']:z.2f}", f"{row['sd_ratio']:.2f}", f"{row['error_limit']:.2f}",
         f"{row['n_effective']:.0f}")
        for parameter, row in frame.head(MOST_ROWS).iterrows()
    )  # fmt: skip
    left = f" The {MOST_ROWS} worst of {len(frame)}." if len(frame) > MOST_ROWS else ""
    caption = (
        "holds: share of certified draws that the 90% interval of the draws compared holds, with limits; shift of the "
        "mean in standard deviations; error: of any P(parameter ≤ x), at most, V included; effective draws, of which "
        f"100 are needed. Worst first.{left}"
    )
    columns = ("parameter", "holds", "limits", "shift", "sd ratio", "error", "effective")
    return Table("Draws on your data", columns, rows, (True, *[False] * 6), caption)


def _tests(report: Any) -> Table:
    p_values = as_json(report)["p_values"]
    rows = tuple(
        (name, "not tested" if p_values[key] is None else _p(float(p_values[key])), question)
        for key, name, question in _QUESTIONS
    )
    return Table("Tests", ("test", "p", "question"), rows, (True, False, True))


def _priors(report: Any) -> Table | None:
    group = read_group(report, "prior_integrals")
    if group is None:
        return None
    columns = {
        name: group[name].values for name in ("log_integral", "standard_error", "varies_p_value", "draws_p_value")
    }
    rows = tuple(
        (str(name), *(_signed(columns[key][i]) for key in ("log_integral", "standard_error")),
         *(_p(float(columns[key][i])) for key in ("varies_p_value", "draws_p_value")))
        for i, name in enumerate(group["variable"].values)
    )  # fmt: skip
    heads = ("variable", _LOG_INTEGRAL, "error", "p, one value", "p, draws")
    caption = "Priors that are not known to be normalised: 0 is an integral of one."
    return Table("Priors", heads, rows, (True, *[False] * 4), caption)


def _number(value: Any) -> str:
    number = float(value)
    if not math.isfinite(number):
        return NONE if math.isnan(number) else "infinite"
    return f"{max(number, 0.0):.3g}"


def _signed(value: Any) -> str:
    return f"{float(value):.3g}".replace("-", "−") if np.isfinite(value) else NONE


def _p(value: float) -> str:
    if math.isnan(value):
        return NONE
    return "< 0.001" if value < 0.001 else f"{value:.2g}"
