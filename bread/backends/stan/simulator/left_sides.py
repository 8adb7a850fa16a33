"""Left sides of densities that are computed: which of them leave the law of an outcome, or a parameter, as it is."""

from __future__ import annotations

from collections.abc import Callable

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.refusals import RefusedError, quote, refuse
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node
from bread.backends.stan.language.variates import Variate

_OWN = "Pass simulator=: a Stan program or a Python function that draws parameters and data."


def refuse_left_side(
    flow: Dataflow, source: Source, node: Node, left: Node, is_drawn: Callable[[Variable], bool]
) -> RefusedError:
    """Return the error that refuses what is no variable that could be drawn."""
    names = sorted(v.name for v in flow.depends(left) if is_drawn(v))
    if not names:
        data = sorted(v.name for v in flow.depends(left) if v.kind == "data")
        if data:
            return refuse(
                source,
                node,
                f"gives a density to data that are not observed ({', '.join(data)}).",
                "Add them to observed=[...], or leave the statement out.",
            )
        return refuse(source, node, "gives a density to a constant, which cannot be simulated.", _OWN)
    what = " and ".join(repr(name) for name in names[:3])
    return refuse(
        source,
        node,
        f"the left side is computed from {what}, not a variable itself: it cannot be drawn.",
        "Give the density to the variable itself, with its Jacobian in mind. " + _OWN,
    )


def check_derivative(flow: Dataflow, source: Source, node: Node, left: Node, variate: Variate) -> None:
    """Refuse a left side whose derivative by its variable depends on parameters, or on other elements of the variable.

    The density of the left side leaves the derivative out, so that the variable has another law than it states.

    Raises
    ------
    RefusedError
    """
    name, outside = variate.variable.name, ""  # the outermost function: its derivative depends on all that is inside
    for operator, other in variate.wrappers:
        if other is None:
            if variate.variable.kind == "parameter" and name not in flow.changed:
                raise refuse_left_side(flow, source, node, left, lambda v: v.kind == "parameter")
            outside = outside or operator
            continue
        if variate.variable in flow.depends(other):
            raise refuse_left_side(flow, source, node, left, lambda v: v is variate.variable or v.kind == "parameter")
        if not any(v.kind == "parameter" for v in flow.depends(other)):
            continue
        if operator in ("*", "/"):
            raise refuse(
                source,
                node,
                "the left side is scaled by a parameter, which changes the density.",
                "Write the density of the variable itself. " + _OWN,
            )
        if outside:
            instead = ", such as lognormal in place of normal" if outside == "log" else ""
            raise refuse(
                source,
                node,
                f"the left side is {outside}() of {name!r} and parameters (`{quote(source, other)}`): its derivative "
                f"with respect to {name!r} depends on them, and the density leaves that factor out.",
                f"Give a density to what stands inside {outside}(){instead}. {_OWN}",
            )
