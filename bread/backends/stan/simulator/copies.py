"""Variables that loops fill, element by element.

``for (n in 1:N) z[n] = log(y[n]);`` is the same as ``z = log(y);``. Where a loop fills a container with densities,
``log_lik[n] = normal_lpdf(y[n] | mu, sigma);``, ``target += sum(log_lik);`` and ``target += log_lik;`` add them up.
"""

from __future__ import annotations

from collections.abc import Callable

from bread.backends.stan.language.dataflow import Dataflow, Definition
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.syntax import Node, name_of, nodes, strip
from bread.backends.stan.language.variates import Index, Variate, rank, read_variate
from bread.backends.stan.simulator.coverage import Coverage, Region, exclusive


def read_elementwise(flow: Dataflow, definition: Definition, is_drawn: Callable[[Variable], bool]) -> Variate | None:
    """Return the whole variable that an assignment in a loop copies, element n to element n; None where it does not."""
    if definition.increment or definition.value is None or definition.node.data != "assignment":
        return None
    if len(definition.controls) != 1 or definition.controls[0].data != "for_range":
        return None
    coverage = Coverage(flow)
    target = read_variate(nodes(definition.node)[0], flow.scopes, lambda v: v is definition.target)
    source = read_variate(definition.value, flow.scopes, is_drawn)
    for one in (target, source):
        if one is None or one.open or one.variable.rank != 1:
            return None
        region = coverage.region(one, definition.controls)
        if region is None or not coverage.covers(one.variable, [region]):
            return None
    assert source is not None
    others = [other for _, other in source.wrappers if other is not None]
    loops = {v for other in others for v in flow.reads(other) if v.kind == "loop"}
    if loops or any(rank(other, flow.scopes) != 0 for other in others):
        return None
    return Variate(source.variable, (Index("all", source.indices[0].size),), source.wrappers)


def filled_container(flow: Dataflow, term: Node) -> Variable | None:
    """Return the container that a term adds up, if each of its elements is assigned once; None where in doubt.

    Assignments in the two branches of one condition may give the same elements.
    """
    if term.data == "call" and name_of(term) == "sum" and len(nodes(term)) == 1:
        term = strip(nodes(term)[0])
    container = flow.scopes.variable(term) if term.data == "variable" else None
    if container is None or container.rank != 1 or container.kind not in ("local", "transformed parameter"):
        return None
    coverage = Coverage(flow)
    found: list[tuple[Definition, Region]] = []
    for definition in flow.definitions.get(container, []):
        if definition.value is None or definition.increment or definition.whole or definition.node.data != "assignment":
            return None
        target = read_variate(nodes(definition.node)[0], flow.scopes, lambda v: v is container)
        region = None if target is None or target.open else coverage.region(target, definition.controls)
        if region is None:
            return None
        for other, taken in found:
            is_exclusive = exclusive(definition.controls, definition.node, other.controls, other.node)
            if not is_exclusive and not coverage.disjoint(region, taken):
                return None
        found.append((definition, region))
    return container if found else None
