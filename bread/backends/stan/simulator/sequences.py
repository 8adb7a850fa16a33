"""Variables whose elements depend on the elements before: ``mu[t] ~ normal(mu[t - 1], s)``."""

from __future__ import annotations

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.refusals import quote, refuse
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, nodes, walk, walk_values
from bread.backends.stan.language.variates import Index, Variate, read_variate
from bread.backends.stan.simulator.coverage import Coverage, Linear, constant, difference
from bread.backends.stan.simulator.draw import Draw


class Sequences:
    """Verifies that only earlier elements enter the law of an element; that of an outcome, as far as it is plain."""

    def __init__(self, flow: Dataflow, source: Source) -> None:
        self._flow = flow
        self._source = source
        self._coverage = Coverage(flow)

    def check(self, variable: Variable, draws: list[Draw]) -> None:
        """Refuse a parameter whose law depends on itself in any other way than a fixed number of places back."""
        for draw in draws:
            for expression in draw.expressions():
                if variable in self._flow.depends(expression) and not self._only_earlier(
                    expression, draw.variate, variable
                ):
                    raise refuse(
                        self._source,
                        draw.statement,
                        f"the law of {variable.name!r} depends on {variable.name!r} itself; bread cannot verify that "
                        "only earlier elements enter.",
                        "Pass simulator=: a Stan program or a Python function that draws parameters and data.",
                    )

    def refuse_own(self, variable: Variable, draws: list[Draw]) -> None:
        """Refuse an outcome that plainly reads the element whose law is stated: ``y[n] ~ binomial(y[n] + f[n], p)``.

        What is less plain is found when it is drawn.
        """
        for draw in draws:
            for one in (draw, *draw.components):
                for argument in one.arguments:
                    for inner in (node for part in argument.parts for node in walk_values(part)):
                        if inner.data == "indexed" and self._is(nodes(inner)[0], variable):
                            self._refuse_same(one, inner)

    def _refuse_same(self, draw: Draw, read: Node) -> None:
        other = read_variate(read, self._flow.scopes, lambda v: v is draw.variable)
        if other is None or other.open or draw.variate.open:
            return
        pairs = zip(draw.variate.indices, other.indices, strict=True)
        if all(self._start(mine) == self._start(its) for mine, its in pairs):
            text = quote(self._source, read)
            raise refuse(
                self._source,
                draw.statement,
                f"the law of {text!r} reads {text!r} itself: nothing can be drawn from it.",
                "Give what it reads (the number of trials, a weight) as data of its own. Or pass simulator=: a Stan "
                "program or a Python function that draws parameters and data.",
            )

    def _only_earlier(self, expression: Node, variate: Variate, variable: Variable) -> bool:
        direct = [node for node in walk(expression) if node.data == "indexed" and self._is(nodes(node)[0], variable)]
        named = [node for node in walk(expression) if self._is(node, variable)]
        others = self._flow.reads(expression) - {variable}
        return (
            len(direct) == len(named)
            and variable not in self._flow.closure(others)
            and all(self._is_earlier(variate, node, variable) for node in direct)
        )

    def _is(self, node: Node, variable: Variable) -> bool:
        return node.data == "variable" and self._flow.scopes.variable(node) is variable

    def _is_earlier(self, variate: Variate, read: Node, variable: Variable) -> bool:
        """Return whether an indexed read takes, along one dimension, an element a fixed number of places before."""
        other = read_variate(read, self._flow.scopes, lambda v: v is variable)
        if other is None or len(other.indices) != len(variate.indices):
            return False
        earlier = 0
        for mine, its in zip(variate.indices, other.indices, strict=True):
            if mine.kind == "many" or (mine.kind != its.kind and {mine.kind, its.kind} != {"between", "all"}):
                return False
            if mine.kind == "all" and its.kind == "all":
                continue
            gap = dict(difference(self._start(mine), self._start(its)))
            if set(gap) - {""} or gap.get("", 0) < 0:
                return False
            earlier += gap.get("", 0) > 0
        return earlier == 1

    def _start(self, index: Index) -> Linear:
        return self._coverage.linear(index.low) if index.low is not None else constant(1)
