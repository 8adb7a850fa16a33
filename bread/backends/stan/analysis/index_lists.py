"""Vectorised sums over lists of indices, as brms writes censored likelihoods, spelled out as one loop.

``target += normal_lpdf(Y[Jevent[1:Nevent]] | mu[Jevent[1:Nevent]], sigma);`` adds the density of the observations that
a loop over transformed data has put on a list: ``if (cens[n] == 0) { Nevent += 1; Jevent[Nevent] = n; }``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bread.backends.stan.language.dataflow import Contribution, Dataflow, base_variable
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import (
    Node,
    end,
    is_number,
    name_of,
    nodes,
    source_text,
    start,
    strip,
    terms,
    token,
    walk,
)
from bread.backends.stan.simulator.forms.flags import chain_of, equals
from bread.backends.stan.split.rewriting import Edit, blank

_COUNTER = "bread_row"


@dataclass(frozen=True)
class _List:
    """A list of indices: those n from ``low`` to ``high`` at which the flag has a value."""

    low: str
    high: str
    flag: str
    value: int


@dataclass(frozen=True)
class _Term:
    contribution: Contribution
    listed: _List
    code: str


def list_edits(flow: Dataflow, source: Source) -> Iterator[Edit]:
    """Yield edits that put one loop in the place of statements that stand together, one for each value of a flag."""
    found = [term for one in flow.contributions if (term := _read(flow, source, one)) is not None]
    while found:
        first = found[0]
        key = (first.listed.low, first.listed.high, first.listed.flag, first.contribution.controls)
        group = [
            one for one in found if (one.listed.low, one.listed.high, one.listed.flag, one.contribution.controls) == key
        ]
        found = [one for one in found if one not in group]
        if len({one.listed.value for one in group}) < len(group):
            continue
        cases = " else ".join(f"if ({one.listed.flag} == {one.listed.value}) {{ {one.code} }}" for one in group)
        loop = f"for ({_COUNTER} in {first.listed.low}:{first.listed.high}) {{ {cases} }}"
        for i, one in enumerate(group):
            node = one.contribution.node
            code = loop if i == 0 else ";"
            yield Edit(start(node), end(node), code + blank(source.text[start(node) : end(node)]))


def _read(flow: Dataflow, source: Source, contribution: Contribution) -> _Term | None:
    node = contribution.node
    if contribution.kind != "target":
        return None
    added = terms(nodes(node)[1])
    if len(added) != 1 or added[0][0] < 0 or added[0][1].data != "density":
        return None
    first = nodes(added[0][1])[0]
    places = {id(inner): found for inner in walk(node) if (found := _listed(flow, inner)) is not None}
    if id(first) not in places or len({(count, index) for _, index, count in places.values()}) != 1:
        return None
    _, index, count = places[id(first)]
    listed = _list(flow, source, index, count)
    if listed is None:
        return None
    pieces, position, skipped = [], start(node), 0
    for inner in walk(node):
        if id(inner) in places:
            pieces += [source.code[position : start(inner)], f"{name_of(places[id(inner)][0])}[{_COUNTER}]"]
            position = skipped = end(inner)
        elif inner.data == "variable" and start(inner) >= skipped:
            variable = flow.scopes.variable(inner)
            if variable is not None and variable.rank:  # what is left must be one value for all
                return None
    pieces.append(source.code[position : end(node)])
    return _Term(contribution, listed, " ".join("".join(pieces).split()))


def _listed(flow: Dataflow, node: Node) -> tuple[Node, Variable, Variable] | None:
    """Read ``x[J[1:M]]`` of a container with one dimension: x, J and M."""
    if node.data != "indexed" or len(nodes(node)) != 2 or nodes(node)[0].data != "variable":
        return None
    base, place = nodes(node)
    variable = flow.scopes.variable(base)
    inner = strip(nodes(place)[0]) if place.data == "index_one" else node
    if variable is None or variable.rank != 1 or inner is node or inner.data != "indexed" or len(nodes(inner)) != 2:
        return None
    index, between = nodes(inner)
    if index.data != "variable" or between.data != "index_between":
        return None
    low, high = (strip(one) for one in nodes(between))
    list_of = flow.scopes.variable(index)
    count = flow.scopes.variable(high) if high.data == "variable" else None
    if not is_number(low, 1) or list_of is None or count is None:
        return None
    return base, list_of, count


def _list(flow: Dataflow, source: Source, index: Variable, count: Variable) -> _List | None:
    """Read the loop that fills a list: nothing else changes the list or its length."""
    if index.kind != "transformed data" or count.kind != "transformed data":
        return None
    filled, counted = flow.definitions.get(index, []), flow.definitions.get(count, [])
    if len(filled) != 1 or len(counted) != 2 or counted[0].controls or filled[0].controls != counted[1].controls:
        return None
    (put,), (begin, step) = filled, counted
    if begin.value is None or not is_number(begin.value, 0) or not step.increment or not is_number(step.value, 1):
        return None
    if put.node.data != "assignment" or put.increment or not start(step.node) < start(put.node):
        return None
    left, value = nodes(put.node)
    places = nodes(left)[1:] if left.data == "indexed" else []
    chain = chain_of(put.controls)
    if len(places) != 1 or chain is None or len(chain[1]) != 1 or chain[1][0].data != "for_range":
        return None
    at, loop, conditions = nodes(places[0])[0], chain[1][0], put.controls[1:]
    is_last = at.data == "variable" and flow.scopes.variable(at) is count
    counter = flow.scopes.variable(strip(value)) if strip(value).data == "variable" else None
    if not is_last or counter is None or counter.kind != "loop" or counter.name != name_of(loop):
        return None
    if token(put.node, "ASSIGN") is not None:
        return None
    asked = [equals(nodes(one)[0]) for one in conditions]
    if any(one is None for one in asked) or not _is_in_branches(put.node, conditions):
        return None
    texts = {_element(flow, element, counter) for element, _ in filter(None, asked)}
    values = [value for _, value in filter(None, asked)]
    if len(texts) != 1 or None in texts or len(set(values)) < len(values):
        return None
    low, high, _ = nodes(loop)
    ends = [source_text(source, one) for one in (low, high)]
    return _List(ends[0], ends[1], f"{texts.pop()}[{_COUNTER}]", values[-1])


def _is_in_branches(node: Node, conditions: tuple[Node, ...]) -> bool:
    """Return whether a statement stands where the last condition holds."""
    body = nodes(conditions[-1])[1]
    return start(body) <= start(node) < end(body)


def _element(flow: Dataflow, element: Node, counter: Variable) -> str | None:
    """Return the flag of which an element stands at the counter of the loop."""
    base, *places = nodes(element)
    variable = flow.scopes.variable(base) if base.data == "variable" else None
    if variable is None or variable.kind != "data" or variable.rank != 1 or len(places) != 1:
        return None
    at = strip(nodes(places[0])[0]) if places[0].data == "index_one" else None
    is_counter = at is not None and at.data == "variable" and flow.scopes.variable(at) is counter
    return variable.name if is_counter and base_variable(element) is base else None
