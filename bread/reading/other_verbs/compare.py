"""What a report of `bread.compare` says: which is better by how much, at equal steps, work and seconds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bread.errors import InvalidArgumentError
from bread.reading.sentences.direct import DIRECT_LEVEL
from bread.reading.sentences.findings import FEWEST_SIMULATIONS
from bread.reading.sentences.lines import Answer, Row, counted, fitted
from bread.reading.sentences.numbers import nats
from bread.reading.sentences.words import NOTHING_MEANS_ANYTHING, p_words
from bread.report.compare import CONTRASTS, COSTS, GROUP
from bread.report.compat import read_attributes, read_group, require_group

CHAINS_LEVEL = 0.01 / 3  # of each exact test of the chains, shared by the models
_TESTS = {
    "direct_p_value": "tests of exact draws",
    "alarm_p_value": "the theory alarm of its log weights",
    "forms_p_value": "the two forms of V",
    "rank_p_value": "weighted ranks of its paths",
}
_LETTERS = 60  # of the best model's name in the first line
_SHOWN = 5  # rows of comparisons
_HUGE = 1000.0  # ratios beyond are not worth a number


def is_compare(report: Any) -> bool:
    """Return whether a report is one of `bread.compare`."""
    return read_group(report, GROUP) is not None


def read_comparison(report: Any, verb: str) -> xr.Dataset:
    """Return the group `comparison`; InvalidArgumentError where it is another report."""
    found = read_group(report, GROUP)
    if found is None:
        raise InvalidArgumentError(f"{verb} draws reports of bread.compare, and this one is of another verb.")
    return found


def compare_answer(report: Any) -> Answer:
    """Return what a report of `bread.compare` says.

    Status is the first that holds: "bug" (a test of exact draws or of the chains of one model fails at its share of
    the level), "inconclusive" (interrupted, or fewer than 10 data sets), "better" (one model is better than every
    other by at least one cost and worse by none), "trade-off" (what is better depends on the cost), "cannot tell".
    """
    table, contrasts = require_group(report, GROUP), require_group(report, CONTRASTS)
    broken = broken_models(table)
    if broken:
        return _bug(broken)
    names = [str(name) for name in table["model"].values]
    n = int(np.isfinite(table["error_by_simulation"].values).any(axis=(0, 1)).sum())
    if bool(read_attributes(report).get("is_interrupted", 0)) or len(names) < 2:
        details = "Inconclusive. The comparison was interrupted."
        return Answer("inconclusive", "the comparison was stopped", advice="run it again to the end", details=details)
    if n < FEWEST_SIMULATIONS:
        return Answer(
            "inconclusive",
            f"{counted(n, 'simulated data set')} decide nothing",
            advice=f"run at least {FEWEST_SIMULATIONS} simulations=",
            details=f"Inconclusive. {n} simulated data sets are too few: run at least {FEWEST_SIMULATIONS}.",
        )
    wins = _wins(contrasts)
    best = next(
        (name for name in names if all(wins.get((name, other)) == {True} for other in names if other != name)), ""
    )
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    if best:
        pairs = [(best, other) for other in names if other != best]
    status = "better" if best else "trade-off" if any(wins.get(p) == {True, False} for p in pairs) else "cannot tell"
    first = {
        "better": f"{best} is better.",
        "trade-off": "It depends on the cost.",
        "cannot tell": "Cannot tell which is best." if len(names) > 2 else "Cannot tell.",
    }[status]
    said = [_said(contrasts, row, *pair) for pair in pairs for row in _rows(contrasts, *pair)]
    rows = [row for _, row in said]
    if len(rows) > _SHOWN:
        rows[_SHOWN - 1 :] = [("", f"and {len(rows) - _SHOWN + 1} more comparisons: verdict.details")]
    shown = fitted(best, best, room=_LETTERS) if best else "it depends on the cost" if status == "trade-off" else ""
    return Answer(
        status,
        shown,
        (*rows, ("Data sets", f"the same {n} simulated data sets for all")),
        details=" ".join([first, *(sentence for sentence, _ in said), f"All over the same {n} simulated data sets."]),
        numbers={"best": best},
    )


def _bug(broken: list[tuple[str, str]]) -> Answer:
    """Return the answer where tests of some models fail; ``broken``: their names, and what fails."""
    rows = [("Broken", fitted(f"{name}: {failed}", name)) for name, failed in broken]
    details = [f"Something in {name} is broken {failed}." for name, failed in broken]
    return Answer(
        "bug",
        f"{counted(len(broken), 'model')} of these {'is' if len(broken) == 1 else 'are'} broken",
        tuple(rows[:_SHOWN]),
        advice="bread.debug(model) looks closer; until it is found, no number here means anything",
        details=" ".join(["Bug.", *details, NOTHING_MEANS_ANYTHING]),
    )


def broken_models(table: xr.Dataset) -> list[tuple[str, str]]:
    """Return each model of which a test fails, and what: exact draws do not follow it, or its chains do not."""
    found = []
    n_models = table.sizes["model"]
    for i, name in enumerate(table["model"].values):
        failed = [
            f"{what} ({p_words(float(table[key].values[i]))})"
            for key, what in _TESTS.items()
            if table[key].values[i] <= (DIRECT_LEVEL if key == "direct_p_value" else CHAINS_LEVEL) / n_models
        ]
        if failed:
            same = str(table["same_by"].values[i])
            mapped = "" if same in ("", "density") else ", or its mapping from the first model"
            found.append((str(name), f"(its simulator, density or kernel{mapped}): {', '.join(failed)}"))
    return found


def _wins(contrasts: xr.Dataset) -> dict[tuple[str, str], set[bool]]:
    """Return, for ordered pairs of names, whether the first is better, by the costs that tell."""
    found: dict[tuple[str, str], set[bool]] = {}
    for first, second, better in zip(
        contrasts["first"].values, contrasts["second"].values, contrasts["better"].values, strict=True
    ):
        if better:
            found.setdefault((str(first), str(second)), set()).add(bool(better < 0))
            found.setdefault((str(second), str(first)), set()).add(bool(better > 0))
    return found


def _rows(contrasts: xr.Dataset, name: str, other: str) -> list[int]:
    """Return where two models are compared: once for each cost."""
    both = {name, other}
    pairs = zip(contrasts["first"].values, contrasts["second"].values, strict=True)
    return [i for i, pair in enumerate(pairs) if set(map(str, pair)) == both]


def _said(contrasts: xr.Dataset, row: int, name: str, other: str) -> tuple[str, Row]:
    """Return what one comparison says of two models, the named one first: a sentence, and a line."""
    is_first = str(contrasts["first"].values[row]) == name
    axis, decides = str(contrasts["axis"].values[row]), str(contrasts["decides"].values[row])
    label = axis.capitalize()
    if not decides:
        text = f"{name} and {other} were not run"
        return f"At equal {axis} {text}.", (label, fitted(text, name, other))
    key = "jeffreys" if decides == "B" else "error"
    ratio, (low, high) = float(contrasts[f"{key}_ratio"].values[row]), contrasts[f"{key}_ratio_ci"].values[row]
    pair = contrasts[f"{key}_pair"].values[row]
    if not is_first:
        with np.errstate(divide="ignore"):
            ratio, low, high = (float(np.divide(1.0, value)) for value in (ratio, high, low))
        pair = pair[::-1]
    better = int(contrasts["better"].values[row]) * (1 if is_first else -1)
    sizes = " against ".join(nats(float(value)) if decides == "B" else f"{float(value):.2g}" for value in pair)
    unit = " nats" if decides == "B" else ""
    cost = float(contrasts["cost"].values[row])
    where = {
        "steps": f"At equal steps (T = {cost + 1:.0f})",
        "seconds": f"At equal processor time ({cost:.2g} s a chain, on this machine)",
    }.get(axis, f"At equal {axis} ({cost:.3g} a chain)")
    if math.isnan(ratio):
        text = f"{name} and {other} are equal"
        return f"{where}: {text}.", (label, fitted(text, name, other))
    between = f"{_times(low)} to {_times(high)}"
    if better == 0:
        text = f"cannot tell: {decides} of {name} is {between} times that of {other} ({sizes}{unit})"
        return f"{where}, {text}.", (label, fitted(text, name, other))
    text = f"{decides} of {name} is {_times(ratio)} times that of {other} ({between}; {sizes}{unit})"
    return f"{where}, {text}.", (label, fitted(text, name, other))


def _times(value: float) -> str:
    if value > _HUGE:
        return f"over {_HUGE:.0f}"
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def compare_summary(report: Any) -> pd.DataFrame:
    """Return a table of a report of `bread.compare`: one row a model and number of temperatures."""
    table = require_group(report, GROUP)
    rows = []
    for i, name in enumerate(table["model"].values):
        for j, number in enumerate(table["n_temperatures"].values):
            if not np.isfinite(table["error"].values[i, j]):
                continue
            rows.append(
                {
                    "model": str(name),
                    "n_temperatures": int(number),
                    "error": _digits(table["error"].values[i, j]),
                    "error_lower": _digits(table["error_ci"].values[i, j, 0]),
                    "error_limit": _digits(table["error_ci"].values[i, j, 1]),
                    "jeffreys": _digits(table["jeffreys"].values[i, j]),
                    "lower": _digits(table["jeffreys_ci"].values[i, j, 0]),
                    "upper": _digits(table["jeffreys_ci"].values[i, j, 1]),
                    "reliable": bool(table["jeffreys_reliable"].values[i, j]),
                    **{name: _digits(table[name].values[i, j]) for name in COSTS},
                }
            )
    return pd.DataFrame(rows).set_index(["model", "n_temperatures"])


def _digits(value: float) -> float:
    """Return a number with three significant digits."""
    return float(f"{value:.3g}")
