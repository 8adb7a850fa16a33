"""Variables that a loop fills with another one: ``for (n in 1:N) z[n] = log(y[n]);``, the same as ``z = log(y);``."""

from __future__ import annotations

from collections.abc import Callable

from bread.backends.stan.language.dataflow import Dataflow, Definition
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.syntax import nodes
from bread.backends.stan.language.variates import Index, Variate, rank, read_variate
from bread.backends.stan.simulator.coverage import Coverage


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
