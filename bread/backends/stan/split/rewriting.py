"""Text edits of a program that never add or remove a line end, so that Stan's messages name the user's lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lark import Token

from bread.backends.stan.language.distributions import is_discrete
from bread.backends.stan.language.refusals import refuse
from bread.backends.stan.language.scopes import Scopes, Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import (
    Node,
    distribution_of,
    end,
    is_density,
    name_token,
    nodes,
    start,
    strip,
    walk,
)
from bread.backends.stan.split.split import Classified

DECLARATION = "real bread_temper(real x);"


@dataclass(frozen=True, order=True)
class Edit:
    """Replace the characters from ``start`` to ``end`` by ``text``; an empty span inserts."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Apply edits that do not overlap; each must keep the number of line ends of what it replaces.

    Edits at one place are applied in the order given.
    """
    result, position = [], 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.start < position:
            raise ValueError(f"Edits overlap at offset {edit.start}.")
        if edit.text.count("\n") != text.count("\n", edit.start, edit.end):
            raise ValueError(f"The edit at offset {edit.start} changes the number of lines.")
        result += [text[position : edit.start], edit.text]
        position = edit.end
    result.append(text[position:])
    return "".join(result)


def blank(text: str) -> str:
    """Return only the line ends of ``text``."""
    return "\n" * text.count("\n")


def temper_edits(classified: Iterable[Classified], scopes: Scopes, source: Source) -> list[Edit]:
    """Wrap every likelihood contribution in ``bread_temper(...)``, with normalised densities."""
    edits: list[Edit] = []
    for item in classified:
        if item.part == "prior":
            continue
        if item.node.data == "tilde":
            edits += _temper_tilde(item.node, scopes, source)
        elif item.node.data == "assignment":
            value = nodes(item.node)[1]
            wrapped = item.likelihood_terms if item.part == "both" else (value,)
            for term in wrapped:
                edits += _temper_expression(term, scopes)
    return edits


def _temper_expression(expression: Node, scopes: Scopes) -> list[Edit]:
    inner = "bread_temper(sum(" if is_container(expression, scopes) else "bread_temper("
    edits = [Edit(start(expression), start(expression), inner)]
    edits += normalise_edits(expression)
    edits.append(Edit(end(expression), end(expression), ")" * inner.count("(")))
    return edits


def normalise_edits(expression: Node) -> list[Edit]:
    """Replace ``_lupdf`` and ``_lupmf`` by their normalised forms: tempering multiplies their constants, too."""
    edits = []
    for inner in walk(expression):
        tokens = [name_token(inner)] if is_density(inner) or inner.data == "variable" else []
        for name in tokens:
            if name.endswith(("_lupdf", "_lupmf")):
                edits.append(_rename(name, name.removesuffix("updf").removesuffix("upmf") + name[-3:]))
    return edits


def _rename(name: Token, text: str) -> Edit:
    position = int(name.start_pos or 0)
    return Edit(position, position + len(name), text)


def is_container(expression: Node, scopes: Scopes) -> bool:
    """Return whether ``target += expression`` adds up a container: a variable, or one with indices."""
    expression = strip(expression)
    if expression.data == "variable":
        variable = scopes.variable(expression)
        return variable is not None and variable.rank > 0
    if expression.data == "indexed":
        base, *indices = nodes(expression)
        variable = scopes.variable(base) if base.data == "variable" else None
        if variable is None:
            return False
        return variable.rank > sum(1 for index in indices if index.data == "index_one")
    return False


def density_name(tilde: Node, scopes: Scopes) -> str:
    """Return the density function of a tilde statement: "normal_lpdf", "poisson_lpmf", or the user's."""
    name = distribution_of(tilde)
    for suffix in ("_lpdf", "_lpmf"):
        if name + suffix in scopes.functions:
            return name + suffix
    return name + ("_lpmf" if is_discrete(name) else "_lpdf")


def _temper_tilde(tilde: Node, scopes: Scopes, source: Source) -> list[Edit]:
    """``y ~ d(a) T[l, u]`` becomes ``target += bread_temper(d_lpdf(y | a) - ...)``."""
    variate = nodes(tilde)[0]
    function = density_name(tilde, scopes)
    name = name_token(tilde)
    sign = source.code.index("~", end(variate))
    opening = source.code.index("(", int(name.end_pos or 0)) + 1
    last = end(tilde) - 1
    truncation = next((child for child in nodes(tilde) if child.data == "truncation"), None)
    before, after, edits = "target += bread_temper(", ")", []
    if truncation is not None:
        outside, constant = truncation_terms(tilde, truncation, scopes, source)
        before += f"({outside}) ? negative_infinity() : "
        after = f" - {constant})"
        edits.append(Edit(start(truncation), end(truncation), blank(source.text[start(truncation) : end(truncation)])))
    replaced = source.text[sign:opening]
    return [
        Edit(start(variate), start(variate), f"{before}{function}("),
        Edit(sign, opening, "|" + blank(replaced) + " "),
        *edits,
        Edit(last, last, after),
    ]


def truncation_terms(tilde: Node, truncation: Node, scopes: Scopes, source: Source) -> tuple[str, str]:
    """Return the condition "outside of the truncation" and the log probability of its inside, as Stan computes them."""
    variate, *arguments = [child for child in nodes(tilde) if child.data != "truncation"]
    if is_container(variate, scopes) or strip(variate).data not in ("variable", "indexed"):
        raise refuse(
            source,
            tilde,
            "truncates a container; Stan's normalising constant then depends on the shapes.",
            "Write a loop over its elements.",
        )
    quote = _Quote(source)
    y, arg = quote(variate), ", ".join(quote(argument) for argument in arguments)
    low = next((quote(nodes(c)[0]) for c in nodes(truncation) if c.data == "lower_limit"), None)
    high = next((quote(nodes(c)[0]) for c in nodes(truncation) if c.data == "upper_limit"), None)
    name = distribution_of(tilde)
    outside = " || ".join(f"{y} {sign} {limit}" for sign, limit in (("<", low), (">", high)) if limit is not None)
    return outside or "0", truncated_probability(name, low, high, arg, density_name(tilde, scopes))


def truncated_probability(name: str, low: str | None, high: str | None, arguments: str, density: str) -> str:
    """Return the log probability of low <= y <= high as a Stan expression."""
    mass = density.endswith("_lpmf")
    if low is None and high is None:
        return "0"
    if high is None:
        tail = f"{name}_lccdf({low} | {arguments})"
        return f"log_sum_exp({tail}, {density}({low} | {arguments}))" if mass else tail
    if low is None:
        return f"{name}_lcdf({high} | {arguments})"
    inside = f"log_diff_exp({name}_lcdf({high} | {arguments}), {name}_lcdf({low} | {arguments}))"
    return f"log_sum_exp({inside}, {density}({low} | {arguments}))" if mass else inside


class _Quote:
    """Quotes expressions on one line."""

    def __init__(self, source: Source) -> None:
        self._code = source.code

    def __call__(self, node: Node) -> str:
        return " ".join(self._code[start(node) : end(node)].split())


def functions_edit(blocks: dict[str, Node], code: str, functions: str) -> Edit:
    """Put function declarations into the functions block, or a new one, on its first line."""
    block = blocks.get("functions_block")
    if block is None:
        return Edit(0, 0, f"functions {{ {functions} }} ")
    opening = code.index("{", start(block)) + 1
    return Edit(opening, opening, f" {functions} ")


def last_functions_edit(blocks: dict[str, Node], functions: str) -> list[Edit]:
    """Put functions at the end of the functions block, behind those of the program that they call."""
    block = blocks.get("functions_block")
    if not functions or block is None:
        return []
    return [Edit(end(block) - 1, end(block) - 1, f" {functions} ")]


def data_edit(blocks: dict[str, Node], declarations: str) -> list[Edit]:
    """Put declarations at the end of the data block, or a new one before the next block, on an existing line."""
    if not declarations:
        return []
    block = blocks.get("data_block")
    if block is not None:
        return [Edit(end(block) - 1, end(block) - 1, f" {declarations} ")]
    following = next(node for rule, node in blocks.items() if rule != "functions_block")
    return [Edit(start(following), start(following), f"data {{ {declarations} }} ")]


def generated_edit(blocks: dict[str, Node], text: str, generated: str) -> list[Edit]:
    """Replace the user's generated quantities by ``generated``, or append it after the last block."""
    block = blocks.get("generated_quantities_block")
    code = f"generated quantities {{ {generated} }}" if generated else ""
    if block is not None:
        return [Edit(start(block), end(block), code + blank(text[start(block) : end(block)]))]
    last = max(end(node) for node in blocks.values())
    return [Edit(last, last, " " + code)] if code else []


def unconstrain_edits(variables: Iterable[Variable], text: str, code: str) -> list[Edit]:
    """Take the bounds off the declarations of observed variables whose simulated values may lie outside."""
    edits: dict[tuple[int, int], Edit] = {}
    for variable in variables:
        bound = list(variable.bounds.values())
        low = code.rindex("<", 0, start(bound[0]))
        high = code.index(">", end(bound[-1])) + 1
        edits[low, high] = Edit(low, high, blank(text[low:high]))
    return list(edits.values())


def map_column(edits: Iterable[Edit], text: str, line: int, column: int) -> int:
    """Return the column of the user's text for a column of the edited text, both from 1.

    Columns inside inserted text map to the place of the insertion.
    """
    shift, row_start = 0, sum(len(row) + 1 for row in text.split("\n")[: line - 1])
    for edit in sorted(edits):
        if (
            not row_start <= edit.start <= row_start + len(text[row_start:].split("\n", maxsplit=1)[0])
            or "\n" in edit.text
        ):
            continue
        at = edit.start - row_start + shift + 1
        if column < at:
            break
        if column < at + len(edit.text):
            return edit.start - row_start + 1
        shift += len(edit.text) - (edit.end - edit.start)
    return max(1, column - shift)


_WORD = re.compile(r"\bbread_[a-z]")


def uses_reserved_names(source: Source) -> bool:
    """Return whether the user's program has names of its own that start with ``bread_``."""
    return _WORD.search(source.code) is not None
