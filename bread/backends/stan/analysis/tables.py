"""Tables of log densities by time and state, spelled out where a hidden Markov chain is summed over them.

``log_omega[k, n] = normal_lpdf(y[n] | mu[k], sigma);`` fills a table whose elements are read by a forward algorithm, or
by `hmm_marginal`: each element is put in the place where it is read, and `hmm_marginal` is spelled out as the forward
algorithm of Stan's user's guide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bread.backends.stan.language.dataflow import Dataflow, loop_variable
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
    """A container with one log density an element, and the loop variables that stand at its indices."""

    variable: Variable
    value: Node
    counters: tuple[Variable, ...]

    def element(self, source: Source, flow: Dataflow, places: tuple[str, ...]) -> str:
        """Return the log density of one element."""
        texts = dict(zip(self.counters, places, strict=True))
        pieces, position = [], start(self.value)
        for inner in walk(self.value):
            variable = flow.scopes.variable(inner) if inner.data == "variable" else None
            if variable in texts:
                at = name_position(inner)
                pieces += [source.code[position:at], texts[variable]]
                position = at + len(variable.name)
        return " ".join("".join([*pieces, source.code[position : end(self.value)]]).split())


def table_edits(flow: Dataflow, source: Source) -> Iterator[Edit]:
    """Yield an edit for each element of a table that a sum over states reads, and for each `hmm_marginal`."""
    tables = {one.variable: one for variable in flow.scopes.of_kind(*_KINDS) if (one := _read(flow, variable))}
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
            text = tables[found.variable].element(source, flow, _places(found, source))
            yield Edit(start(term), end(term), text + blank(source.text[start(term) : end(term)]))


def _places(element: Variate, source: Source) -> tuple[str, ...]:
    texts = []
    for index in element.indices:
        assert index.low is not None
        text = source_text(source, index.low)
        texts.append(text if index.low.data in ("variable", "integer") else f"({text})")
    return tuple(texts)


def _read(flow: Dataflow, variable: Variable) -> _Table | None:
    """Read a container that loops over its indices fill with one density an element."""
    definitions = flow.definitions.get(variable, [])
    if not variable.rank or len(definitions) != 1 or definitions[0].increment or definitions[0].value is None:
        return None
    (definition,) = definitions
    if definition.node.data != "assignment" or any(loop.data != "for_range" for loop in definition.controls):
        return None
    assert definition.value is not None
    value = strip(definition.value)
    element = read_variate(nodes(definition.node)[0], flow.scopes, lambda v: v is variable)
    if element is None or element.open or not (is_density(value) and nodes(value)):
        return None
    loops = [loop_variable(flow.scopes, loop) for loop in definition.controls]
    places = [strip(index.low) for index in element.indices if index.low is not None]
    counters = [flow.scopes.variable(place) if place.data == "variable" else None for place in places]
    found = tuple(counter for counter in counters if counter is not None)
    if len(found) != len(loops) or set(found) != set(loops):
        return None
    coverage = Coverage(flow)
    region = coverage.region(element, definition.controls)
    if region is None or not coverage.covers(variable, [region]):  # what is never filled in is no number
        return None
    if any(v.kind == "local" for v in flow.reads(value)):  # it may have another value where the element is read
        return None
    return _Table(variable, value, found)


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
    begin, step = (table.element(source, flow, ("bread_k", t)) for t in ("1", "bread_t"))
    return (
        f"{{ array[{times}, {states}] real bread_g; array[{states}] real bread_acc; "
        f"for (bread_k in 1:{states}) bread_g[1, bread_k] = log({name_of(first)}[bread_k]) + {begin}; "
        f"for (bread_t in 2:{times}) {{ for (bread_k in 1:{states}) {{ "
        f"for (bread_j in 1:{states}) bread_acc[bread_j] = bread_g[bread_t - 1, bread_j] "
        f"+ log({name_of(move)}[bread_j, bread_k]) + {step}; "
        f"bread_g[bread_t, bread_k] = log_sum_exp(bread_acc); }} }} target += log_sum_exp(bread_g[{times}]); }}"
    )
