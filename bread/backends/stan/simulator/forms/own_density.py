"""Densities that a program writes itself, of one number: drawn by inverting their integral.

The integral is computed with every draw and must be one. No generator of the program's is used: whether ``foo_rng``
draws from ``foo_lpdf`` could be tested, never proven.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bread.backends.stan.language.distributions import Distribution
from bread.backends.stan.language.refusals import refuse
from bread.backends.stan.language.scopes import Variable, name_position
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, source_text, start
from bread.backends.stan.language.variates import Variate, rank
from bread.backends.stan.simulator.draw import Draw, Reading
from bread.backends.stan.simulator.forms.gaussian import gaussian_law
from bread.backends.stan.simulator.forms.induced import induced_law
from bread.backends.stan.simulator.forms.own import type_of, with_arguments

_OWN = "Pass simulator=: a Stan program or a Python function that draws parameters and data."
_FILE = Path(__file__).parent.parent / "inversion.stan"
_SCALARS = ("real", "int")


class OwnDensity(NamedTuple):
    """How a density of the program's own is drawn.

    Attributes
    ----------
    name : str
        Of the density that is added up: the program's own, or one that it is found to be equal to.
    law : Distribution
    functions : str
        Stan functions which that takes.
    note : str
        For the report.
    """

    name: str
    law: Distribution
    functions: str
    note: str


def own_density(
    reading: Reading, node: Node, name: str, arguments: Sequence[Node], variate: Variate, is_truncated: bool
) -> OwnDensity | None:
    """Return how the program's own density of that name is drawn; None where it has none of that name.

    Raises
    ------
    RefusedError
        The density is not of one number, or its bounds are not data.
    """
    source, functions = reading.source, reading.flow.scopes.functions
    if name + "_lpdf" not in functions:
        return None
    written = f"the density {name!r} is the program's own and "
    if is_truncated:
        raise refuse(source, node, f"{written}truncated.", "Write its density so that it integrates to one. " + _OWN)
    versions = with_arguments(functions[name + "_lpdf"], len(arguments) + 1)
    if len(versions) != 1:
        raise refuse(source, node, f"{written}overloaded.", "Give each version a name of its own. " + _OWN)
    induced = induced_law(reading.flow, name, len(arguments), variate)
    if induced is not None:
        return OwnDensity(*induced, f"{name}_lpdf is drawn from as the induced Dirichlet law, by its values.")
    first, *others = versions[0]
    declared = tuple(_declaration(source, one, i) for i, one in enumerate(others))
    normal = gaussian_law(reading.flow, name, len(arguments), variate, declared)
    if normal is not None:
        return OwnDensity(*normal, f"{name}_lpdf is drawn from as the normal law that its values tell.")
    if type_of(first) != "real" or variate.variable.plain not in ("real", "vector", "row_vector", "matrix"):
        raise refuse(source, node, f"{written}of several values at once.", f"Give it one value at a time. {_OWN}")
    if variate.open or variate.wrappers or _is_constrained(variate.variable):
        raise refuse(
            source, node, f"{written}is given several values, or a computed one.",
            f"Give it one value at a time, of a variable that has bounds alone. {_OWN}",
        )  # fmt: skip
    low, high = (_bound(reading, node, variate.variable, which) for which in ("lower", "upper"))
    vectors = tuple(i for i, one in enumerate(others) if type_of(one) not in _SCALARS)
    given = "".join(f", {{{i}}}" for i in range(len(others)))
    law = Distribution("scalar", f"bread_{name}_rng({low}, {high}{given})", vectors, support="inside")
    unused = f"; {name}_rng is not used" if f"{name}_rng" in functions else ""
    note = f"{name}_lpdf is drawn from by inverting its integral, which must be 1{unused}."
    return OwnDensity(name, law, _functions(name, declared), note)


def _is_constrained(variable: Variable) -> bool:
    return variable.kind == "parameter" and variable.type not in ("real", "vector", "row_vector", "matrix")


def _bound(reading: Reading, node: Node, variable: Variable, which: str) -> str:
    """Return a declared bound as Stan code over data; an infinite one where there is none."""
    flow, source, bound = reading.flow, reading.source, variable.bounds.get(which)
    if bound is None:
        return "negative_infinity()" if which == "lower" else "positive_infinity()"
    reads = flow.depends(bound)
    is_data = all(v.kind in ("data", "transformed data") for v in reads) and reading.outcomes.isdisjoint(reads)
    if rank(bound, flow.scopes) != 0 or not is_data:
        raise refuse(
            source, node, f"the bounds of {variable.name!r}, drawn from a density of the program's own, are no numbers "
            "that the data give.", f"Declare bounds that no parameter and no outcome enters. {_OWN}",
        )  # fmt: skip
    return f"({source_text(source, bound)})"


def _declaration(source: Source, argument: Node, i: int) -> str:
    """Return the declaration of an argument, under a name of its own."""
    kind = " ".join(source.code[start(argument) : name_position(argument)].split())
    return f", {kind} bread_given{i}"


@cache
def _functions(name: str, declared: tuple[str, ...]) -> str:
    """Return the functions that draw from a density, on one line."""
    text = re.sub(r"//[^\n]*", "", _FILE.read_text(encoding="utf-8"))
    body = " ".join(text[text.index("{") + 1 : text.rindex("}")].split())
    listed = "".join(f", bread_given{i}" for i in range(len(declared)))
    for word, value in (
        (" GIVEN_MORE", listed),
        (" GIVEN", listed.replace(",", " |", 1)),
        (" DECLARED", "".join(declared)),
        ("LAW", name),
    ):
        body = body.replace(word, value)
    return body


def written_out(draws: Iterable[Draw]) -> tuple[str, list[str]]:
    """Return the functions that draw from densities of the program's own, and a note on each of these."""
    own = {draw.distribution: draw for draw in draws if draw.functions}
    return " ".join(draw.functions for draw in own.values()), [draw.note for draw in own.values()]
