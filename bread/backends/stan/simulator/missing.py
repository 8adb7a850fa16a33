"""Codes of missing outcomes: ``if (y[n] != -1) ...``, where no law of ``y[n]`` can give -1.

Such a condition reads an outcome, but no draw changes what it says: which outcomes are missing is a part of the design.
"""

from __future__ import annotations

from bread.backends.stan.language.scopes import Scopes
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, end, nodes, start, strip, terms, token
from bread.backends.stan.language.variates import read_variate
from bread.backends.stan.simulator.coverage import branch
from bread.backends.stan.simulator.draw import Draw

_LOWEST = {"counts": 0, "categories": 1, "positive": 0, "unit": 0}  # no value of such a law lies below


def asks_for_code(draw: Draw, control: Node, scopes: Scopes, source: Source) -> bool:
    """Return whether a condition holds for every value that a draw may give to the element that it reads.

    Parameters
    ----------
    draw : Draw
    control : Node
        One of the controls around it.
    scopes : Scopes
    source : Source
    """
    if control.data != "if_" or branch(control, draw.statement) != 1 or draw.variate.wrappers or draw.form is not None:
        return False
    condition, lowest = strip(nodes(control)[0]), _LOWEST.get(draw.law.support)
    if lowest is None or condition.data != "binary" or token(condition, "EQUAL") != "!=":
        return False
    element, code = nodes(condition)
    asked = read_variate(element, scopes, lambda v: v is draw.variable)
    value = _integer(code)
    if asked is None or asked.wrappers or asked.open or draw.variate.open or value is None:
        return False
    texts = [[_text(index.low, source) for index in one.indices] for one in (asked, draw.variate)]
    if texts[0] != texts[1]:
        return False
    return value < lowest


def _integer(node: Node) -> int | None:
    ((sign, term), *others) = terms(node)
    return sign * int(str(term.children[0])) if term.data == "integer" and not others else None


def _text(node: Node | None, source: Source) -> str:
    return "" if node is None else "".join(source.code[start(node) : end(node)].split())
