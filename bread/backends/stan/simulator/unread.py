"""What is said of a term of the log density that is no density which can be drawn from."""

from __future__ import annotations

from bread.backends.stan.language.dataflow import Dataflow, base_variable
from bread.backends.stan.language.distributions import DISTRIBUTIONS
from bread.backends.stan.language.refusals import RefusedError, refuse
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, distribution_of, is_density, name_of, nodes, walk
from bread.backends.stan.language.variates import rank
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
        several = _several_at_once(flow, term)
        if several is not None:
            return refuse(
                source,
                several,
                "is one number: the log density of an outcome under several states at once, added up. It is added to "
                "each state of a hidden chain, where the density under that state alone belongs.",
                "Give it the arguments of one state at a time, in a loop over the states. " + _OWN,
            )
        return refuse(
            source,
            node,
            "sums over the states of a hidden chain in a form that bread cannot draw from.",
            "Write the forward algorithm as Stan's user's guide does, one element at a time. " + _OWN,
        )
    return refuse(source, node, f"a term of the {part} that is no density which bread can draw from.", _OWN)


def _is_recursion(flow: Dataflow, term: Node) -> bool:
    """Return whether a term is ``log_sum_exp(g[N])`` of a variable that is computed from its own elements."""
    variable = _summed(flow, term)
    if variable is None:
        return False
    others = {v for one in flow.definitions.get(variable, ()) for v in one.reads if v is not variable}
    return variable in flow.closure(others)


def _summed(flow: Dataflow, term: Node) -> Variable | None:
    """Return the variable whose elements a term sums over: ``g`` of ``log_sum_exp(g[N])``."""
    arguments = nodes(term) if term.data == "call" and name_of(term) == "log_sum_exp" else []
    base = base_variable(arguments[0]) if len(arguments) == 1 else term
    return flow.scopes.variable(base) if base.data == "variable" else None


def _several_at_once(flow: Dataflow, term: Node) -> Node | None:
    """Return a density of one outcome with a container as argument, where a hidden chain is computed."""
    variable = _summed(flow, term)
    definitions = flow.definitions.get(variable, ()) if variable is not None else ()
    for value in (one.value for one in definitions if one.value is not None):
        for inner in walk(value):
            law = DISTRIBUTIONS.get(distribution_of(inner)) if is_density(inner) and nodes(inner) else None
            if law is None or law.shape != "scalar":
                continue
            variate, *arguments = nodes(inner)
            plain = [one for i, one in enumerate(arguments) if i not in law.vector_arguments]
            if rank(variate, flow.scopes) == 0 and any(rank(one, flow.scopes) not in (0, None) for one in plain):
                return inner
    return None
