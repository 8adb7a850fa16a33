"""Where a density ends abruptly, so that the mean of its score need not be zero.

The score of a law has mean zero if its density goes to zero at the ends of the unconstrained space, and if these ends
do not move with parameters. A ``uniform(0, 3)`` on a parameter declared without those bounds breaks the former, an
outcome with ``uniform(0, theta)`` the latter.
"""

from __future__ import annotations

from collections.abc import Iterable

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.scopes import Kind, Variable
from bread.backends.stan.language.syntax import is_number
from bread.backends.stan.simulator.draw import Draw

_BOUNDED = ("uniform", "pareto", "pareto_type_2")
_ENDS = {"uniform": (0, 1), "pareto": (0,), "pareto_type_2": (0,)}  # arguments at which the density ends


class Edges:
    """Finds parameters whose scores are no test of a simulator."""

    def __init__(self, flow: Dataflow) -> None:
        self._flow = flow

    def find(self, draws: Iterable[Draw], kind: Kind) -> frozenset[Variable]:
        """Return parameters at an edge of the laws of variables of ``kind`` ("parameter" or "data")."""
        found: set[Variable] = set()
        for draw in draws:
            for one in draw.components or (draw,):
                if one.variable.kind == kind:
                    found |= self._edges(one)
        return frozenset(found)

    def _edges(self, draw: Draw) -> set[Variable]:
        ends = [node for node in (draw.low, draw.high) if node is not None]
        ends += [part for i in _ENDS.get(draw.distribution, ()) for part in draw.arguments[i].parts]
        moving = {v for v in self._flow.depends(*ends) if v.kind == "parameter"}
        if draw.variable.kind == "parameter" and self._is_cut(draw):
            return {*moving, draw.variable}
        return moving

    def _is_cut(self, draw: Draw) -> bool:
        """Return whether the law ends inside the declared bounds of its parameter; in doubt, yes."""
        bounds, support = draw.variable.bounds, draw.law.support
        if draw.low is not None or draw.high is not None or draw.distribution in _BOUNDED:
            return True
        if draw.variable.type in ("simplex", "positive_ordered"):
            return False
        if support == "positive":
            return not is_number(bounds.get("lower"), 0) or bool(draw.variate.wrappers)
        if support == "unit":
            unit = is_number(bounds.get("lower"), 0) and is_number(bounds.get("upper"), 1)
            return not unit and not draw.variate.wrappers
        return False
