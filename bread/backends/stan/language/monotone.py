"""Increasing and decreasing functions of one number, by which a program changes the variable of a density."""

from __future__ import annotations

from typing import Literal, NamedTuple

Range = Literal["real", "positive", "unit"]


class Monotone(NamedTuple):
    """A function: Stan code that undoes it, of the log of its slope, which numbers it takes and which it gives."""

    inverse: str
    log_slope: str
    takes: Range
    gives: Range


MONOTONE: dict[str, Monotone] = {
    "exp": Monotone("log({0})", "{0}", "real", "positive"),
    "log": Monotone("exp({0})", "-log({0})", "positive", "real"),
    "inv_logit": Monotone("logit({0})", "log_inv_logit({0}) + log1m_inv_logit({0})", "real", "unit"),
    "logit": Monotone("inv_logit({0})", "-log({0}) - log1m({0})", "unit", "real"),
    "sqrt": Monotone("square({0})", "-0.5 * log({0})", "positive", "positive"),
    "square": Monotone("sqrt({0})", "log({0})", "positive", "positive"),
    "inv": Monotone("inv({0})", "-2 * log({0})", "positive", "positive"),
    "inv_sqrt": Monotone("inv_square({0})", "-1.5 * log({0})", "positive", "positive"),
    "inv_square": Monotone("inv_sqrt({0})", "-3 * log({0})", "positive", "positive"),
}  # slopes but for constants
ENDS = {"real": (None, None), "positive": ("0", None), "unit": ("0", "1")}
