"""What took the time of a check that did not finish, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import xarray as xr

FEWEST_SECONDS = 1.0  # below, no phase is worth a sentence

_OTHER = "Run it again with more time."
# For each phase of `bread.running.state.results.CheckResult.seconds`: what it did, and how to make it shorter.
_PHASES: Mapping[str, tuple[str, str]] = {
    "compile": (
        "reading and compiling the model",
        "What was compiled is kept: the same check begins sooner the next time.",
    ),
    "fit": (
        "the fit on the real data",
        'Pass draws that you have as posterior=, which skips it, or use simulate_from="prior", which needs none.',
    ),
    "look": ("looking at the draws on the real data", _OTHER),
    "tune": (
        "choosing a path, tuning and fitting references",
        "",  # it depends on what was set: `_on_tuning`
    ),
    "race": (
        "trying out paths",
        'path="reference" or path="prior" skips that.',
    ),
    "simulate": ("simulating data", "Fewer simulations= need less."),
    "start": ("the starts of reverse chains", "A smaller init_steps= makes them shorter."),
    "search": (
        "the search for a number of temperatures",
        "A larger max_error= ends it sooner, as do more cores=; n_temperatures= skips it.",
    ),
    "confirm": (
        "chains on fresh simulated data",
        "A larger max_error=, fewer simulations= or more cores= end it sooner.",
    ),
    "consistency": (
        "comparing your data with simulated data",
        "One number as n_temperatures= leaves that out.",
    ),
    "draws": ("certified draws on your data", "Fewer draws= need less, and draws=0 leaves them out."),
    "compare": ("comparing your draws with certified ones", "Fewer draws= need less, and draws=0 leaves them out."),
    "modes": ("the search for modes on the real data", _OTHER),
    "replicate": ("the test whether your data look like the model's", _OTHER),
}


@dataclass(frozen=True)
class PhaseSeconds:
    """Wall time of each phase of a check.

    Attributes
    ----------
    seconds : dict of str to float
    settings : dict
        Arguments of the check: what is set already is no advice.
    """

    seconds: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """Seconds of all phases."""
        return float(sum(self.seconds.values()))

    @property
    def longest(self) -> str:
        """The phase that took the most; "" without any."""
        return max(self.seconds, key=lambda name: self.seconds[name], default="")


def read_phase_seconds(cost: xr.Dataset | None, settings: Mapping[str, Any]) -> PhaseSeconds:
    """Return the wall times of a report's group `cost`, beside the ``settings`` of the check."""
    if cost is None or "seconds" not in cost:
        return PhaseSeconds()
    pairs = zip(cost["phase"].values, cost["seconds"].values, strict=True)
    return PhaseSeconds({str(phase): float(seconds) for phase, seconds in pairs if seconds > 0.0}, settings)


def _longest(found: PhaseSeconds) -> tuple[str, str] | None:
    """Return what took the most time, and how to make it shorter; None where no phase took long."""
    phase = found.longest
    if not phase or found.seconds[phase] < FEWEST_SECONDS:
        return None
    name, advice = _PHASES.get(phase, (phase, _OTHER))
    return name, advice or _on_tuning(found.settings)


def what_took_the_time(found: PhaseSeconds) -> list[str]:
    """Say which phase took the most time and how to make it shorter; nothing where no phase took long."""
    longest = _longest(found)
    return [] if longest is None else [f"Of {found.total:.0f} s, {_spent(found)} went into {longest[0]}. {longest[1]}"]


def time_line(found: PhaseSeconds) -> str:
    """Return the former as one line."""
    longest = _longest(found)
    return "" if longest is None else f"{_spent(found)} of {found.total:.0f} s went into {longest[0]}"


def advice_on_time(found: PhaseSeconds) -> str:
    """Return what to do about it as one line."""
    longest = _longest(found)
    if longest is None or longest[1] == _OTHER:
        return "give it more time"
    return f"give it more time; {longest[1][:1].lower()}{longest[1][1:].rstrip('.')}"


def _spent(found: PhaseSeconds) -> str:
    return f"{found.seconds[found.longest]:.0f}"


def _on_tuning(settings: Mapping[str, Any]) -> str:
    parts = []
    if settings.get("path", "auto") == "auto":
        parts.append('path="reference" or path="prior" skips the choice')
    if settings.get("tune_on") != "shared":
        parts.append('tune_on="shared" fits once for all data sets')
    return "; ".join([*parts, "a smaller tune= shortens each" if parts else "A smaller tune= shortens it"]) + "."
