"""What the first look found, as lines of a verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bread.reading.sentences.direct import bug_answer
from bread.reading.sentences.fit import fit_status, looks_words, read_fit, what_misfits
from bread.reading.sentences.fit_quality import fit_warning, read_fit_quality
from bread.reading.sentences.lines import LETTERS, Answer, Row, fitted, short
from bread.reading.sentences.modes import missed_mode, mode_todo, modes_words, none_found, read_modes
from bread.reading.sentences.words import FITS_DRAWS, NOT_EXCLUDED, YOUR_DATA, YOUR_DRAWS, YOURS
from bread.report.compat import read_attributes, read_group
from bread.report.first_look import BEGINNING, GROUP
from bread.running.check.first_look import NOT_GIVEN, TOO_FEW
from bread.statistics.first_look.first_look import LEVEL

BLIND = "modes that no draw is in, wrong weights of separate modes: gradients see neither"
SAME_MODEL = "pass the draws of this model, or the model of these draws"
NO_WARM_UP = "leave the warm-up out, and check again"
_DIFFERS = "differs; gradients do not tell by how much"
_BEGIN = "they begin unlike their second halves: is warm-up among them?"
SAMPLE_AGAIN = "sample longer or reparametrise; approximations (ADVI, ...) stay off at any length"
MORE_THAN_THE_FIT = "sample longer yourself or reparametrise, and pass those draws as posterior="
_PLAIN = 2.0  # standard errors, from which a difference is named
_NAMED = 2  # parameters that lines name


@dataclass(frozen=True)
class LookFound:
    """What the first look found.

    Attributes
    ----------
    p_value : float
        NaN where nothing could be tested.
    is_yours : bool
        Whether the user gave the draws.
    other_data : tuple
        Variable, element, value in the model, value where the draws are from, of data that differ.
    differences : tuple of (str, str)
        Parameters that are off, those that are so most plainly first, and by how much.
    detectable : str
        What would have been seen.
    left_out : dict of str to str
        Coordinates that could not be looked at, and why.
    """

    p_value: float
    is_yours: bool
    other_data: tuple[tuple[str, Any, float, float], ...]
    differences: tuple[tuple[str, str], ...]
    detectable: str
    left_out: Mapping[str, str]

    @property
    def is_disagreement(self) -> bool:
        """Whether the draws are not the posterior's."""
        return bool(self.other_data) or self.p_value < LEVEL

    @property
    def advice(self) -> str:
        """What to do where they are not."""
        if self.other_data:
            return SAME_MODEL
        if any(size == _BEGIN for _, size in self.differences):
            return NO_WARM_UP
        return SAMPLE_AGAIN if self.is_yours else MORE_THAN_THE_FIT

    @property
    def is_whole(self) -> bool:
        """Whether everything was looked at."""
        return bool(np.isfinite(self.p_value)) and not self.left_out

    def to_complete(self, *, is_checked: bool) -> str:
        """Return what to do about what could not be looked at; "" where nothing can be done.

        ``is_checked``: a check has done what it could.
        """
        missing = [name for name, why in self.left_out.items() if why.startswith(NOT_GIVEN)]
        if missing:
            return f"pass draws of all free variables: missing {', '.join(missing)}"
        steps = []
        if any(why.endswith(TOO_FEW) for why in self.left_out.values()):
            steps.append("draw more" if self.is_yours else MORE_THAN_THE_FIT)
        if not is_checked:
            steps.append(f"bread.check(model{', posterior=draws' * self.is_yours}), which compares all parameters")
        return ", or ".join(steps)

    def rows(self) -> list[Row]:
        """Return the lines on the draws."""
        texts = [_other_data(one) for one in self.other_data[:1]]
        if self.p_value < LEVEL:
            named = self.differences[: _NAMED - len(texts)]
            texts += [fitted(f"{name}: {size} (first look, p < {LEVEL:g})", name) for name, size in named]
        elif not texts and self.is_whole:
            texts = [f"no difference seen: {self.detectable} would be (first look)"]
        elif not texts:
            seen = "no difference seen where they could be looked at; " if np.isfinite(self.p_value) else ""
            reasons = [f"{short(name, LETTERS)} ({why.rstrip('.')})" for name, why in self.left_out.items()]
            reasons = reasons[:_NAMED]
            more = len(self.left_out) - len(reasons)
            listed = "; ".join([*reasons, *([f"{more} more"] if more else [])])
            texts = [f"{seen}left out: {listed}" if listed else f"{seen}the first look could test nothing"]
        label = YOUR_DRAWS if self.is_yours else FITS_DRAWS
        return [(label if not i else "", text) for i, text in enumerate(texts)]

    def sentences(self) -> list[str]:
        """Return everything that was found, for the details of a verdict."""
        whose = "Your draws" if self.is_yours else "The fit's draws"
        said = [f"First look: {_other_data(one)}." for one in self.other_data]
        if self.p_value < LEVEL:
            sizes = [f"{name} ({size})" for name, size in self.differences]
            has_errors = any("(" in size for _, size in self.differences)
            errors = " Standard errors of sizes are in brackets." if has_errors else ""
            said.append(f"{whose} contradict the gradient of the density (p < {LEVEL:g}): {', '.join(sizes)}.{errors}")
        elif np.isfinite(self.p_value):
            said.append(
                f"{whose} agree with the gradient of the density (p = {self.p_value:.2g}): {self.detectable} would "
                "have been seen, 9 times in 10."
            )
        said += [f"Not looked at: {name}, {why.rstrip('.')}." for name, why in self.left_out.items()]
        return [*said, f"A first look does not exclude {BLIND}."]


def is_first_look(report: Any) -> bool:
    """Return whether a report holds a first look and no bound, and was to hold no more."""
    is_alone = read_group(report, GROUP) is not None and read_group(report, "bounds") is None
    return is_alone and not read_attributes(report).get("is_interrupted", 0)


def read_look(report: Any) -> LookFound | None:
    """Return what the group `first_look` says; None where there is none."""
    look = read_group(report, GROUP)
    source = str(read_attributes(report).get("fit_source", YOURS))
    return None if look is None else look_found(look, is_yours=source == YOURS)


def look_found(look: xr.Dataset, *, is_yours: bool) -> LookFound:
    """Return what the group says of the user's draws, or the fit's."""
    p_value = float(look["p_value"])
    return LookFound(
        p_value,
        is_yours,
        tuple(tuple(one) for one in json.loads(look.attrs["other_data"])),
        tuple(_differences(look)) if p_value < LEVEL else (),
        _detectable(look) if np.isfinite(p_value) else "",
        json.loads(look.attrs["left_out"]),
    )


def not_certified(report: Any) -> str:
    """Return why a check could certify nothing, and what would allow it; "" for any other report."""
    return str(read_attributes(report).get("not_certified", ""))


def first_look_answer(report: Any) -> Answer:
    """Return what a report of `bread.look` says, or of a check that could certify nothing."""
    bug = bug_answer(report)
    if bug is not None:
        return bug
    look, attributes = read_look(report), read_attributes(report)
    assert look is not None
    modes_group, fit_group = read_group(report, "modes"), read_group(report, "fit")
    modes = None if modes_group is None else read_modes(modes_group)
    fit = None if fit_group is None else read_fit(fit_group)
    reason = not_certified(report)
    missed = modes is not None and modes.n_missed > 0
    status, finding, advice = _status(look, missed, is_checked=bool(reason))
    if modes is not None and missed and status == "not converged":
        advice = mode_todo(modes)
    if status == "no difference seen" and reason:  # by a check, which did what it could
        finding, advice = "nothing could be certified", ""
    data = [looks_words(fit) if fit_status(fit) != "not tested" else "", "" if modes is None else modes_words(modes)]
    quality = read_fit_quality(attributes)
    backend = str(attributes.get("inference_library", ""))
    warnings = [
        "" if quality is None else fit_warning(quality, backend, has_advice=not look.other_data),
        what_misfits(fit),
    ]
    details = [
        *look.sentences(),
        *([f"Not certified: {reason}."] if reason else []),
        *(missed_mode(modes) if modes is not None and missed else [none_found(modes)]),
    ]
    return Answer(
        status,
        finding,
        (
            *look.rows(),
            ("Not certified", reason),
            (YOUR_DATA, "; ".join(part for part in data if part)),
            (NOT_EXCLUDED, "" if look.is_disagreement else BLIND),
        ),
        tuple(one for one in warnings if one),
        advice,
        details=" ".join(one for one in details if one),
        numbers={
            "direct_p_value": look.p_value,
            "fit": fit_status(fit),
            "fit_p_value": float("nan") if fit is None else fit.p_value,
            "n_missed_modes": None if modes is None else modes.n_missed,
        },
    )


def _status(look: LookFound, misses_mode: bool, *, is_checked: bool) -> tuple[str, str, str]:
    """Return status, finding and what to do."""
    whose = "your draws" if look.is_yours else "the fit's draws"
    if look.other_data:
        return "disagreement", f"{whose} are of other data", look.advice
    if look.is_disagreement:
        return "disagreement", f"{whose} are not the posterior's", look.advice
    if misses_mode:
        return "not converged", "a mode is missed", ""
    if not look.is_whole:
        return "inconclusive", f"not all of {whose} could be looked at", look.to_complete(is_checked=is_checked)
    same = ", posterior=draws" * look.is_yours
    return "no difference seen", "", f"bread.check(model{same}) bounds the error and looks for modes"


def _other_data(one: tuple[str, Any, float, float]) -> str:
    name, element, ours, theirs = one
    if not element:
        return fitted(f"{name} has {ours:.0f} values in the model, {theirs:.0f} where the draws are from", name)
    where = f" (element {element})"
    return fitted(f"{name} differs: {ours:.4g} in the model, {theirs:.4g} where the draws are from{where}", name)


def _detectable(look: xr.Dataset) -> str:
    """Return what would have been seen, of the parameter of which least is, and of which that is not known."""
    shift, ratio = (look[f"detectable_{name}"].values for name in ("shift", "sd_ratio"))
    untold = [str(name) for name in look["parameter"].values[np.isnan(shift)]]
    if len(untold) == len(shift):
        return "how large a difference"
    but = "" if not untold else f" (but of {untold[0]}{', ...' if len(untold) > 1 else ''})"
    seen = f"a shift of {np.nanmax(shift):.2g} sd or an sd off by {100 * np.nanmax(ratio, initial=0.0):.0f}%"
    return seen + fitted(but, *untold[:1], room=30)


def sizes(look: xr.Dataset) -> NDArray[np.float64]:
    """Return by how many standard errors mean or sd of each parameter is off; 0 where that is not told."""
    with np.errstate(invalid="ignore", divide="ignore"):
        by_shift = np.abs(look["shift"].values) / look["shift_se"].values
        by_ratio = np.abs(look["sd_ratio"].values - 1.0) / look["sd_ratio_se"].values
    return np.asarray(np.nan_to_num(np.fmax(by_shift, by_ratio), nan=0.0), dtype=np.float64)


def _differences(look: xr.Dataset) -> list[tuple[str, str]]:
    """Return the parameters that are plainly off, the most so first, and by how much; else where the test failed."""
    worst = int(np.nanargmin(look["function_p_value"].values))
    if look["kind"].values[worst] == BEGINNING:
        return [("chains", _BEGIN)]
    size = sizes(look)
    shift, shift_se, ratio, ratio_se = (look[name].values for name in ("shift", "shift_se", "sd_ratio", "sd_ratio_se"))
    found = []
    for i in np.argsort(-size, kind="stable"):
        if size[i] < _PLAIN:
            break
        parts = []
        if abs(shift[i]) >= _PLAIN * shift_se[i]:
            direction = "high" if shift[i] > 0 else "low"
            parts.append(f"mean too {direction} by {abs(shift[i]):.2g} ({shift_se[i]:.1g}) sd")
        if abs(ratio[i] - 1.0) >= _PLAIN * ratio_se[i]:
            direction = "large" if ratio[i] > 1 else "small"
            parts.append(f"sd too {direction} by {100 * abs(ratio[i] - 1.0):.2g}% ({100 * ratio_se[i]:.1g}%)")
        found.append((str(look["parameter"].values[i]), ", ".join(parts)))
    if found:
        return found
    return [(str(look["function_of"].values[worst]), _DIFFERS)]
