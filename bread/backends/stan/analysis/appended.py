"""Vectors made by `append_row` of a parameter and one more element, spelled out as two assignments.

``beta = append_row(free, -sum(free));`` (in the user's guide) and ``append_row(free, rep_vector(-sum(free), 1))``
become ``beta[1:n - 1] = free; beta[n] = -sum(free);``, which are read where ``beta`` is given a density.
"""

from __future__ import annotations

from collections.abc import Iterator

from bread.backends.stan.language.dataflow import Dataflow, Definition
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, end, is_number, name_of, nodes, source_text, start, strip, token
from bread.backends.stan.language.variates import rank
from bread.backends.stan.simulator.assembly import given_densities
from bread.backends.stan.split.rewriting import Edit, blank


def appended_edits(flow: Dataflow, source: Source) -> Iterator[Edit]:
    """Yield an edit for each vector that a statement gives a density, and that `append_row` makes of two parts."""
    for variable in given_densities(flow):
        definitions = flow.definitions.get(variable, [])
        parts = _parts(flow, variable, definitions[0]) if len(definitions) == 1 else None
        if parts is None:
            continue
        (node, value), (free, last) = (definitions[0].node, definitions[0].value), parts
        assert value is not None
        name, size = variable.name, _text(source, variable.dimensions[0])
        code = f"{name}[1:({size} - 1)] = {_text(source, free)}; {name}[{size}] = {_text(source, last)}"
        if node.data == "assignment":
            yield Edit(start(node), end(node), f"{code};{blank(source.text[start(node) : end(node)])}")
        else:  # a declaration with its value
            if not source.code[end(value) :].lstrip().startswith(";"):
                continue
            at = source.code.rindex("=", 0, start(value))
            yield Edit(at, end(value), f"; {code}{blank(source.text[at : end(value)])}")


def _parts(flow: Dataflow, variable: Variable, definition: Definition) -> tuple[Node, Node] | None:
    """Read ``append_row(free, last)`` of a parameter and one number, or a vector that holds one number."""
    if variable.type != "vector" or variable.array_sizes or not definition.whole or definition.controls:
        return None
    value = None if definition.value is None else strip(definition.value)
    if value is None or definition.increment or value.data != "call" or name_of(value) != "append_row":
        return None
    if definition.node.data == "assignment" and token(definition.node, "ASSIGN") is not None:
        return None
    free, last = (strip(one) for one in nodes(value))
    part = flow.scopes.variable(free) if free.data == "variable" else None
    if part is None or part.kind != "parameter" or part.type != "vector" or part.array_sizes:
        return None
    if last.data == "call" and name_of(last) == "rep_vector" and is_number(nodes(last)[1], 1):
        last = nodes(last)[0]
    return (free, last) if rank(last, flow.scopes) == 0 else None


def _text(source: Source, node: Node) -> str:
    text = source_text(source, node)
    return text if node.data in ("variable", "integer", "call", "unary") else f"({text})"
