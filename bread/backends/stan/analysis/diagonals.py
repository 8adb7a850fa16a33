"""Laws of a matrix in two statements, of its diagonal and of all other elements, spelled out as one loop.

``diagonal(A) ~ normal(0, 1);`` beside ``for (i in 1:m) for (j in 1:m) if (i != j) A[i, j] ~ normal(0, 0.5);`` becomes
the loop alone, with ``else A[i, j] ~ normal(0, 1);``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.distributions import DISTRIBUTIONS
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import (
    Node,
    distribution_of,
    end,
    is_number,
    name_of,
    nodes,
    source_text,
    start,
    strip,
    token,
    walk,
)
from bread.backends.stan.language.variates import rank
from bread.backends.stan.split.rewriting import Edit, blank


def diagonal_edits(flow: Dataflow, source: Source, blocks: Mapping[str, Node]) -> Iterator[Edit]:
    """Yield edits that put the law of each diagonal into the loop over the other elements, next to it."""
    taken: set[int] = set()
    for parent in walk(blocks["model_block"]) if "model_block" in blocks else ():
        for first, second in pairwise(nodes(parent)) if parent.data in ("block", "model_block") else ():
            for law, loop in ((first, second), (second, first)):
                found = None if {id(law), id(loop)} & taken else _read(flow, source, law, loop)
                if found is None:
                    continue
                inside, code = found
                taken |= {id(law), id(loop)}
                yield Edit(start(law), end(law), ";" + blank(source.text[start(law) : end(law)]))
                yield Edit(end(inside), end(inside), f" else {code}")


def _read(flow: Dataflow, source: Source, law: Node, loop: Node) -> tuple[Node, str] | None:
    """Read ``diagonal(A) ~ d(...)`` and the loop over all other elements: its condition, and what is to follow it."""
    whole = _diagonal(flow, law)
    if whole is None or loop.data != "for_range":
        return None
    base, places = whole
    variable = flow.scopes.variable(base)
    if variable is None or variable.kind != "parameter" or variable.type != "matrix":
        return None
    rows_of, columns_of = variable.dimensions[-2:]
    inner = _only(nodes(loop)[2])
    condition = _only(nodes(inner)[2]) if inner.data == "for_range" else inner
    if condition.data != "if_" or len(nodes(condition)) != 2:
        return None
    for over, size in ((loop, rows_of), (inner, columns_of)):
        low, high, _ = nodes(over)
        if not is_number(low, 1) or source_text(source, high) != source_text(source, size):
            return None
    counters = [name_of(loop), name_of(inner)]
    statement = _only(nodes(condition)[1])
    if not _differ(nodes(condition)[0], counters) or statement.data != "tilde":
        return None
    element = strip(nodes(statement)[0])
    if element.data != "indexed" or flow.scopes.variable(nodes(element)[0]) is not variable:
        return None
    texts = [source_text(source, place) for place in nodes(element)[1:]]
    if texts != [source_text(source, place) for place in places] + counters:
        return None
    arguments = ", ".join(source_text(source, one) for one in nodes(law)[1:])
    return condition, f"{source_text(source, element)} ~ {distribution_of(law)}({arguments});"


def _diagonal(flow: Dataflow, law: Node) -> tuple[Node, list[Node]] | None:
    """Read ``diagonal(A[k]) ~ d(...)``, with one law for all elements: ``A``, and its indices."""
    if law.data != "tilde" or any(one.data == "truncation" for one in nodes(law)):
        return None
    variate, *arguments = nodes(law)
    variate = strip(variate)
    if variate.data != "call" or name_of(variate) != "diagonal" or len(nodes(variate)) != 1:
        return None
    known = DISTRIBUTIONS.get(distribution_of(law))
    if known is None or known.discrete or known.shape != "scalar" or known.vector_arguments:
        return None
    if f"{distribution_of(law)}_lpdf" in flow.scopes.functions or any(rank(one, flow.scopes) for one in arguments):
        return None
    whole = strip(nodes(variate)[0])
    base, *places = nodes(whole) if whole.data == "indexed" else [whole]
    variable = flow.scopes.variable(base) if base.data == "variable" else None
    is_matrix = variable is not None and len(places) == len(variable.array_sizes)
    if not is_matrix or any(place.data != "index_one" or rank(nodes(place)[0], flow.scopes) for place in places):
        return None
    return base, places


def _differ(condition: Node, counters: list[str]) -> bool:
    """Return whether a condition is that two loop variables differ."""
    condition = strip(condition)
    if condition.data != "binary" or token(condition, "EQUAL") != "!=":
        return False
    sides = [strip(one) for one in nodes(condition)]
    return all(one.data == "variable" for one in sides) and sorted(map(name_of, sides)) == sorted(counters)


def _only(node: Node) -> Node:
    """Return the one statement of a block; the node itself where it is none."""
    while node.data == "block" and len(nodes(node)) == 1:
        node = nodes(node)[0]
    return node
