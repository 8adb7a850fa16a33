"""Codes of missing outcomes: ``if (y[n] != -1) ...`` or ``if (y[n] >= 0) ...``, where no law of ``y[n]`` can give -1.

Such a condition reads an outcome, but no draw changes what it says: which outcomes are missing is a part of the design.
"""

from __future__ import annotations

from collections.abc import Callable

from bread.backends.stan.language.scopes import Scopes
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, end, nodes, number, start, strip, terms, token
from bread.backends.stan.language.variates import read_variate
from bread.backends.stan.simulator.coverage import branch
from bread.backends.stan.simulator.draw import Draw

_LOWEST = {"counts": 0, "categories": 1, "positive": 0, "unit": 0}  # no value of such a law lies below
_MIRRORED = {"!=": "!=", "<": ">", "<=": ">="}  # `-1 < y[n]` as `y[n] > -1`


def asks_for_code(draw: Draw, control: Node, scopes: Scopes, source: Source, is_design: Callable[[Node], bool]) -> bool:
    """Return whether a condition is the same for every value that a draw may give to the element that it reads.

    Parameters
    ----------
    draw : Draw
    control : Node
        One of the controls around it.
    scopes : Scopes
    source : Source
    is_design : callable
        Whether no outcome enters an expression.
    """
    if control.data != "if_" or branch(control, draw.statement) != 1 or draw.variate.wrappers or draw.form is not None:
        return False
    return all(is_design(one) or _holds(draw, one, scopes, source) for one in _parts(nodes(control)[0]))


def _parts(condition: Node) -> list[Node]:
    """Return what must hold together: the sides of ``&&``."""
    condition = strip(condition)
    if condition.data == "binary" and token(condition, "AND") is not None:
        return [part for side in nodes(condition) for part in _parts(side)]
    return [condition]


def _holds(draw: Draw, condition: Node, scopes: Scopes, source: Source) -> bool:
    """Return whether a comparison of the element with a number holds for every value that its law gives."""
    if condition.data != "binary":
        return False
    element, code = nodes(condition)
    operator = source.code[end(element) : start(code)].strip()
    if _number(code) is None:
        element, code, operator = code, element, _MIRRORED.get(operator, "")
    asked = read_variate(element, scopes, lambda v: v is draw.variable)
    value, lowest = _number(code), _LOWEST.get(draw.law.support)
    if asked is None or asked.wrappers or asked.open or draw.variate.open or value is None:
        return False
    texts = [[_text(index.low, source) for index in one.indices] for one in (asked, draw.variate)]
    if texts[0] != texts[1]:
        return False
    if operator == "!=" and not draw.law.discrete:  # one number has no probability
        return True
    if lowest is None:
        return False
    return (operator in ("!=", ">") and value < lowest) or (operator == ">=" and value <= lowest)


def _number(node: Node) -> float | None:
    ((sign, term), *others) = terms(node)
    value = number(term)
    return None if others or value is None else sign * value


def _text(node: Node | None, source: Source) -> str:
    return "" if node is None else "".join(source.code[start(node) : end(node)].split())
