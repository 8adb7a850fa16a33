"""What is said of a term of the log density that is no density which can be drawn from."""

from __future__ import annotations

from bread.backends.stan.language.dataflow import Dataflow, base_variable
from bread.backends.stan.language.refusals import RefusedError, refuse
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, name_of, nodes, walk
from bread.backends.stan.simulator.weighted import refuse_weighted

_OWN = "Pass simulator=: a Stan program or a Python function that draws parameters and data."


def no_density(flow: Dataflow, source: Source, node: Node, term: Node, part: str) -> RefusedError:
    """Return the error that refuses a term.

    Parameters
    ----------
    flow : Dataflow
    source : Source
    node : Node
        The statement that adds it.
    term : Node
    part : str
        "prior" or "likelihood".
    """
    weighted = refuse_weighted(flow, source, node, term)
    if weighted is not None:
        return weighted
    for inner in walk(term):
        if inner.data == "call" and name_of(inner).startswith(("reduce_sum", "map_rect", "hmm_")):
            return refuse(source, node, f"{name_of(inner)} has no simulator.", _OWN)
    if _is_recursion(flow, term):
        return refuse(
            source,
            node,
            "sums over the states of a hidden chain in a form that bread cannot draw from.",
            "Write the forward algorithm as Stan's user's guide does, one element at a time. " + _OWN,
        )
    return refuse(source, node, f"a term of the {part} that is no density which bread can draw from.", _OWN)


def _is_recursion(flow: Dataflow, term: Node) -> bool:
    """Return whether a term is ``log_sum_exp(g[N])`` of a variable that is computed from its own elements."""
    arguments = nodes(term) if term.data == "call" and name_of(term) == "log_sum_exp" else []
    base = base_variable(arguments[0]) if len(arguments) == 1 else term
    variable = flow.scopes.variable(base) if base.data == "variable" else None
    if variable is None:
        return False
    others = {v for one in flow.definitions.get(variable, ()) for v in one.reads if v is not variable}
    return variable in flow.closure(others)
