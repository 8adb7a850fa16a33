"""Sizes and bounds of parameters that a program computes from its outcomes.

``m = max(y); ... vector[m - 1] kappa;`` makes the number of parameters depend on the outcomes, which no simulated data
set may change. What sizes and bounds read is a part of the design: it is computed from a copy of the real outcomes,
and stays as it is whatever is simulated. With the real data the density is the program's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bread.backends.stan.language.dataflow import Dataflow, base_variable
from bread.backends.stan.language.rendering import Renderer, plain_type
from bread.backends.stan.language.scopes import Variable, name_position
from bread.backends.stan.language.source import Source, Stanc
from bread.backends.stan.language.syntax import Node, name_of, nodes, walk
from bread.backends.stan.split.rewriting import Edit, apply_edits, data_edit

_SUMMARIES = ("mean", "sd", "variance")
COPY = "bread_held_"  # before the name of an outcome: its copy in the data block


@dataclass(frozen=True)
class Design:
    """A program whose sizes and bounds are computed from copies of outcomes.

    Attributes
    ----------
    source : Source
    copies : mapping of str to str
        For each copy in the data block, the outcome that it is a copy of.
    note : str
        For the report.
    """

    source: Source
    copies: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


def held_design(
    source: Source, blocks: dict[str, Node], flow: Dataflow, outcomes: Sequence[Variable], stanc: Stanc
) -> Design | None:
    """Return the program with the sizes and bounds of its parameters held; None where no outcome enters them.

    Parameters
    ----------
    source : Source
    blocks : dict of str to Node
    flow : Dataflow
        Of that program.
    outcomes : sequence of Variable
    stanc : Stanc
    """
    declared = [(v, v.dimensions) for v in flow.scopes.of_kind("transformed parameter")]
    declared += [(v, (*v.dimensions, *v.bounds.values())) for v in flow.scopes.of_kind("parameter")]
    own = [(v, parts) for v, parts in declared if any(flow.closure(flow.reads(part)) & {*outcomes} for part in parts)]
    if not own or not all(_is_loose(flow, bound, outcomes) for v, _ in own for bound in v.bounds.values()):
        return None
    parts = [part for _, found in own for part in found]
    held = {v for v in flow.depends(*parts) if v.block == "transformed_data_block" and flow.closure([v]) & {*outcomes}}
    changed: list[Node] = [*parts]
    for statement in nodes(blocks["transformed_data_block"]) if "transformed_data_block" in blocks else ():
        defined = _defined(flow, statement)
        if defined.isdisjoint(held):
            continue
        if any(v not in held and v.kind != "loop" and flow.closure([v]) & {*outcomes} for v in defined):
            return None  # one statement computes the design and what follows the outcomes
        changed.append(statement)
    places: dict[int, Variable] = {}
    for inner in (one for node in changed for one in walk(node) if one.data == "variable"):
        variable = flow.scopes.variable(inner)
        if variable is not None and variable in outcomes:
            places[name_position(inner)] = variable
    copied = [v for v in outcomes if v in places.values()]
    render = Renderer(source, flow.scopes, (), ())
    lines = " ".join(f"{plain_type(v, render)} {COPY}{v.name};" for v in copied)
    edits = [Edit(at, at + len(v.name), COPY + v.name) for at, v in places.items()]
    text = apply_edits(source.text, [*edits, *data_edit(blocks, lines)])
    if stanc(text, "--allow-undefined").returncode != 0:
        return None
    names = ", ".join(repr(v.name) for v, _ in own if v.kind == "parameter")
    note = (
        f"Sizes or bounds of {names or 'variables'} are computed from {', '.join(repr(v.name) for v in copied)}: they "
        "are held as the real data give them, whatever is simulated."
    )
    return Design(replace(source, text=text), {COPY + v.name: v.name for v in copied}, note)


def _is_loose(flow: Dataflow, bound: Node, outcomes: Sequence[Variable]) -> bool:
    """Return whether outcomes enter a bound by their means and standard deviations alone.

    A bound such as ``max(y)`` is where the likelihood ends: held, it would end elsewhere with other outcomes, and the
    posterior have an edge that the program has not.
    """
    values = [definition.value for v in flow.depends(bound) for definition in flow.definitions.get(v, ())]
    nodes_read = [inner for one in (bound, *values) if one is not None for inner in walk(one)]
    summarised = [nodes(n)[0] for n in nodes_read if n.data == "call" and name_of(n) in _SUMMARIES and nodes(n)]
    read = [n for n in nodes_read if n.data == "variable" and flow.scopes.variable(n) in outcomes]
    return all(any(n is one for one in summarised) for n in read)


def _defined(flow: Dataflow, statement: Node) -> set[Variable]:
    """Return the variables that a statement, or one inside of it, gives a value."""
    found: set[Variable | None] = set()
    for inner in walk(statement):
        if inner.data == "declarator":
            found.add(flow.scopes.declared[name_position(inner)])
        elif inner.data == "assignment":
            left = nodes(inner)[0]
            targets = nodes(left) if left.data == "tuple" else [left]
            found |= {flow.scopes.variable(base_variable(one)) for one in targets}
    return {variable for variable in found if variable is not None}
