"""What is public is documented whole: every parameter, what is returned, what is raised."""

from __future__ import annotations

import inspect

import pytest
from numpydoc.validate import validate

import bread
from bread.lab import particles

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
