"""The program's own mass functions, drawn by adding them up, number by number, until a uniform variate is reached.

Their sum must be one, which is seen to with every draw. No generator of the program's is used: that ``foo_rng`` draws
from ``foo_lpmf`` would be taken on trust, and where it does not a verdict would be false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.distributions import Distribution
from bread.backends.stan.language.refusals import refuse
from bread.backends.stan.language.rendering import Renderer
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, nodes
from bread.backends.stan.language.variates import Variate
from bread.backends.stan.simulator.draw import Draw, Mode, Writer

_OWN = "Pass simulator=: a Stan program or a Python function that draws parameters and data."
_FROM_ONE = ("cumulative_", "sratio_", "cratio_", "acat_")  # what brms calls laws of a category, which begin at 1
_MISSING = (
    "1e-8"  # of the sum of masses: where the next mass is not asked for, because it may be outside of the support
)
_EXCESS = "1e-6"  # by which rounding may make the sum of masses too large
_MOST = 1_000_000  # masses that are added up for one draw
_AFTER = 1000  # masses that are added up after the draw is known, to see that they sum to one
_TAIL = "1e-5"  # of the sum of masses and a tail that falls like a power of the number, as it falls at the last one
_SCALARS = ("real", "int")


def own_mass(
    flow: Dataflow, source: Source, node: Node, name: str, arguments: Sequence[Node], is_truncated: bool
) -> Distribution | None:
    """Return the program's own mass function of that name; None where it has no density of that name.

    Raises
    ------
    RefusedError
        Its density cannot be drawn from.
    """
    functions = flow.scopes.functions
    written = f"the density {name!r} is the program's own and "
    if name + "_lpmf" not in functions:
        return None
    if is_truncated:
        raise refuse(source, node, f"{written}truncated.", "Write its mass function so that it sums to one. " + _OWN)
    versions = with_arguments(functions[name + "_lpmf"], len(arguments) + 1)
    if len(versions) != 1:
        raise refuse(source, node, f"{written}overloaded.", "Give each version a name of its own. " + _OWN)
    first, *others = map(type_of, versions[0])
    if first != "int":
        raise refuse(source, node, f"{written}of several values at once.", f"Give it one value at a time. {_OWN}")
    return Distribution("scalar", "", tuple(i for i, one in enumerate(others) if one not in _SCALARS), True)


def with_arguments(functions: Sequence[Node], n: int) -> list[list[Node]]:
    """Return the arguments of each function that takes ``n``; a forward declaration is none."""
    found = []
    for function in functions:
        children = nodes(function)
        arguments = [child for child in children if child.data == "argument"]
        if len(arguments) == n and any(child.data == "block" for child in children):
            found.append(arguments)
    return found


def type_of(argument: Node) -> str:
    """Return the type of an argument of a function, without its name."""
    return "".join(str(leaf) for leaf in nodes(argument)[-1].scan_values(lambda _: True))


@dataclass(frozen=True, eq=False)
class SummedMass:
    """One whole number, drawn by adding up the program's own mass function."""

    start: Node | None
    first: int
    both: bool = False  # the data have numbers below the first: masses are added from there outwards

    def expressions(self, draw: Draw) -> list[Node]:
        """Return where the support begins."""
        return [] if self.start is None else [self.start]

    def code(self, draw: Draw, writer: Writer, render: Renderer, mode: Mode) -> str:
        """Return the code that adds up masses until a uniform variate is reached."""
        if mode == "total":
            return ""
        if mode == "check":
            return f"bread_again += {writer.held_density(draw, render)};"
        element = writer.element(draw, render)
        function = f"{draw.distribution}_lpmf"
        arguments = "".join(f", {argument.text(render)}" for argument in draw.arguments)
        given = arguments.replace(", ", " | ", 1)  # nothing is put into the element before its density is added
        start = str(self.first) if self.start is None else f"({render(self.start)})"
        at = f"{start} + bread_i"
        if self.both:
            at = f"{start} + (bread_i % 2 == 1 ? (bread_i + 1) %/% 2 : -(bread_i %/% 2))"
        code = (
            f"{{ real bread_u = uniform_rng(0, 1); real bread_sum = 0; "
            f"int bread_i = -1; int bread_n = {start}; int bread_x = {start}; int bread_after = -1; "
            f"while (bread_sum < 1 - {_MISSING} && bread_after < {_AFTER}) {{ "
            f"bread_i += 1; bread_n = {at}; bread_sum += exp({function}(bread_n{given})); "
            f"if (bread_after >= 0) bread_after += 1; "
            f"else if (bread_u < bread_sum) {{ bread_x = bread_n; bread_after = 0; }} "
            f"else if (bread_i > {_MOST}) {{ real bread_power = ({function}(bread_n %/% 2{given}) - "
            f"{function}(bread_n{given})) / log(2); "
            f"real bread_tail = bread_n * exp({function}(bread_n{given})) / (bread_power - 1); "
            f"if (bread_power > 1 && abs(bread_sum + bread_tail - 1) < {_TAIL}) "
            f'reject("a whole number above ", bread_n, ", of a law with a heavy tail, is too large to draw"); '
            f'reject("bread: {function} adds up to ", bread_sum, " from ", {start}, " to ", bread_n, '
            f'": a law of whole numbers must add up to one"); }} }} '
            f"if (bread_after < 0) bread_x = bread_n; "
            f"if (bread_sum > 1 + {_EXCESS}) "
            f'reject("bread: {function} adds up to more than one: ", bread_sum); '
            f"{draw.total} += {function}(bread_x{given}); {element} = bread_x; }}"
        )
        return f"bread_count += 1; if (bread_count == bread_step) {code}" if mode == "step" else code


def summed_mass(flow: Dataflow, source: Source, node: Node, name: str, variate: Variate) -> SummedMass:
    """Return how an own mass function without a generator is drawn.

    Where the data have a number below the first of the support, it has no first.

    Raises
    ------
    RefusedError
        It is given more than one number, or one that is computed.
    """
    if variate.open or variate.wrappers:
        raise refuse(
            source, node, f"the density {name!r} is the program's own and is given several values, or a computed one.",
            f"Give it one value at a time. {_OWN}",
        )  # fmt: skip
    start = variate.variable.bounds.get("lower")
    values = np.asarray(flow.values.get(variate.variable.name, []))
    both = start is None and values.dtype.kind in "bif" and values.size > 0 and values.min() < 0
    return SummedMass(start, 1 if name.startswith(_FROM_ONE) else 0, bool(both))
