"""Zero-inflated outcomes: ``if (y > 0) target += w + d(y); else target += log_sum_exp(w + d(y), v);``.

With exp(w) + exp(v) = 1 this is the law of an outcome that comes from the counting distribution d with probability
exp(w), and is zero else. The outcome may be a row, of which the sum is looked at, as in capture and recapture. Where d
is binomial for that sum, the elements are drawn as independent trials: given the sum, no parameter enters their law.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bread.backends.stan.language.dataflow import base_variable
from bread.backends.stan.language.rendering import Renderer
from bread.backends.stan.language.syntax import (
    Node,
    distribution_of,
    end,
    is_density,
    name_of,
    nodes,
    start,
    strip,
    terms,
)
from bread.backends.stan.language.variates import Variate, rank
from bread.backends.stan.simulator.coverage import Coverage
from bread.backends.stan.simulator.draw import Argument, Draw, Mode, Reading, Writer
from bread.backends.stan.simulator.forms.flags import ReadOnce
from bread.backends.stan.simulator.forms.weights import CHOOSE, check_sum, refuse_bounded

_IS_ZERO = {">0": False, "!=0": False, ">=1": False, "==0": True, "<1": True}
# of the trials that succeed, given how many do
_CHOICES = "lgamma(size({0}) + 1.0) - lgamma(sum({0}) + 1.0) - lgamma(size({0}) - sum({0}) + 1.0)"
_SINGLE = {"binomial": "bernoulli", "binomial_logit": "bernoulli_logit"}


@dataclass(frozen=True, eq=False)
class Inflated:
    """The parts of a zero-inflated law, and the elements that the condition looks at.

    Attributes
    ----------
    weights : tuple of Argument
        Log weights of the counting distribution, and of zero.
    elements : Node
    is_total : bool
        Whether the sum of the elements has the density in their place.
    """

    weights: tuple[Argument, ...]
    elements: Node
    is_total: bool = False

    def expressions(self, draw: Draw) -> list[Node]:
        """Return the weights."""
        return [part for weight in self.weights for part in weight.parts]

    def code(self, draw: Draw, writer: Writer, render: Renderer, mode: Mode) -> str:
        """Return the code that draws a zero-inflated outcome: where from, then the outcome, then its log density.

        Where elements of a row depend on earlier ones (mode "step"), ``bread_from`` keeps where each row comes from;
        the log densities of rows that come from the counting distribution are checked (mode "check"), and then
        replaced by those of the mixture (mode "total").
        """
        refuse_bounded(draw, writer)
        (component,), total = draw.components, draw.total
        weights = ", ".join(weight.text(render) for weight in self.weights)
        held, variate = render(self.elements), draw.variate
        positions = [index.at("bread_i", render) for index in variate.indices]
        element = f"{render.name(draw.variable)}{'[' + ', '.join(positions) + ']' if positions else ''}"
        nothing = f"{element} = 0;"
        for dimension in variate.open:
            nothing = f"for (bread_i in 1:({variate.indices[dimension].count(render)})) {{ {nothing} }}"
        positive = f"sum({held}) > 0" if variate.open else f"{held} > 0"
        choose = f"vector[2] bread_w = [{weights}]'; {check_sum('the weights of a zero-inflated outcome')} "
        # The law of what was drawn, from its parts: the program's branches are what it is compared with.
        counting = f"bread_again = 0; {writer.code(component, render, 'check')} bread_again += bread_w[1];"
        if self.is_total:  # trials are drawn one by one; the program has the density of their sum
            counting += f" bread_again += {_CHOICES.format(held)};"
        law = f"{positive} ? bread_again : log_sum_exp(bread_again, bread_w[2])"
        if mode == "check":
            density = writer.code(component, render, "check")
            return f"bread_visit += 1; if (bread_from[bread_visit] == 1) {{ {density} }}"
        if mode == "total":
            return f"{{ {choose} {counting} {total} += {law}; }}"
        if mode == "step":
            return (
                f"bread_visit += 1; if (bread_from[bread_visit] == 0) {{ {choose} bread_from[bread_visit] = "
                f"{CHOOSE}; if (bread_from[bread_visit] == 2) {{ {nothing} }} }} "
                f"if (bread_from[bread_visit] == 1) {{ {writer.code(component, render, 'step')} }}"
            )
        return (
            f"{{ {choose} real bread_so_far = {total}; real bread_again; "
            f"if ({CHOOSE} == 1) {{ {writer.code(component, render, 'draw')} }} else {{ {nothing} }} "
            f"{counting} {total} = bread_so_far + ({law}); }}"
        )


class InflatedReader:
    """Recognises zero-inflated outcomes of one program."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._flow = reading.flow
        self._source = reading.source
        self._found = ReadOnce()

    def read(self, statement: Node, controls: tuple[Node, ...]) -> list[Draw] | None:
        """Return the draw of a statement in one branch: for the first branch, and nothing for the second.

        None if the condition around the statement is none of a zero-inflated outcome.
        """
        if not controls or controls[-1].data != "if_":
            return None
        condition = controls[-1]
        return self._found.draws(condition, lambda: self._read(condition, controls[:-1]))

    def _read(self, node: Node, controls: tuple[Node, ...]) -> list[Draw] | None:
        condition, *bodies = nodes(node)
        added = [_added(body) for body in bodies]
        looked = self._looked_at(strip(condition))
        if len(added) != 2 or None in added or looked is None:
            return None
        elements, first_is_zero, total = looked
        positive, zero = (one for one in (added[::-1] if first_is_zero else added) if one is not None)
        own = [term for _, term in terms(positive) if is_density(term) and self._is(nodes(term)[0], elements)]
        trials = None
        if not own and total is not None:
            own = [term for _, term in terms(positive) if is_density(term) and self._is(nodes(term)[0], total)]
            trials = self._trials(node, controls, elements, total, own[0]) if own else None
            if trials is None:
                return None
        branches = nodes(zero) if zero.data == "call" and name_of(zero) == "log_sum_exp" else []
        if len(own) != 1 or len(branches) != 2 or any(sign < 0 for sign, _ in terms(positive)):
            return None
        weight = [term for _, term in terms(positive) if term is not own[0]]
        same = [self._is_same(branch, positive, own[0]) for branch in branches]
        if not weight or sorted(same) != [False, True]:
            return None
        other = branches[same.index(False)]
        component = trials or self._reading.component(node, controls, own[0])
        if component is None or component.variate.wrappers or len(component.variate.open) > 1:
            return None
        distribution = component.law
        if not distribution.discrete or distribution.support != "counts" or distribution.shape != "scalar":
            return None
        if component.variable in self._flow.depends(*weight, other):
            return None
        weights = (
            Argument(tuple(weight), " + ".join(f"({{{i}}})" for i in range(len(weight)))),
            Argument((other,), "({0})"),
        )
        form = Inflated(weights, elements, trials is not None)
        return [Draw(node, controls, component.variate, "mixture", (), components=(component,), form=form)]

    def _trials(
        self, node: Node, controls: tuple[Node, ...], elements: Node, total: Node, density: Node
    ) -> Draw | None:
        """Return the draw of a row of trials whose sum has a binomial density with as many trials."""
        single = _SINGLE.get(distribution_of(density))
        row = self._reading.selection(elements)
        position = nodes(total)[1:]
        if single is None or row is None or len(nodes(density)) != 3 or row.wrappers or len(position) != 1:
            return None
        if [index.kind for index in row.indices] != ["one", "all"]:
            return None
        # the total is computed in a loop of its own, whose counter has the same name
        row = Variate(row.variable, (replace(row.indices[0], low=nodes(position[0])[0]), row.indices[1]))
        _, size, probability = nodes(density)
        coverage = Coverage(self._flow)
        if row.variable.plain != "int" or coverage.linear(row.indices[1].size) != coverage.linear(size):
            return None
        if rank(probability, self._flow.scopes) != 0 or row.variable in self._flow.depends(size, probability):
            return None
        return Draw(node, controls, row, single, (Argument((probability,)),))

    def _text(self, node: Node) -> str:
        return "".join(self._source.code[start(node) : end(node)].split())

    def _is(self, node: Node, elements: Node) -> bool:
        return self._text(node) == self._text(elements)

    def _looked_at(self, condition: Node) -> tuple[Node, bool, Node | None] | None:
        """Return the elements that a condition compares with zero, whether it asks for zero, and their sum if named."""
        if condition.data != "binary":
            return None
        left, right = nodes(condition)
        sign = "".join(self._source.code[end(left) : start(right)].split())
        is_zero = _IS_ZERO.get(sign + self._text(right))
        if is_zero is None:
            return None
        left = strip(left)
        if left.data == "call" and name_of(left) == "sum" and len(nodes(left)) == 1:
            return nodes(left)[0], is_zero, None
        base = base_variable(left)
        variable = self._flow.scopes.variable(base) if base.data == "variable" else None
        if variable is None or variable.kind != "transformed data":
            return left, is_zero, None
        # s[i] = sum(y[i])
        definitions = self._flow.definitions.get(variable, [])
        if len(definitions) != 1 or definitions[0].value is None or definitions[0].node.data != "assignment":
            return None
        value = strip(definitions[0].value)
        target = nodes(definitions[0].node)[0]
        if value.data != "call" or name_of(value) != "sum" or not self._is(target, left):
            return None
        loops = [c for c in definitions[0].controls if c.data == "for_range"]
        one_loop = len(loops) == len(definitions[0].controls) == 1
        return (nodes(value)[0], is_zero, left) if one_loop else None

    def _is_same(self, branch: Node, positive: Node, own: Node) -> bool:
        """Return whether a branch is the sum ``positive``, perhaps with a 0 for a single outcome."""
        wanted = sorted(self._text(term) for _, term in terms(positive))
        found = sorted(self._text(term) for sign, term in terms(branch) if sign > 0)
        if len(found) != len(terms(branch)):
            return False
        variate = self._text(nodes(own)[0])
        zeroed = self._text(own).replace(f"({variate}|", "(0|", 1)
        return found in (wanted, sorted(zeroed if text == self._text(own) else text for text in wanted))


def _added(body: Node) -> Node | None:
    """Return what the only statement of a branch adds to the log density."""
    inner = body
    while inner.data == "block" and len(nodes(inner)) == 1:
        inner = nodes(inner)[0]
    if inner.data != "assignment":
        return None
    left, value = nodes(inner)
    return strip(value) if left.data == "variable" and name_of(left) == "target" else None
