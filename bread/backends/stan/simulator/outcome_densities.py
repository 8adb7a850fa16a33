"""Outcomes of which the likelihood is no density: it may lack a factor that holds no parameter, as posteriors allow.

``log(y) ~ normal(mu, sigma)`` is a density of log(y): that of y has a factor 1 / y. A term that is written by hand may
lack any factor of the data. The posterior is the same; what moves outcomes and looks at the likelihood is not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from bread.backends.info import UNKNOWN
from bread.backends.stan.language.dataflow import Contribution, Dataflow
from bread.backends.stan.language.refusals import RefusedError
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import distribution_of, is_density, nodes, terms
from bread.backends.stan.language.variates import Variate
from bread.backends.stan.simulator.draw import Draw
from bread.backends.stan.simulator.reader import Reader
from bread.backends.stan.split.split import Classified, Splitter

_PLAIN = ""
_FUNCTIONS = {"log": "log", "log10": "log", "logit": "logit"}  # the same but for a constant factor


def functions_with_density(
    flow: Dataflow, source: Source, splitter: Splitter, outcomes: Collection[Variable]
) -> dict[str, str]:
    """Return outcomes of which the likelihood is no density, and of which function of each it is one, or `UNKNOWN`."""
    reader = Reader(flow, source, splitter, frozenset(outcomes))
    found: dict[Variable, set[str]] = defaultdict(set)
    for contribution in flow.contributions:
        read = flow.closure(contribution.own | contribution.control).intersection(outcomes)
        draws = _draws(reader, contribution) if read else []
        is_chosen = not flow.closure(contribution.control).isdisjoint(outcomes)
        if draws is None or (is_chosen and any(not isinstance(one, Draw) or one.form is None for one in draws)):
            for variable in read:
                found[variable].add(UNKNOWN)
            continue
        for one in (part for draw in draws for part in (draw, *_components(draw))):
            _note(flow, one, found)
    functions = {v.name: names.pop() if len(names) == 1 else UNKNOWN for v, names in found.items() if v in outcomes}
    return {name: function for name, function in functions.items() if function != _PLAIN}


def _draws(reader: Reader, contribution: Contribution) -> list[Draw | Variate] | None:
    """Return what a contribution gives a density, as draws or elements; None where it may add more, or less."""
    try:
        return list(reader.read(Classified(contribution, "likelihood")))
    except RefusedError:
        pass  # it cannot be drawn; it may have a density all the same
    node, functions = contribution.node, reader.flow.scopes.functions
    added = [(1, node)] if node.data != "assignment" else terms(nodes(node)[1])
    found: list[Draw | Variate] = []
    for sign, term in added:
        is_known = term.data == "tilde" or (is_density(term) and sign > 0)
        name = distribution_of(term) if is_known else ""
        variate = reader.variate(nodes(term)[0]) if is_known and nodes(term) else None
        if variate is None or f"{name}_lpdf" in functions or f"{name}_lpmf" in functions:
            return None
        found.append(variate)
    return found


def _components(one: Draw | Variate) -> tuple[Draw, ...]:
    return one.components if isinstance(one, Draw) else ()


def _note(flow: Dataflow, one: Draw | Variate, found: dict[Variable, set[str]]) -> None:
    """Note of which function of its variable one draw is, and other variables that its derivative depends on."""
    variate = one.variate if isinstance(one, Draw) else one
    function = UNKNOWN if isinstance(one, Draw) and one.functions else _PLAIN
    for operator, other in variate.wrappers:
        if other is None:
            function = _FUNCTIONS[operator] if function == _PLAIN else UNKNOWN
            continue
        if function != _PLAIN and (operator not in ("*", "/") or function == "logit"):
            function = UNKNOWN  # log(2 * y) is as log(y), log(y + 1) is not
        if function != _PLAIN or operator in ("*", "/"):
            for variable in flow.depends(other):
                found[variable].add(UNKNOWN)
    found[variate.variable].add(function)
