"""Every error of bread and its plugins, read as text: whole sentences, the value received where one is wrong."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import bread
from bread import errors

ROOT = Path(bread.__file__).parents[1]
HOLE = "{}"

# Arguments that are wrong in themselves: what is wrong is what there is, or is not.
WITHOUT_VALUE = (
    "n_temperatures must be a whole number, a sequence of them or None, got an empty one.",
    "log_density=, simulate= and targets= are for kernels without a model, and model= was given too.",
    "targets= have their own log_density and simulate.",
    "targets= need kernel=",
    "No model: pass one",
    "max_seconds stops a check as a signal does",
    "n_temperatures must be a whole number or a sequence of them, all of which",
    "ax= is for one cost",
    "a model whose draws come from another one",
    "A pickled copy of a model",
    "data hold a value that is nested too deeply",
    "log_base + log_ratio must be finite",
    "a Component ",
    "plot_debug draws",
    "plot_report draws",
    "plot_bounds needs",
    "plot_work needs",
    "The report has no annealed chains",
    "uniforms must lie in [0, 1].",
    "values must hold at least one number, but are empty.",
    "pointwise and replicated_smallest belong together",
    "values hold both inf and -inf",
    "progressbar= is False in tests.",
    "JAX computes in single precision",
)


@dataclass(frozen=True)
class Text:
    """One message, with `{}` for each value."""

    place: str
    kind: str
    text: str


def written(node: ast.expr) -> str:
    """Return a message as it is written, with `{}` for what is computed."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return written(node.left) + written(node.right)
    return HOLE


def texts(source: str, place: str) -> list[Text]:
    """Return the messages of bread's own errors that are made in ``source``."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name in dir(errors) and name.endswith("Error") and (text := written(node.args[0])) != HOLE:
            found.append(Text(f"{place}:{node.lineno}", name, text))
    return found


CLAUSES = (  # reasons, which other sentences take in
    "this backend has no densities of single variables",
    "the kernel {} is not NUTS or HMC on all variables",
    "{} is not PyMC's own NUTS or HMC",
    "the metric of {} is fixed by the user",
)


def faults(message: Text) -> list[str]:
    """Return what is wrong with a message."""
    text = message.text.strip()
    found = []
    if not text.endswith((".", "?", HOLE)) and "pip install" not in text and text not in CLAUSES:
        found.append("it is no whole sentence")
    if re.search(r"\bplease\b(?! report)|\boops\b|\bsorry\b|\binvalid\b|  |\d %", text, flags=re.IGNORECASE):
        found.append("a word that helps nobody, or a blank too many")
    if message.kind == "InvalidArgumentError" and HOLE not in text and not text.startswith(WITHOUT_VALUE):
        found.append("the value received is not named")
    return found


FILES = [*sorted((ROOT / "bread").rglob("*.py")), *sorted(ROOT.glob("plugins/*/bread_*/**/*.py"))]
TEXTS = [one for file in FILES for one in texts(file.read_text(), str(file.relative_to(ROOT)))]


def test_every_error_is_a_sentence_that_names_what_was_received() -> None:
    wrong = [f"{one.place}: {one.text!r}: {', '.join(found)}" for one in TEXTS if (found := faults(one))]
    assert not wrong, "\n".join(wrong)


def test_hundreds_of_errors_are_read() -> None:
    """Negative control of the reading: it would pass on an empty list."""
    assert len(TEXTS) > 300 and any(one.place.startswith("plugins/") for one in TEXTS)


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("raise InvalidArgumentError('draws must be >= 1')", "it is no whole sentence"),
        ("raise InvalidArgumentError(f'Invalid draws: {draws}.')", "a word that helps nobody"),
        ("raise InvalidArgumentError('draws must be at least 1.')", "the value received is not named"),
        ("raise UnsupportedModelError(f'Within  96 % of {name}.')", "a blank too many"),
    ],
)
def test_a_poor_message_is_found(source: str, fault: str) -> None:
    (message,) = texts(source, "here")
    assert any(fault in one for one in faults(message))


def test_exceptions_allowed_are_still_there() -> None:
    """A list of exceptions that nothing uses any more would hide the next one."""
    assert all(any(one.text.startswith(start) for one in TEXTS) for start in WITHOUT_VALUE)
