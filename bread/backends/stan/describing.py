"""What a report says of an opened Stan program: labels, versions, notes, and the paths that it does not allow."""

from __future__ import annotations

import ast
import contextlib
import importlib.metadata
import operator
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from bread.backends.stan.analysis.program import Program
from bread.backends.stan.language.dataflow import analyse_dataflow
from bread.backends.stan.language.refusals import RefusedError
from bread.backends.stan.language.scopes import resolve
from bread.backends.stan.language.syntax import parse
from bread.backends.stan.native.toolchain import Toolchain
from bread.backends.stan.opening import Declared
from bread.backends.stan.split.split import Splitter

_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
RESERVED_NAMES = ("simulation", "chain", "draw", "knot", "direction")


def dims(name: str, rank: int) -> tuple[str, ...]:
    """Return names for the dimensions of a variable."""
    return tuple(f"{name}_dim_{axis}" for axis in range(rank))


def lengths(dimensions: Sequence[str], data: Mapping[str, Any]) -> tuple[int | None, ...]:
    """Return the sizes of a variable as far as they can be told without Stan: sums and products of whole numbers."""
    return tuple(_length(text, data) for text in dimensions)


def _length(text: str, data: Mapping[str, Any]) -> int | None:
    try:
        return _whole(ast.parse(text.strip(), mode="eval").body, data)
    except (SyntaxError, LookupError, TypeError, ValueError):
        return None


def _whole(node: ast.expr, data: Mapping[str, Any]) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name) if np.ndim(data[name]) == 0:
            return operator.index(data[name])
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right):
            return int(_OPERATORS[type(op)](_whole(left, data), _whole(right, data)))
        case _:
            raise ValueError(ast.dump(node))


def is_storable(name: str, declared: Declared) -> bool:
    """Return whether a report can hold a variable of the data block."""
    return declared.type in ("int", "real") and name not in RESERVED_NAMES


def name_of_coordinate(label: str) -> str:
    """Return the parameter that Stan's label of an unconstrained coordinate belongs to."""
    return label.split(".", maxsplit=1)[0]


def path_refusals(program: Program) -> dict[str, str]:
    """Return why paths from the prior cannot be followed, which temper the likelihood alone."""
    if program.split_refusal is None:
        return {}
    reason = (
        f"The likelihood cannot be told from the prior. {program.split_refusal} Or use path='reference', which needs "
        "no split."
    )
    return {"prior": reason}


def bracketed(label: str) -> str:
    """Return "theta[1,2]" for Stan's "theta.1.2"."""
    name, *indices = label.split(".")
    return f"{name}[{','.join(indices)}]" if indices else name


def versions(toolchain: Toolchain) -> dict[str, str]:
    """Return the versions of what computes."""
    found = {"stan": toolchain.version}
    package = "cmdstanpy" if toolchain.source == "CmdStan" else "httpstan"
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        found[package] = importlib.metadata.version(package)
    return {**found, "compiler": toolchain.compiler.version} if toolchain.compiler else found


def note_on_stan(toolchain: Toolchain) -> str:
    """Return which Stan and which compiler make the numbers: version, source and folder."""
    return f"Made with {toolchain}."


def notes_on_program(program: Program, data: Mapping[str, Any]) -> list[str]:
    """Return what a reader must know of the analysis: outcomes, the part of each line, flags that were set."""
    how = "inferred from the program" if program.observed_inferred else "as given"
    notes = [f"Observed, {how}: {', '.join(program.observed)}."]
    by_part = {
        part: sorted({str(program.source.origin(one.line).line) for one in program.contributions if one.part == part},
                     key=int) for part in ("prior", "likelihood", "both")
    }  # fmt: skip
    lines = [f"{part}: {', '.join(found)}" for part, found in by_part.items() if found]
    if lines:
        notes.append(f"Lines of the program by part: {'; '.join(lines)}.")
    for name, value in program.fixed_data.items():
        if name in data and data[name] != value:
            notes.append(f"The flag {name!r} was set to {value}, so that the likelihood counts.")
    return [*notes, *program.notes]


def transformed_parameters(program: Program, computed: Collection[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the transformed parameters that a report shows, and those that it leaves out because outcomes enter them.

    Parameters
    ----------
    program : Program
    computed : collection of str
        Names that the compiled program writes.
    """
    blocks = parse(program.source)
    scopes = resolve(blocks)
    outcomes = [variable for variable in scopes.of_kind("data") if variable.name in program.observed]
    splitter = Splitter(analyse_dataflow(blocks, scopes), program.source, outcomes)
    kept, left_out = [], []
    for variable in scopes.of_kind("transformed parameter"):
        try:
            is_free = not splitter.is_observed([variable])
        except RefusedError:
            is_free = False
        if is_free and variable.name in computed and variable.name not in RESERVED_NAMES:
            kept.append(variable.name)
        elif not is_free:
            left_out.append(variable.name)
    return tuple(kept), left_out
