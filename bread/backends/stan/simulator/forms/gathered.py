"""Mixtures whose weighted log densities a local vector gathers before they are summed: ``log_sum_exp(lp)``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from bread.backends.stan.language.dataflow import Dataflow, Definition, base_variable
from bread.backends.stan.language.rendering import Renderer
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.syntax import Node, name_of, nodes, start, strip, terms, walk
from bread.backends.stan.language.variates import read_variate
from bread.backends.stan.simulator.coverage import Coverage, Region
from bread.backends.stan.simulator.draw import Draw, Mode, Reading, Writer
from bread.backends.stan.simulator.forms.mixtures import alike
from bread.backends.stan.simulator.forms.weights import CHOOSE, check_sum, refuse_bounded, refuse_own_elements

Kind = Literal["weights", "draw", "density"]


@dataclass(frozen=True, eq=False)
class Gathered:
    """A local vector that gathers the log densities of a mixture's components, and the statements that fill it.

    Attributes
    ----------
    variable : Variable
    definitions : tuple of Definition
    densities : dict of int to Draw
        By the id of the density's node.
    """

    variable: Variable
    definitions: tuple[Definition, ...]
    densities: dict[int, Draw] = field(default_factory=dict)

    def expressions(self, draw: Draw) -> list[Node]:
        """Return the weights and the indices at which they stand."""
        found = []
        for definition in self.definitions:
            assert definition.value is not None
            found += [
                term for _, term in terms(definition.value) if id(term) not in self.densities and term.data != "indexed"
            ]
            found += [term for _, term in terms(definition.value) if term.data == "indexed" and not self._is_own(term)]
            if definition.node.data == "assignment":
                target = strip(nodes(definition.node)[0])
                found += nodes(target)[1:] if target.data == "indexed" else []
        return found

    def _is_own(self, term: Node) -> bool:
        return str(next(iter(term.scan_values(lambda _: True)))) == self.variable.name

    def code(self, draw: Draw, writer: Writer, render: Renderer, mode: Mode) -> str:
        """Return the code: weights first (densities left out), then the component, its draw, and the log density."""
        refuse_bounded(draw, writer)
        refuse_own_elements(draw, writer, mode)
        size = render(self.variable.dimensions[0])
        weights, drawn, density = (self._copy(kind, draw, writer, render) for kind in ("weights", "draw", "density"))
        return (
            f"{{ vector[{size}] bread_w; vector[{size}] bread_d; {weights} {check_sum('the weights of a mixture')} "
            f"int bread_k = {CHOOSE}; {drawn} {density} {draw.total} += log_sum_exp(bread_d); }}"
        )

    def _copy(self, kind: Kind, draw: Draw, writer: Writer, render: Renderer) -> str:
        """Return the statements that fill the vector, once more, with one part of what they gather."""
        pieces, done = [], set()
        for definition in self.definitions:
            inner = definition.controls[len(draw.controls) :]
            if id(definition.node) in done:
                continue
            done.add(id(definition.node))
            code = self._statement(definition, kind, writer, render)
            for loop in reversed(inner):
                low, high, _ = nodes(loop)
                code = f"for ({name_of(loop)} in ({render(low)}):({render(high)})) {{ {code} }}"
            pieces.append(code)
        return " ".join(pieces)

    def _statement(self, definition: Definition, kind: Kind, writer: Writer, render: Renderer) -> str:
        assert definition.value is not None
        name, new = self.variable.name, "bread_w" if kind == "weights" else "bread_d"
        pieces = [(sign, term) for sign, term in terms(definition.value)]
        component = next((self.densities[id(t)] for _, t in pieces if id(t) in self.densities), None)
        left = "" if definition.node.data == "declarator" else render(nodes(definition.node)[0])
        left = new if not left else new + left[len(name) :]
        if kind == "draw":
            if component is None:
                return ""
            target = strip(nodes(definition.node)[0])
            index = nodes(nodes(target)[-1])[0] if target.data == "indexed" else None
            assert index is not None and base_variable(target) is not None
            return f"if (({render(index)}) == bread_k) {{ {writer.assign(component, render)} }}"
        value = "0"
        if all(id(t) not in self.densities for _, t in pieces):
            value = render(definition.value)
        else:
            for sign, term in pieces:
                if id(term) not in self.densities:
                    value += f" {'+' if sign > 0 else '-'} ({render(term)})"
                elif kind == "density" and component is not None:
                    value += f" + {writer.held_density(component, render)}"
        value = re.sub(rf"\b{re.escape(name)}\b", new, value)
        operator = "+=" if definition.increment else "="
        return f"{left} {operator} {value};"


def read_gathered(reading: Reading, node: Node, controls: tuple[Node, ...], term: Node) -> list[Draw] | None:
    """Read ``log_sum_exp(lp)`` where every element of the local vector ``lp`` was given a weight and a density."""
    if term.data != "call" or name_of(term) != "log_sum_exp" or len(nodes(term)) != 1:
        return None
    flow, gathered = reading.flow, strip(nodes(term)[0])
    variable = flow.scopes.variable(gathered) if gathered.data == "variable" else None
    if variable is None or variable.kind != "local" or variable.plain not in ("vector", "real") or variable.rank != 1:
        return None
    definitions = flow.definitions.get(variable, [])
    if variable.plain == "real" and any(definition.whole for definition in definitions):
        return None
    if not definitions or any(not _encloses(definition, controls) for definition in definitions):
        return None
    densities: dict[int, Draw] = {}
    for definition in definitions:
        assert definition.value is not None
        found = [(sign, term) for sign, term in terms(definition.value) if reading.is_density(term)]
        looked_up = {id(strip(nodes(term)[0])) for _, term in found if term.data == "call"}  # x[k] of log(x[k])
        inner = [n for n in walk(definition.value) if reading.is_density(n) and id(n) not in looked_up]
        if len(inner) != len(found) or len(found) > 1:
            return None
        if not found:
            continue
        if found[0][0] < 0 or definition.whole:
            return None
        component = reading.component(definition.node, definition.controls, found[0][1])
        if component is None:
            return None
        densities[id(found[0][1])] = component
    if not _each_once(variable, definitions, densities, controls, flow, node):
        return None
    components = tuple(densities.values())
    if not alike(list(components)):
        return None
    form = Gathered(variable, tuple(definitions), densities)
    return [Draw(node, controls, components[0].variate, "mixture", (), components=components, form=form)]


def _each_once(
    variable: Variable,
    definitions: list[Definition],
    densities: dict[int, Draw],
    controls: tuple[Node, ...],
    flow: Dataflow,
    node: Node,
) -> bool:
    """Return whether every element of the local vector surely gets one density, before it is summed."""
    coverage = Coverage(flow)
    regions: list[Region] = []
    for definition in definitions:
        assert definition.value is not None
        if start(definition.node) >= start(node):
            return False
        if not any(id(term) in densities for _, term in terms(definition.value)):
            continue
        element = read_variate(nodes(definition.node)[0], flow.scopes, lambda v: v is variable)
        region = coverage.region(element, definition.controls[len(controls) :]) if element is not None else None
        if region is None:
            return False
        regions.append(region)
    return coverage.covers(variable, regions)


def _encloses(definition: Definition, controls: tuple[Node, ...]) -> bool:
    """Return whether a definition stands in the innermost block of the statement, or in a loop inside it."""
    return definition.controls[: len(controls)] == controls and all(
        c.data == "for_range" for c in definition.controls[len(controls) :]
    )
