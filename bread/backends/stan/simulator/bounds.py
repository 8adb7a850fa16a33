"""The declared bounds of parameters: where a draw may leave them, and what is then drawn again."""

from __future__ import annotations

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.distributions import Distribution
from bread.backends.stan.language.monotone import ENDS
from bread.backends.stan.language.refusals import refuse
from bread.backends.stan.language.rendering import Renderer
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, is_number, number, strip
from bread.backends.stan.language.variates import rank
from bread.backends.stan.simulator.draw import Draw
from bread.backends.stan.simulator.dropped import headers


class Bounds:
    """The declared bounds of a parameter, beside what a draw may produce."""

    def __init__(self, variable: Variable) -> None:
        self.lower = variable.bounds.get("lower")
        self.upper = variable.bounds.get("upper")
        self.positive = variable.type == "positive_ordered"

    def __bool__(self) -> bool:
        return self.positive or self.lower is not None or self.upper is not None

    def nodes(self) -> list[Node]:
        """Return the bounds as written."""
        return [node for node in (self.lower, self.upper) if node is not None]


class DeclaredBounds:
    """What the declared bounds of one program's parameters mean for their draws."""

    def __init__(self, flow: Dataflow, source: Source) -> None:
        self._flow = flow
        self._source = source

    def outside(
        self, draw: Draw, distribution: Distribution, value: str, counter: str | None, render: Renderer
    ) -> tuple[list[str], list[str]]:
        """Return conditions under which one element is drawn again, and those under which the whole draw is.

        An element is drawn again where the probability of its bounds is a constant; otherwise that probability is part
        of the law that the program states, and only rejecting whole draws of all parameters gives this law.
        """
        variable = draw.variable
        bounds = Bounds(variable)
        conditions = []
        if draw.variate.gives is not None:  # the declared bounds are those of the functions
            low, high = self.ends(draw, counter, render)
            conditions += [f"bread_x <= {low}"] if low is not None else []
            conditions += [f"bread_x >= {high}"] if high is not None else []
        elif variable.kind == "parameter" and bounds and not self._inside(draw, distribution, bounds):
            for node, sign in ((bounds.lower, "<="), (bounds.upper, ">=")):
                if node is not None:
                    conditions.append(f"{value} {sign} {self.bound(node, draw, counter, render)}")
            if bounds.positive:
                conditions.append(f"{value} <= 0")
        if not conditions:
            return [], []
        if self._may_differ(*headers(draw.controls)):  # another branch may cut off another share
            return [], conditions
        if not self._may_differ(*draw.expressions(), *bounds.nodes()) or self._is_half(draw, distribution, bounds):
            return conditions, []
        return [], conditions

    def _may_differ(self, *expressions: Node) -> bool:
        return any(variable.kind == "parameter" for variable in self._flow.depends(*expressions))

    def ends(self, draw: Draw, counter: str | None, render: Renderer) -> list[str | None]:
        """Return the declared lower and upper bound of one element; None where there is none.

        Those of a parameter whose variable is changed are of the variate, and none where its law ends there, too.
        """
        bounds = Bounds(draw.variable)
        if draw.variate.gives is not None:
            support = draw.law.support
            bounded = {"positive": (True, False), "unit": (True, True)}.get(support, (False, False))
            return [None if own else one for own, one in zip(bounded, ENDS[draw.variate.gives], strict=True)]
        low, high = (
            None if node is None else self.bound(node, draw, counter, render) for node in (bounds.lower, bounds.upper)
        )
        return ["0" if bounds.positive else low, high]

    def bound(self, node: Node, draw: Draw, counter: str | None, render: Renderer) -> str:
        """Return the bound of the element number ``counter``, or of all; refuse bounds that may differ."""
        known = rank(node, self._flow.scopes)
        if known == 0:
            return render(node)
        if draw.variate.is_whole and len(draw.variate.indices) == 1 and counter is not None:
            return f"bread_at({render(node)}, {counter})"
        raise refuse(
            self._source,
            draw.statement,
            f"the bounds of {draw.variable.name!r} may differ between its elements.",
            "Give the prior to the whole variable in one statement.",
        )

    def _inside(self, draw: Draw, distribution: Distribution, bounds: Bounds) -> bool:
        """Return whether the law never leaves the bounds."""
        if draw.variate.wrappers:
            return False
        if distribution.support == "inside":
            return True
        lower_zero = bounds.positive or is_number(bounds.lower, 0)
        if distribution.support == "positive":
            return bounds.upper is None and (lower_zero or bounds.lower is None)
        if distribution.support == "unit":
            return (bounds.lower is None or lower_zero) and (bounds.upper is None or is_number(bounds.upper, 1))
        if draw.distribution == "uniform" and not draw.variate.open:
            low, high = (argument.parts[0] for argument in draw.arguments)
            return (bounds.lower is None or self._same(bounds.lower, low)) and (
                bounds.upper is None or self._same(bounds.upper, high)
            )
        return False

    def _is_half(self, draw: Draw, distribution: Distribution, bounds: Bounds) -> bool:
        """Return whether the bound cuts a symmetric law at its centre: half of it is left, whatever its scale."""
        if distribution.location is None or draw.variate.wrappers or draw.low is not None or draw.high is not None:
            return False
        ends = [node for node in (bounds.lower, bounds.upper) if node is not None]
        if len(ends) + bounds.positive != 1:
            return False
        if distribution.location < 0:
            return bounds.positive or is_number(ends[0], 0)
        centre = draw.arguments[distribution.location].parts[0]
        if bounds.positive or is_number(ends[0], 0):
            return is_number(centre, 0)
        return self._same(ends[0], centre) and rank(centre, self._flow.scopes) == 0

    def _same(self, a: Node, b: Node) -> bool:
        numbers = [number(node) for node in (a, b)]
        if None not in numbers:
            return numbers[0] == numbers[1]
        both = [strip(node) for node in (a, b)]
        return all(node.data == "variable" for node in both) and self._flow.scopes.variable(
            both[0]
        ) is self._flow.scopes.variable(both[1])
