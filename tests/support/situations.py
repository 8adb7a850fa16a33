"""Reports of every status and verb, small and made up where that is possible: what a verdict has to find words for.

``python -m tests.support.situations`` prints the twelve that docs/reading.md shows.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import xarray as xr

import bread
from bread.report import container as report
from bread.report.compat import group_names, make_container, read_attributes, read_group
from bread.report.first_look import BEGINNING
from bread.running.state.exactness_results import DirectTest, DirectTests
from bread.running.state.mode_results import FoundMode, ModeResults
from bread.statistics.bounds.goal import Goal
from bread.statistics.real_data.modes import RegionEvidence, Share, WeighedMode
from tests.support.fake_results import constrain, fake_result, shift_reverse_starts
from tests.support.verb_reports import MADE, made

STATE = np.array([8.1, 0.5, 0.0, 0.0, 0.0, 1.0])
NOWHERE, HALF = Share(0.0, 0.0, 0.007), Share(0.5, 0.4, 0.6)
POTENTIAL = "'twice' (pm.Potential) has no simulator; a likelihood that can be drawn would allow it"


def mode(*, missed: bool, annealed: Share = NOWHERE, own: Share | None = None) -> FoundMode:
    weighed = WeighedMode(RegionEvidence(-40.0, 0.02, 900.0), False, 0.978, 0.976, annealed, missed)
    return FoundMode(STATE, -38.0, weighed, own)


def checked(*modes: FoundMode, change: Callable[[Any], None] | None = None, **changes: Any) -> Any:
    """Return a report of a check, with a search for modes."""
    result = fake_result(**changes)
    result.modes = ModeResults(modes, -44.0, 100, 4000, 13, 250, 16_400, ())
    if change is not None:
        change(result)
    return report.to_container(result, constrain)


def with_groups(made: Any, groups: dict[str, Any], without: tuple[str, ...] = (), **attributes: Any) -> Any:
    """Return a report with other groups and attributes."""
    kept = {name: read_group(made, name) for name in group_names(made) if name not in without}
    return make_container({**kept, **groups}, read_attributes(made) | attributes)


def look_of(
    names: tuple[str, ...] = ("mu", "tau"),
    p_value: float = 0.4,
    shift: float = 0.02,
    sd_ratio: float = 0.99,
    other_data: tuple[Any, ...] = (),
    left_out: dict[str, str] | None = None,
    kind: str = "1",
) -> xr.Dataset:
    """Return the group `first_look`, whose first parameter is off by so much."""
    off = np.arange(len(names)) == 0
    error = np.full(len(names), 0.03)
    return xr.Dataset(
        {
            "p_value": ((), p_value),
            "shift": ("parameter", np.where(off, shift, 0.01)),
            "shift_se": ("parameter", error),
            "sd_ratio": ("parameter", np.where(off, sd_ratio, 1.0)),
            "sd_ratio_se": ("parameter", 0.7 * error),
            "detectable_shift": ("parameter", 4.0 * error),
            "detectable_sd_ratio": ("parameter", 3.0 * error),
            "function_p_value": ("function", np.full(len(names), p_value)),
            "kind": ("function", np.array([kind] * len(names))),
            "identity_of": ("function", np.array(names, dtype=np.str_)),
            "function_of": ("function", np.array(names, dtype=np.str_)),
            "n_effective": ("coordinate", np.full(len(names), 900.0)),
        },
        coords={"parameter": np.array(names, dtype=np.str_), "coordinate": np.array(names, dtype=np.str_)},
        attrs={
            "n_draws": 1000,
            "left_out": json.dumps(left_out or {}),
            "other_data": json.dumps([list(one) for one in other_data]),
        },
    )


def looked(base: Any = None, **options: Any) -> Any:
    """Return a report of a check that begins with a first look."""
    return with_groups(checked(posterior_shift=0.0) if base is None else base, {"first_look": look_of(**options)})


def look_alone(reason: str = "", modes: bool = False, **options: Any) -> Any:
    """Return a report that certifies nothing: of `bread.look`, or of a check that gives a reason."""
    made = checked(*([mode(missed=True, own=NOWHERE)] if modes else []), posterior_shift=0.0)
    kept = {"first_look", "fit", "modes"} if reason else {"first_look"}
    without = tuple(name for name in group_names(made) if name not in kept)
    attributes = {"not_certified": reason} if reason else {}
    return with_groups(made, {"first_look": look_of(**options)}, without, **attributes)


def direct(name: str, p_value: float, left_out: dict[str, str] | None = None) -> Callable[[Any], None]:
    """Return what gives a result a test of exact draws with this p-value for tau."""
    variables, functions = ("mu", "tau"), ("1", "tanh(own)")
    p_values = np.array([[0.5, 0.7], [0.9, p_value]])

    def change(result: Any) -> None:
        result.direct_tests = DirectTests(
            (DirectTest(name, variables, functions, p_values, np.zeros((2, 2)), 1000),), left_out or {}, 2000
        )

    return change


def interrupted(result: Any) -> None:
    result.is_interrupted = True
    result.seconds = {"compile": 5.0, "tune": 21.0, "search": 4.0}


def diverged(result: Any) -> None:
    result.fit = replace(result.fit, n_divergences=13)


def nothing(result: Any) -> None:
    result.is_interrupted = True
    result.runs.clear()


# What docs/reading.md shows.
TWELVE: dict[str, Callable[[], Any]] = {
    "all is well": looked,
    "draws of other data": lambda: looked(
        checked(posterior_shift=1.5), p_value=1e-5, shift=0.16, other_data=(("y", "0", 28.0, 18.0),)
    ),
    "a mode that nobody visited": lambda: looked(
        checked(mode(missed=True, own=NOWHERE), posterior_shift=0.0, gap=30.0)
    ),
    "a loose bound": lambda: looked(checked(posterior_shift=0.0, gap=1.0)),
    "data unlike the model's": lambda: looked(checked(posterior_shift=0.0, observed_extra=8.0, n_forward=179)),
    "a bug": lambda: checked(change=direct("prior score", 1e-5)),
    "an improper prior": lambda: looked(checked(simulate_from="posterior", posterior_shift=0.0)),
    "a potential": lambda: look_alone(POTENTIAL),
    "an approximation": lambda: look_alone(p_value=1e-9, shift=0.01, sd_ratio=0.62),
    "divergences": lambda: looked(checked(posterior_shift=0.0, change=diverged, simulate_from="fitted")),
    "a check that was stopped": lambda: looked(checked(posterior_shift=0.0, change=interrupted)),
    "a discrete parameter": lambda: looked(left_out={"kind": "it is discrete"}),
}

MORE: dict[str, Callable[[], Any]] = {
    "no own draws": checked,
    "a search that found nothing": lambda: checked(mode(missed=False, annealed=HALF)),
    "fitted": lambda: checked(simulate_from="fitted"),
    "at draws that are not the posterior's": lambda: report.to_container(
        shift_reverse_starts(fake_result(simulate_from="posterior", posterior_shift=1.5)), constrain
    ),
    "localised": lambda: checked(simulate_from="localised"),
    "localised with own draws": lambda: looked(checked(simulate_from="localised", posterior_shift=0.0)),
    "own draws that agree": lambda: checked(posterior_shift=0.0),
    "own draws that differ": lambda: checked(posterior_shift=1.5),
    "own draws that differ a little": lambda: checked(posterior_shift=0.35),
    "a look that fails": lambda: looked(p_value=1e-6, shift=0.2, sd_ratio=0.8),
    "limits contain what was asked for": lambda: checked(gap=0.05),
    "chains that do not follow": lambda: checked(gap=1.0, rate=0.1),
    "harder data": lambda: checked(observed_extra=8.0, n_forward=179),
    "an outlier": lambda: checked(misfit=True),
    "nats": lambda: checked(goal=Goal(target=1.0), gap=0.4),
    "nats that are missed": lambda: checked(goal=Goal(target=1.0), gap=6.0),
    "few data sets": lambda: checked(n_confirm=9),
    "no data sets": lambda: checked(change=nothing),
    "a mode, certified draws alone": lambda: checked(mode(missed=True)),
    "a mode that own draws know": lambda: checked(mode(missed=True, own=Share(0.93, 0.9, 0.95)), posterior_shift=1.5),
    "ranks that ring": lambda: report.to_container(shift_reverse_starts(fake_result()), constrain),
    "a start that is remembered": lambda: report.to_container(
        shift_reverse_starts(fake_result(simulate_from="fitted")), constrain
    ),
    "a kernel that is wrong": lambda: checked(change=direct("kernel at beta = 1", 1e-5)),
    "tests that were left out": lambda: checked(
        change=direct("kernel at beta = 0", 0.5, {"likelihood score": "ValueError: lam is too large"})
    ),
    "a look": look_alone,
    "a look at warm-up": lambda: look_alone(p_value=1e-6, kind=BEGINNING),
    "a look at other data": lambda: look_alone(p_value=0.5, other_data=(("y", "", 3.0, 5.0),)),
    "a look that could not": lambda: look_alone(p_value=float("nan"), left_out={"mu": "12 effective draws of it"}),
    "nothing certified, and a mode is missed": lambda: look_alone(POTENTIAL, modes=True),
    "nothing certified, no look": lambda: with_groups(
        checked(),
        {},
        tuple(name for name in group_names(checked()) if name != "observed_data"),
        not_certified=POTENTIAL,
    ),
}


def edited(kind: str, group: str, change: Callable[[xr.Dataset], xr.Dataset]) -> Any:
    """Return the report of a verb with one group changed."""
    whole = made(kind)
    dataset = read_group(whole, group)
    assert dataset is not None
    return with_groups(whole, {group: change(dataset.copy(deep=True))})


def told(kind: str, values: dict[str, Any] | None = None, **attributes: Any) -> Any:
    """Return the report of a verb whose own group has other values and attributes."""
    arrays = values or {}

    def change(dataset: xr.Dataset) -> xr.Dataset:
        for name, value in arrays.items():
            dataset[name] = (dataset[name].dims, np.broadcast_to(np.asarray(value), dataset[name].shape).copy())
        return dataset.assign_attrs(attributes)

    return edited(kind, kind, change)


def enough(kind: str, group: str, **attributes: Any) -> Any:
    """Return the report of a verb with twelve times its simulated data sets."""

    def change(dataset: xr.Dataset) -> xr.Dataset:
        many = xr.concat([dataset] * 12, dim="simulation", data_vars="minimal")
        return many.assign_attrs({**dataset.attrs, **attributes})

    return edited(kind, group, change)


def compared(*better: int) -> Any:
    """Return a comparison of enough data sets, with a sign for each cost: -1 where the first is better."""
    whole, contrasts = enough("compare", "comparison"), read_group(made("compare"), "contrasts")
    assert contrasts is not None
    contrasts = contrasts.copy(deep=True)
    contrasts["better"] = (contrasts["better"].dims, np.array(better))
    contrasts["error_ratio"] = (contrasts["error_ratio"].dims, np.array([0.25, 0.5, 2.0]))
    return with_groups(whole, {"contrasts": contrasts})


FAILS = np.array([True, False, False, False])
SCORES = {"total": -12.0, "total_standard_error": 0.2, "total_lower": -12.4, "total_upper": -11.6}
VERBS: dict[str, Callable[[], Any]] = {
    **{f"bread.{kind}": partial(made, kind) for kind in MADE},
    "debug: bug": lambda: told("debug", {"alarm": True, "fails": FAILS}, diagnosis=json.dumps(["A lost Jacobian."])),
    "debug: seen": lambda: told("debug", kernel_shift=0.12, kernel_scale=0.08, draws_shift=0.1),
    "debug: not reversible": lambda: told("debug", {"is_reversible": False}),
    "debug: untested": lambda: told("debug", left_out=json.dumps([["x", "kernel at beta = 1", "it raised."]])),
    "compare: better": lambda: compared(-1, -1, 0),
    "compare: trade-off": lambda: compared(-1, 1, 0),
    "compare: cannot tell": lambda: compared(0, 0, 0),
    "compare: bug": lambda: edited(
        "compare", "comparison", lambda group: group.assign(alarm_p_value=0.0 * group["alarm_p_value"])
    ),
    "unbiased: bounded": lambda: told("unbiased", first_iteration=7),
    "unbiased: unmet": lambda: told("unbiased", n_unmet=3),
    "unbiased: heavy": lambda: told("unbiased", is_heavy=1),
    "path_sampling: estimated": lambda: told(
        "path_sampling", {"doubts": "", "standard_error": 0.2, "upper": -4.0, "lower": -5.0}
    ),
    "path_sampling: scores": lambda: told("path_sampling", {"doubts": ""}, is_leave_one_out=1, **SCORES),
    "path_sampling: unmet": lambda: told("path_sampling", n_unmet=3, unmet_at=0.3),
    "data_annealing: sandwiched": lambda: enough(
        "data_annealing", "data_annealing", mean_gap_lower=0.2, mean_gap_upper=0.9
    ),
    "data_annealing: far": lambda: enough("data_annealing", "data_annealing"),
    "data_annealing: negative": lambda: enough("data_annealing", "data_annealing", mean_gap_upper=-0.1),
    "data_annealing: failed": lambda: told("data_annealing", n_failed=2),
}


def described(situations: dict[str, Callable[[], Any]] | None = None) -> str:
    """Return situations with their verdicts."""
    every = situations or TWELVE
    return "\n".join(f"## {name}\n{bread.verdict(every[name]())}\n" for name in every)


situation = cache(lambda name: {**TWELVE, **MORE, **VERBS}[name]())

if __name__ == "__main__":
    print(described())
