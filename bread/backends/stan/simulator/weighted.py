"""Weighted densities, ``target += weights[n] * normal_lpdf(y[n] | mu, sigma);``: the law of no data.

The power w of a density integrates to a number that depends on the parameters, unless w is 1: nothing that could be
drawn has it as its law. brms writes its ``weights()`` so.
"""

from __future__ import annotations

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.refusals import RefusedError, quote, refuse
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, is_density, name_of, nodes, strip, token, walk

_WAY_OUT = (
    "Leave the weights out, and check the model of equally weighted data; repeat a row of the data as often as its "
    "weight says, where weights are counts; or state the law that a weight stands for, as in "
    "y[n] ~ normal(mu[n], sigma / sqrt(weights[n]))."
)


def weight_of(flow: Dataflow, term: Node) -> Node | None:
    """Return the factor of a weighted density, or of a container of them that is added up; None for other terms.

    Parameters
    ----------
    flow : Dataflow
    term : Node
        A term of the log density: ``w * d_lpdf(...)``, ``d_lpdf(...) / w``, ``sum(w .* log_lik)``,
        ``dot_product(w, log_lik)``, where a loop fills ``log_lik`` with densities.
    """
    term = strip(term)
    if term.data == "call" and name_of(term) == "sum" and len(nodes(term)) == 1:
        return weight_of(flow, nodes(term)[0])
    is_product = term.data == "binary" and token(term, "TIMES") in ("*", ".*", "/", "./")
    if not is_product and not (term.data == "call" and name_of(term) == "dot_product"):
        return None
    left, right = nodes(term)
    found = [holds_density(flow, left), holds_density(flow, right)]
    if found == [True, False]:
        return right
    divides = term.data == "binary" and token(term, "TIMES") in ("/", "./")
    return left if found == [False, True] and not divides else None


def holds_density(flow: Dataflow, expression: Node) -> bool:
    """Return whether an expression holds a density, or names a variable that is computed from one."""
    expressions = [expression]
    for variable in flow.depends(expression):
        if variable.kind in ("local", "transformed parameter"):
            expressions += [one.value for one in flow.definitions.get(variable, ()) if one.value is not None]
    return any(is_density(inner) for one in expressions for inner in walk(one))


def refuse_weighted(flow: Dataflow, source: Source, statement: Node, term: Node) -> RefusedError | None:
    """Return the error that refuses a weighted density; None where a term is none."""
    weight = weight_of(flow, term)
    if weight is None:
        return None
    return refuse(
        source,
        statement,
        f"multiplies a log density by the weight `{quote(source, weight)}`: a weighted density is the law of no data "
        "that could be simulated, unless every weight is 1.",
        _WAY_OUT,
    )
