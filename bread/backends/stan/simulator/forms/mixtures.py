"""Mixtures written out by summing: ``log_mix`` and ``log_sum_exp`` of weighted densities of one outcome.

A component is drawn by its weight, then the outcome from the component. The weights must sum to one; this is checked
whenever a mixture is drawn.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bread.backends.stan.language.dataflow import Dataflow, Definition, base_variable
from bread.backends.stan.language.distributions import DISTRIBUTIONS
from bread.backends.stan.language.refusals import refuse
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.syntax import Node, is_density, name_of, nodes, start, strip, terms, walk
from bread.backends.stan.language.variates import Variate, read_variate
from bread.backends.stan.simulator.coverage import Coverage, Region
from bread.backends.stan.simulator.forms.hidden import hidden_code
from bread.backends.stan.simulator.forms.inflated import CHOOSE, inflated_code

if TYPE_CHECKING:
    from bread.backends.stan.language.rendering import Renderer
    from bread.backends.stan.language.source import Source
    from bread.backends.stan.simulator.drawer import Drawer, Mode
    from bread.backends.stan.simulator.draws import Draw, Reader

_SIZES = 'if (abs(log_sum_exp({w})) > 1e-6) reject("bread: the weights of a mixture do not sum to one");'


def read_mixture(reader: Reader, flow: Dataflow, node: Node, controls: tuple[Node, ...], term: Node) -> Draw | None:
    """Read ``log_mix(p, d1, d2)``, ``log_sum_exp(log(p) + d1, log1m(p) + d2)`` or ``log_sum_exp(lp)``; else None."""
    from bread.backends.stan.simulator.draws import Argument, Draw

    arguments = nodes(term)
    if name_of(term) == "log_mix":
        if len(arguments) != 3 or not all(is_density(strip(a)) for a in arguments[1:]):
            return None
        weights: tuple[Argument, ...] = tuple(Argument((arguments[0],), text) for text in ("log({0})", "log1m({0})"))
        densities = [strip(a) for a in arguments[1:]]
    else:
        if len(arguments) == 1:
            return _read_gathered(reader, flow, node, controls, strip(arguments[0]))
        found = [_weighted(argument) for argument in arguments]
        if not all(found) or len(found) != 2:
            return None
        weights = tuple(Argument(parts, template) for parts, template, _ in filter(None, found))
        densities = [density for _, _, density in filter(None, found)]
    components = [reader.component(node, controls, density) for density in densities]
    if not _alike([c for c in components if c is not None]) or None in components:
        return None
    known = tuple(c for c in components if c is not None)
    return Draw(node, controls, known[0].variate, "mixture", (), weights=weights, components=known)


def _weighted(argument: Node) -> tuple[tuple[Node, ...], str, Node] | None:
    """Read ``weight + density``: the parts of the weight with a template, and the density."""
    parts: list[Node] = []
    density, template = None, "0"
    for sign, term in terms(argument):
        if is_density(term):
            if density is not None or sign < 0:
                return None
            density = term
        else:
            template += f" {'+' if sign > 0 else '-'} ({{{len(parts)}}})"
            parts.append(term)
    return (tuple(parts), template, density) if density is not None and parts else None


def _alike(components: list[Draw]) -> bool:
    """Return whether components are scalar densities of the same single element."""
    if not components:
        return False
    first = components[0].variate
    return all(
        c.variate.variable is first.variable
        and not c.variate.open
        and not c.variate.wrappers
        and _texts(c.variate) == _texts(first)
        and DISTRIBUTIONS[c.distribution].shape == "scalar"
        and DISTRIBUTIONS[c.distribution].discrete == DISTRIBUTIONS[components[0].distribution].discrete
        for c in components
    )


def _texts(variate: Variate) -> list[str]:
    return [
        " ".join(str(t) for t in i.low.scan_values(lambda _: True)) if i.low is not None else ""
        for i in variate.indices
    ]


def _read_gathered(
    reader: Reader, flow: Dataflow, node: Node, controls: tuple[Node, ...], gathered: Node
) -> Draw | None:
    """Read ``log_sum_exp(lp)`` where every element of the local vector ``lp`` was given a weight and a density."""
    from bread.backends.stan.simulator.draws import Draw, Gathered

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
        found = [(sign, term) for sign, term in terms(definition.value) if reader.is_density(term)]
        inner = [n for n in walk(definition.value) if reader.is_density(n)]
        if len(inner) != len(found) or len(found) > 1:
            return None
        if not found:
            continue
        if found[0][0] < 0 or definition.whole:
            return None
        component = reader.component(definition.node, definition.controls, found[0][1])
        if component is None:
            return None
        densities[id(found[0][1])] = component
    if not _each_once(variable, definitions, densities, controls, flow, node):
        return None
    components = tuple(densities.values())
    if not _alike(list(components)):
        return None
    return Draw(
        node,
        controls,
        components[0].variate,
        "mixture",
        (),
        components=components,
        gathered=Gathered(variable, tuple(definitions), densities),
    )


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


def mixture_code(draw: Draw, flow: Dataflow, source: Source, render: Renderer, drawer: Drawer, mode: Mode) -> str:
    """Return the code that draws from a mixture."""
    if draw.variable.kind == "parameter" and draw.variable.bounds:
        raise refuse(
            source,
            draw.statement,
            "a mixture as the prior of a bounded parameter has no simulator.",
            "Pass simulator=.",
        )
    total = "bread_sim_log_prior" if draw.variable.kind == "parameter" else "bread_sim_log_likelihood"
    if draw.inflated is not None:
        return inflated_code(draw, render, drawer, mode, total)
    if mode != "draw":
        raise refuse(source, draw.statement, "an outcome that depends on itself is a mixture.", "Pass simulator=.")
    if draw.hidden is not None:
        return hidden_code(draw.hidden, draw.variable, render, drawer, total)
    if draw.gathered is not None:
        return _gathered_code(draw, flow, render, drawer, total)
    texts = [weight.text(render) for weight in draw.weights]
    vector = f"[{', '.join(texts)}]'"
    cases = " else ".join(
        f"if (bread_k == {k}) {{ {drawer.assign(component, render)} }}"
        for k, component in enumerate(draw.components, 1)
    )
    sums = ", ".join(
        f"({text}) + {drawer.held_density(c, render)}" for text, c in zip(texts, draw.components, strict=True)
    )
    return (
        f"{{ vector[{len(texts)}] bread_w = {vector}; {_SIZES.format(w='bread_w')} "
        f"int bread_k = {CHOOSE}; {cases} {total} += log_sum_exp({sums}); }}"
    )


def _gathered_code(draw: Draw, flow: Dataflow, render: Renderer, drawer: Drawer, total: str) -> str:
    """Weights first (densities left out), then the component, then its draw, then the log density."""
    assert draw.gathered is not None
    variable, gathered = draw.gathered.variable, draw.gathered
    size = render(variable.dimensions[0])
    name = variable.name

    def copy(new: str, kind: str) -> str:
        pieces, done = [], set()
        for definition in gathered.definitions:
            inner = definition.controls[len(draw.controls) :]
            if id(definition.node) in done:
                continue
            done.add(id(definition.node))
            code = _definition_code(definition, draw, flow, render, drawer, name, new, kind)
            for loop in reversed(inner):
                low, high, _ = nodes(loop)
                code = f"for ({name_of(loop)} in ({render(low)}):({render(high)})) {{ {code} }}"
            pieces.append(code)
        return " ".join(pieces)

    return (
        f"{{ vector[{size}] bread_w; vector[{size}] bread_d; {copy('bread_w', 'weights')} {_SIZES.format(w='bread_w')} "
        f"int bread_k = {CHOOSE}; {copy('bread_d', 'draw')} {copy('bread_d', 'density')} "
        f"{total} += log_sum_exp(bread_d); }}"
    )


def _definition_code(
    definition: Definition, draw: Draw, flow: Dataflow, render: Renderer, drawer: Drawer, name: str, new: str, kind: str
) -> str:
    assert definition.value is not None and draw.gathered is not None
    pieces = [(sign, term) for sign, term in terms(definition.value)]
    component = next((draw.gathered.densities[id(t)] for _, t in pieces if id(t) in draw.gathered.densities), None)
    left = "" if definition.node.data == "declarator" else render(nodes(definition.node)[0])
    left = new if not left else new + left[len(name) :]
    if kind == "draw":
        if component is None:
            return ""
        target = strip(nodes(definition.node)[0])
        index = nodes(nodes(target)[-1])[0] if target.data == "indexed" else None
        assert index is not None and base_variable(target) is not None
        return f"if (({render(index)}) == bread_k) {{ {drawer.assign(component, render)} }}"
    value = "0"
    if all(id(t) not in draw.gathered.densities for _, t in pieces):
        value = render(definition.value)
    else:
        for sign, term in pieces:
            if id(term) not in draw.gathered.densities:
                value += f" {'+' if sign > 0 else '-'} ({render(term)})"
            elif kind == "density" and component is not None:
                value += f" + {drawer.held_density(component, render)}"
    value = _replace_name(value, name, new)
    operator = "+=" if definition.increment else "="
    return f"{left} {operator} {value};"


def _replace_name(text: str, name: str, new: str) -> str:
    return re.sub(rf"\b{re.escape(name)}\b", new, text)
