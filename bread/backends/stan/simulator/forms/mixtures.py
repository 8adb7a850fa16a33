"""Mixtures written out by summing: ``log_mix`` and ``log_sum_exp`` of weighted densities of one outcome.

A component is drawn by its weight, then the outcome from the component.
"""

from __future__ import annotations

from dataclasses import dataclass

from bread.backends.stan.language.rendering import Renderer
from bread.backends.stan.language.syntax import Node, is_density, name_of, nodes, strip, terms
from bread.backends.stan.language.variates import Variate
from bread.backends.stan.simulator.draw import Argument, Draw, Mode, Reading, Writer
from bread.backends.stan.simulator.forms.weights import CHOOSE, check_sum, refuse_bounded, refuse_own_elements


@dataclass(frozen=True, eq=False)
class Weighted:
    """A mixture of components that stand in one sum.

    Attributes
    ----------
    weights : tuple of Argument
        Log weights, one a component.
    """

    weights: tuple[Argument, ...]

    def expressions(self, draw: Draw) -> list[Node]:
        """Return the weights."""
        return [part for weight in self.weights for part in weight.parts]

    def code(self, draw: Draw, writer: Writer, render: Renderer, mode: Mode) -> str:
        """Return the code that draws the component, then the outcome, then adds its log density."""
        refuse_bounded(draw, writer)
        refuse_own_elements(draw, writer, mode)
        texts = [weight.text(render) for weight in self.weights]
        vector = f"[{', '.join(texts)}]'"
        cases = " else ".join(
            f"if (bread_k == {k}) {{ {writer.assign(component, render)} }}"
            for k, component in enumerate(draw.components, 1)
        )
        sums = ", ".join(
            f"({text}) + {writer.held_density(c, render)}" for text, c in zip(texts, draw.components, strict=True)
        )
        return (
            f"{{ vector[{len(texts)}] bread_w = {vector}; {check_sum('the weights of a mixture')} "
            f"int bread_k = {CHOOSE}; {cases} {draw.total} += log_sum_exp({sums}); }}"
        )


def read_mixture(reading: Reading, node: Node, controls: tuple[Node, ...], term: Node) -> list[Draw] | None:
    """Read ``log_mix(p, d1, d2)`` or ``log_sum_exp(log(p) + d1, log1m(p) + d2)``; None where it is neither."""
    name = name_of(term) if term.data == "call" else ""
    arguments = nodes(term)
    if name == "log_mix":
        if len(arguments) != 3 or not all(is_density(strip(a)) for a in arguments[1:]):
            return None
        weights: tuple[Argument, ...] = tuple(Argument((arguments[0],), text) for text in ("log({0})", "log1m({0})"))
        densities = [strip(a) for a in arguments[1:]]
    elif name == "log_sum_exp":
        found = [_weighted(argument) for argument in arguments]
        if not all(found) or len(found) != 2:
            return None
        weights = tuple(Argument(parts, template) for parts, template, _ in filter(None, found))
        densities = [density for _, _, density in filter(None, found)]
    else:
        return None
    components = [reading.component(node, controls, density) for density in densities]
    if not alike([c for c in components if c is not None]) or None in components:
        return None
    known = tuple(c for c in components if c is not None)
    return [Draw(node, controls, known[0].variate, "mixture", (), components=known, form=Weighted(weights))]


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


def alike(components: list[Draw]) -> bool:
    """Return whether components are densities of the same element, or of the same whole row of outcomes."""
    if not components:
        return False
    first = components[0].variate
    return all(
        c.variate.variable is first.variable
        and not c.variate.wrappers
        and c.form is None
        and _texts(c.variate) == _texts(first)
        and (_is_row(c) if c.variate.open else c.law.shape == "scalar")
        and c.law.discrete == components[0].law.discrete
        for c in components
    )


def _is_row(draw: Draw) -> bool:
    """Return whether a density is of a row ``y[n]`` of an array of vectors, or of numbers."""
    variable, indices = draw.variable, draw.variate.indices
    is_whole = draw.variate.open == (len(indices) - 1,) and indices[-1].kind == "all" and variable.kind == "data"
    if draw.law.shape == "vector":
        return is_whole and variable.plain == "vector"
    is_alone = draw.law.shape == "scalar" and not draw.law.vector_arguments
    return is_whole and is_alone and variable.plain in ("vector", "real", "int")


def _texts(variate: Variate) -> list[str]:
    return [
        " ".join(str(t) for t in i.low.scan_values(lambda _: True)) if i.low is not None else ""
        for i in variate.indices
    ]
