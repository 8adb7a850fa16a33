"""What is public is documented whole: every parameter, what is returned, what is raised; documents call what exists."""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
from pathlib import Path

import pytest
from numpydoc.validate import validate

import bread
from bread.lab import particles

ROOT = Path(__file__).parents[2]
FUNCTIONS = [name for name in bread.__all__ if inspect.isfunction(getattr(bread, name))]
FUNCTIONS += [f"exact.{name}" for name in bread.exact.__all__ if inspect.isfunction(getattr(bread.exact, name))]
FUNCTIONS += [f"lab.{name}" for name in bread.lab.__all__ if inspect.isfunction(getattr(bread.lab, name))]
FUNCTIONS += [f"lab.particles.{name}" for name in particles.__all__ if inspect.isfunction(getattr(particles, name))]
SECTIONS_LEFT_OUT = {"ES01", "EX01", "SA01"}  # written where they help
SAID_BY_NAME_AND_TYPE = {"PR07"}


def faults(name: str) -> list[tuple[str, str]]:
    """Return what numpydoc finds wrong."""
    return [error for error in validate(name)["errors"] if error[0] not in SECTIONS_LEFT_OUT | SAID_BY_NAME_AND_TYPE]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_are_documented_whole(name: str) -> None:
    assert not faults(f"bread.{name}")


def test_a_parameter_without_documentation_is_found() -> None:
    """Negative control: a function whose one line says enough for its own module, and not for users."""
    assert "PR01" in dict(faults("bread.report.compat.read_group"))


def test_all_public_functions_are_looked_at() -> None:
    assert {"check", "exact.anneal", "lab.unbiased", "lab.particles.forward"} <= set(FUNCTIONS) and len(FUNCTIONS) >= 15


def test_calls_in_the_documents_have_arguments_that_exist() -> None:
    pages = [ROOT / "README.md", ROOT / "SKILL.md", *(ROOT / "docs").rglob("*.md")]
    calls = [(page.name, call) for page in pages for call in calls_of(page.read_text())]
    assert len(calls) > 100
    wrong = [f"{page}: {ast.unparse(call)}" for page, call in calls if not is_sound(call)]
    assert not wrong


@pytest.mark.parametrize("written", ["bread.chekc(model)", "bread.check(model, posteriors=draws)"])
def test_a_call_that_does_not_exist_is_found(written: str) -> None:
    """Negative control."""
    (call,) = calls_of(f"| `{written}` |")
    assert not is_sound(call)


def calls_of(text: str) -> list[ast.Call]:
    """Return the calls of functions `bread.NAME` in inline code, and in blocks of Python."""
    found = re.findall(r"`(bread\.[^`]+\))`", text)
    found += re.findall(r"^```(?:python|\{code-cell\}[^\n]*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    trees = []
    for code in found:
        with contextlib.suppress(SyntaxError):  # "bread.check(..., cores=4)"
            trees.append(ast.parse(code))
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if re.fullmatch(r"bread\.\w+", ast.unparse(call.func))]


def is_sound(call: ast.Call) -> bool:
    """Return whether the function exists and takes the named arguments."""
    function = getattr(bread, ast.unparse(call.func).removeprefix("bread."), None)
    if function is None:
        return False
    parameters = inspect.signature(function).parameters
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    return takes_any or all(one.arg is None or one.arg in parameters for one in call.keywords)
