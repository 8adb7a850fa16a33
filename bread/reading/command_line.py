"""What the command line prints beside table and verdict: words in its own spelling, and how the check was made."""

from __future__ import annotations

import json
import re
from typing import Any

from bread.reading.sentences.fit import fit_status, read_fit
from bread.reading.sentences.lines import MORE
from bread.report.compat import read_attributes, read_group

_RENAMED = {"hyperparameters": "hyperparameter", "n_temperatures": "temperatures", "random_seed": "seed"}
_OPTIONS = (
    "observed", "simulator", "likelihood", "posterior", "simulate_from", "hyperparameters", "path", "schedule",
    "kernel", "init_steps", "simulations", "chains", "n_temperatures", "max_temperatures", "max_error", "target",
    "budget", "tune", "draws", "cores", "random_seed",
)  # fmt: skip
_LONG = tuple(name for name in _OPTIONS if "_" in name)  # names that are no words of English
_VALUE = r"""(?P<value>\[\.\.\.\]|\[[^\]]*\]|'[^']*'|"[^"]*"|[\w.+-]*\w)?"""
_ASSIGNED = re.compile(rf"(?<![\w.-])(?P<name>{'|'.join(_OPTIONS)})=(?!=){_VALUE}")
_NAMED = re.compile(rf"(?<![\w.=-])(?P<name>{'|'.join((*_LONG, 'hyperparameters(?= names )'))})(?![\w=])")
_PLACEHOLDERS = {"observed": "NAME", "hyperparameters": "NAME", "likelihood": "LINE"}

_MORE = "the tables below; --json (details); --html FILE"  # in place of attributes and functions

_UNREMARKABLE = (
    "Observed, ", "Lines of the program by part: ", "The tempered program has the density of the original",
    "Simulator and density agree on ", "The program's generated quantities are not computed",
    "Transformed parameters left out of the report", "Deterministic ",
)  # fmt: skip
_PROTOCOLS = {
    "prior": "from the prior",
    "fitted": "near your data, hyperparameters held at draws of the fit (an estimate)",
    "posterior": "at draws of the posterior, added to your data; nothing held",
    "localised": "from the model with a fit to your data as the law of the hyperparameters",
}


def as_options(text: str) -> str:
    """Return a message with arguments of `bread.check` spelt as options of the command line.

    ``observed=[...]`` becomes ``--observed NAME``, ``simulate_from='prior'`` becomes ``--simulate-from prior``. What
    stands between backquotes is text of a program, and stays.
    """
    if text == MORE:
        return _MORE
    parts = text.split("`")
    parts[::2] = [_NAMED.sub(_option, _ASSIGNED.sub(_option, part)) for part in parts[::2]]
    return "`".join(parts)


def _option(match: re.Match[str]) -> str:
    name = match["name"]
    option = f"--{_RENAMED.get(name, name).replace('_', '-')}"
    value = match.groupdict().get("value") or ""
    if value == "[...]":
        return f"{option} {_PLACEHOLDERS.get(name, 'VALUE')}"
    if value.startswith("["):  # an option is repeated for each
        return " ".join(f"{option} {one.strip(' ' + chr(34) + chr(39))}" for one in value[1:-1].split(","))
    return f"{option} {value.strip(chr(34) + chr(39))}" if value else option


def held_parameters(attributes: dict[str, Any]) -> list[str]:
    """Return the parameters that were held at draws of the fit, or whose law was taken from it."""
    names = json.loads(str(attributes.get("settings", "{}"))).get("hyperparameters") or ()
    return list(names) if attributes.get("simulate_from") in ("fitted", "localised") else []


def how_it_was_made(report: Any) -> list[tuple[str, str]]:
    """Return path, protocol, held parameters, outcomes and the notes that a reader must know, each with its label."""
    attributes = read_attributes(report)
    settings = json.loads(str(attributes.get("settings", "{}")))
    lines = [("Path", _path(report, attributes, settings)), ("Data sets", _protocol(attributes, settings))]
    why = str(attributes.get("not_certified", ""))
    if why:  # nothing was annealed
        lines = [("Not certified", why)]
    held = ", ".join(held_parameters(attributes))
    if held:
        lines.append(("Held" if attributes["simulate_from"] == "fitted" else "Localised", held))
    group = read_group(report, "fit")
    if group is not None:
        fit = read_fit(group)
        left_out = f"; not tested: {', '.join(fit.left_out)}" if fit.left_out else ""
        lines.append(("Fit", f"{fit_status(fit)} (p = {fit.p_value:.2g}, least in {fit.node}){left_out}"))
    notes = json.loads(str(attributes.get("notes", "[]")))
    outcomes = _outcomes(report, notes)
    if outcomes:
        lines.append(("Outcomes", outcomes))
    remarks = [note for note in notes if not note.startswith(_UNREMARKABLE)]
    warnings = json.loads(str(attributes.get("warnings", "[]")))
    return [*lines, *(("Note", note) for note in dict.fromkeys([*remarks, *warnings]))]


def _path(report: Any, attributes: dict[str, Any], settings: dict[str, Any]) -> str:
    reference = read_group(report, "reference")
    label = reference.attrs.get("label", "") if reference is not None else ""
    from_ = f", from: {label}" if label and attributes.get("path") == "reference" else ""
    chosen = ", chosen by pilots" if settings.get("path") == "auto" else ""
    return f"{attributes.get('path', 'prior')}{from_}{chosen}"


def _protocol(attributes: dict[str, Any], settings: dict[str, Any]) -> str:
    name = str(attributes.get("simulate_from", "prior"))
    how = _PROTOCOLS.get(name, "")
    return f"{name}, {how}" if how else name


def _outcomes(report: Any, notes: list[str]) -> str:
    """Return the observed variables, and whether they were inferred."""
    data = read_group(report, "observed_data")
    names = ", ".join(map(str, data.data_vars)) if data is not None else ""
    is_inferred = any(note.startswith("Observed, inferred") for note in notes)
    return f"{names}, inferred from the program (--observed names others)" if is_inferred and names else names
