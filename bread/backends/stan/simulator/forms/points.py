"""Continuous outcomes with probability on values: ``if (y == 0) target += w; else target += v + d_lpdf(y | a);``.

With exp(w) + exp(v) = 1 this is the law of an outcome that is zero with probability exp(w), and comes from the
continuous distribution d else: hurdle and zero-or-one-inflated families. There may be several values. That the weights
sum to one is checked at every draw; a draw of d that rounds to one of the values is made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bread.backends.stan.language.rendering import Renderer
from bread.backends.stan.language.syntax import Node, end, is_density, nodes, number, start, strip, terms, token
from bread.backends.stan.simulator.draw import Argument, Draw, Mode, Reading, Writer
from bread.backends.stan.simulator.forms.flags import ReadOnce, branches_of, chain_of
from bread.backends.stan.simulator.forms.weights import CHOOSE, check_sum, refuse_own_elements


@dataclass(frozen=True, eq=False)
class Points:
    """The values that have a probability, and the log weights of all parts: of each value, and last of the density.

    Attributes
    ----------
    values : tuple of Node
    weights : tuple of Argument
    """

    values: tuple[Node, ...]
    weights: tuple[Argument, ...]

    def expressions(self, draw: Draw) -> list[Node]:
        """Return the weights."""
        return [part for weight in self.weights for part in weight.parts]

    def code(self, draw: Draw, writer: Writer, render: Renderer, mode: Mode) -> str:
        """Return the code that chooses a part, draws the outcome from it, and adds the log density of that part."""
        refuse_own_elements(draw, writer, mode)
        (component,) = draw.components
        element, name, last = writer.element(draw, render), draw.variable.name, len(self.weights)
        texts = [render(value) for value in self.values]
        same = " || ".join(f"{element} == {text}" for text in texts)
        cases = [f"if (bread_k == {k}) {{ {element} = {text}; }}" for k, text in enumerate(texts, 1)]
        drawn = (
            f"{{ {writer.assign(component, render)} "
            f'if ({same}) reject("bread: the outcome {name} rounds to a value that has a probability"); '
            f"{draw.total} += {writer.held_density(component, render)}; }}"
        )
        return (
            f"{{ vector[{last}] bread_w = [{', '.join(weight.text(render) for weight in self.weights)}]'; "
            f"{check_sum('the weights of the parts of an outcome')} int bread_k = {CHOOSE}; "
            f"{' else '.join([*cases, drawn])} {draw.total} += bread_w[bread_k]; }}"
        )


class PointsReader:
    """Recognises continuous outcomes with probability on single values, in one program."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._flow = reading.flow
        self._source = reading.source
        self._found = ReadOnce()

    def read(self, statement: Node, controls: tuple[Node, ...]) -> list[Draw] | None:
        """Return the draw of a statement in one branch: for the first branch, and nothing for the others.

        None if the conditions around the statement are none of such an outcome.
        """
        chain = chain_of(controls)
        if chain is None:
            return None
        root, outer = chain
        return self._found.draws(root, lambda: self._read(root, outer))

    def _read(self, root: Node, controls: tuple[Node, ...]) -> list[Draw] | None:
        branches = branches_of(root)
        if branches is None or len(branches) < 2 or branches[-1].condition is not None:
            return None
        added = [terms(one.value) if one.value is not None else [] for one in branches]
        asked = [_asks(one.condition) for one in branches[:-1] if one.condition is not None]
        if any(one is None for one in asked) or not all(added) or any(sign < 0 for sign, _ in added[-1]):
            return None
        elements = {self._text(element) for element, _ in filter(None, asked)}
        values = [value for _, value in filter(None, asked)]
        own = [
            term
            for _, term in added[-1]
            if is_density(term) and nodes(term) and self._text(strip(nodes(term)[0])) in elements
        ]
        if len(elements) != 1 or len({number(value) for value in values}) < len(values) or len(own) != 1:
            return None
        if self._reading.selection(nodes(own[0])[0]) is None:
            return None
        component = self._reading.component(root, controls, own[0])
        if component is None or component.variable not in self._reading.outcomes or not _is_plain(component):
            return None
        rest = [(sign, term) for sign, term in added[-1] if term is not own[0]]
        weights = [*added[:-1], rest]
        parts = [term for one in weights for _, term in one]
        if not rest or component.variable in self._flow.depends(*parts):
            return None
        inside = [part for argument in component.arguments for part in argument.parts]
        if component.variable in self._flow.depends(*inside):
            return None
        form = Points(tuple(values), tuple(_weight(one) for one in weights))
        return [Draw(root, controls, component.variate, "mixture", (), components=(component,), form=form)]

    def _text(self, node: Node) -> str:
        return "".join(self._source.code[start(node) : end(node)].split())


def _asks(condition: Node) -> tuple[Node, Node] | None:
    """Read ``y[n] == 0``: the element and the value."""
    condition = strip(condition)
    if condition.data != "binary" or token(condition, "EQUAL") != "==":
        return None
    left, right = (strip(one) for one in nodes(condition))
    if number(left) is not None:
        left, right = right, left
    return None if number(right) is None else (left, right)


def _weight(added: Sequence[tuple[int, Node]]) -> Argument:
    template = " ".join(f"{'+' if sign > 0 else '-'} ({{{i}}})" for i, (sign, _) in enumerate(added))
    return Argument(tuple(term for _, term in added), f"(0 {template})")


def _is_plain(draw: Draw) -> bool:
    variate, law = draw.variate, draw.law
    is_whole = not variate.open and not variate.wrappers and draw.form is None and draw.own is None
    return is_whole and law.shape == "scalar" and not law.discrete and draw.low is None and draw.high is None
