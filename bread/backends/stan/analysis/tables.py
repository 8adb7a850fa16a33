"""Tables of log densities by time and state, spelled out where a hidden Markov chain is summed over them.

``log_omega[k, n] = normal_lpdf(y[n] | mu[k], sigma);`` fills a table whose elements are read by a forward algorithm, or
by `hmm_marginal`: each element is put in the place where it is read, and `hmm_marginal` is spelled out as the forward
algorithm of Stan's user's guide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bread.backends.stan.language.dataflow import Dataflow, Definition, loop_variable
from bread.backends.stan.language.scopes import Kind, Variable, name_position
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import (
    Node,
    end,
    is_density,
    name_of,
    nodes,
    source_text,
    start,
    strip,
    terms,
    walk,
)
from bread.backends.stan.language.variates import Variate, read_variate
from bread.backends.stan.simulator.coverage import Coverage
from bread.backends.stan.split.rewriting import Edit, blank

_KINDS: tuple[Kind, ...] = ("local", "transformed parameter")


@dataclass(frozen=True)
class _Table:
    """A container with one log density an element: its text, with ``@0``, ``@1``, ... in the place of indices."""

    variable: Variable
    template: str

    def element(self, places: tuple[str, ...]) -> str:
        """Return the log density of one element."""
        text = self.template
        for d, place in enumerate(places):
            text = text.replace(f"@{d}", place)
        return text


def table_edits(flow: Dataflow, source: Source) -> Iterator[Edit]:
    """Yield an edit for each element of a table that a sum over states reads, and for each `hmm_marginal`."""
    tables = {one.variable: one for variable in flow.scopes.of_kind(*_KINDS) if (one := _read(flow, source, variable))}
    for contribution in flow.contributions:
        code = _marginal(flow, source, tables, contribution.node) if contribution.kind == "target" else ""
        if code:
            node = contribution.node
            yield Edit(start(node), end(node), code + blank(source.text[start(node) : end(node)]))
    for variable, definitions in flow.definitions.items():
        if variable not in tables and variable.kind in _KINDS and variable.rank:
            for definition in definitions:
                if definition.node.data == "assignment":
                    yield from _elements(flow, source, tables, nodes(definition.node)[1])


def _elements(flow: Dataflow, source: Source, tables: dict[Variable, _Table], value: Node) -> Iterator[Edit]:
    for _, term in terms(value):
        found = read_variate(term, flow.scopes, lambda v: v in tables)
        if found is not None and not found.open and not found.wrappers:
            text = tables[found.variable].element(_places(found, source))
            yield Edit(start(term), end(term), text + blank(source.text[start(term) : end(term)]))


def _places(element: Variate, source: Source) -> tuple[str, ...]:
    texts = []
    for index in element.indices:
        assert index.low is not None
        text = source_text(source, index.low)
        texts.append(text if index.low.data in ("variable", "integer") else f"({text})")
    return tuple(texts)


def _read(flow: Dataflow, source: Source, variable: Variable) -> _Table | None:
    """Read a container that loops over its indices fill with one density an element, perhaps one row after the other.

    Rows are alike but for the number of the row: ``lp[1, n] = normal_lpdf(y[n] | mu[1], s);`` and the same with 2.
    """
    definitions = flow.definitions.get(variable, [])
    elements = [_element(flow, variable, one) for one in definitions]
    if not variable.rank or not elements or any(one is None for one in elements):
        return None
    coverage = Coverage(flow)
    regions = [
        coverage.region(one, definition.controls)
        for one, definition in zip(elements, definitions, strict=True)
        if one is not None
    ]
    known = [region for region in regions if region is not None]
    if len(known) < len(definitions) or not coverage.covers(variable, known):  # what is never filled in is no number
        return None
    rows = [_template(flow, source, one, d) for one, d in zip(elements, definitions, strict=True) if one is not None]
    if len(rows) > 1 and any(number != str(i) for i, (number, _) in enumerate(rows, 1)):
        return None
    pieces = []
    for words in zip(*(re.findall(r"\w+|\W", text) for _, text in rows), strict=False):
        is_number = len(rows) > 1 and all(word == number for word, (number, _) in zip(words, rows, strict=True))
        if not is_number and len(set(words)) > 1:
            return None
        pieces.append("@0" if is_number else words[0])
    template = "".join(pieces)
    is_whole = all(template.replace("@0", number) == text for number, text in rows if len(rows) > 1)
    return _Table(variable, template) if is_whole else None


def _element(flow: Dataflow, variable: Variable, definition: Definition) -> Variate | None:
    """Read the element that an assignment in loops gives a density of what no other statement changes."""
    value = None if definition.value is None else strip(definition.value)
    if value is None or definition.increment or definition.node.data != "assignment":
        return None
    if any(loop.data != "for_range" for loop in definition.controls) or not (is_density(value) and nodes(value)):
        return None
    if any(v.kind == "local" for v in flow.reads(value)):  # it may have another value where the element is read
        return None
    element = read_variate(nodes(definition.node)[0], flow.scopes, lambda v: v is variable)
    if element is None or element.open or element.wrappers:
        return None
    counters = {flow.scopes.variable(one.low) for one in element.indices if one.low and one.low.data == "variable"}
    return element if counters >= {loop_variable(flow.scopes, loop) for loop in definition.controls} else None


def _template(flow: Dataflow, source: Source, element: Variate, definition: Definition) -> tuple[str, str]:
    """Return the first index, and the text of the density with loop variables replaced by their places."""
    value = definition.value
    assert value is not None
    places = {
        flow.scopes.variable(index.low): f"@{d}"
        for d, index in enumerate(element.indices)
        if index.low is not None and index.low.data == "variable"
    }
    pieces, position = [], start(value)
    for inner in walk(value):
        variable = flow.scopes.variable(inner) if inner.data == "variable" else None
        if variable is not None and variable in places:
            at = name_position(inner)
            pieces += [source.code[position:at], places[variable]]
            position = at + len(variable.name)
    text = " ".join("".join([*pieces, source.code[position : end(value)]]).split())
    first = element.indices[0].low
    return ("" if first is None else source_text(source, first)), text


def _marginal(flow: Dataflow, source: Source, tables: dict[Variable, _Table], node: Node) -> str:
    """Return the forward algorithm that ``target += hmm_marginal(table, move, start)`` stands for; "" for none."""
    added = terms(nodes(node)[1])
    call = added[0][1]
    if len(added) != 1 or added[0][0] < 0 or call.data != "call" or name_of(call) != "hmm_marginal":
        return ""
    if len(nodes(call)) != 3 or "hmm_marginal" in flow.scopes.functions:
        return ""
    given, move, first = (strip(child) for child in nodes(call))
    variable = flow.scopes.variable(given) if given.data == "variable" else None
    if variable not in tables or any(one.data != "variable" for one in (move, first)):
        return ""
    table = tables[variable]
    states, times = (source_text(source, one) for one in variable.dimensions)
    begin, step = (table.element(("bread_k", t)) for t in ("1", "bread_t"))
    return (
        f"{{ array[{times}, {states}] real bread_g; array[{states}] real bread_acc; "
        f"for (bread_k in 1:{states}) bread_g[1, bread_k] = log({name_of(first)}[bread_k]) + {begin}; "
        f"for (bread_t in 2:{times}) {{ for (bread_k in 1:{states}) {{ "
        f"for (bread_j in 1:{states}) bread_acc[bread_j] = bread_g[bread_t - 1, bread_j] "
        f"+ log({name_of(move)}[bread_j, bread_k]) + {step}; "
        f"bread_g[bread_t, bread_k] = log_sum_exp(bread_acc); }} }} target += log_sum_exp(bread_g[{times}]); }}"
    )
