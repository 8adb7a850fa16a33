"""Changes of variables by hand: ``s = exp(ls); s ~ gamma(2, 2); target += ls;`` is the law of ``ls``.

A term that depends on parameters alone may be a part of the likelihood. It is the Jacobian of a change of variables
exactly if it is the log slope, but for a constant, of what gets the density, as a function of the parameter. Both are
evaluated here at some numbers, the slope by a complex step; then the term is prior, and the parameter can be drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import numpy as np

from bread.backends.stan.language.dataflow import Contribution, Dataflow, base_variable
from bread.backends.stan.language.monotone import MONOTONE, Range
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.syntax import (
    Node,
    is_density,
    is_number,
    name_of,
    nodes,
    number,
    strip,
    terms,
    token,
)
from bread.backends.stan.language.variates import Variate, read_variate
from bread.backends.stan.simulator.copies import read_elementwise
from bread.backends.stan.simulator.coverage import Coverage

_AT: dict[Range, tuple[float, ...]] = {
    "real": (-1.3, -0.4, 0.7, 1.9),
    "positive": (0.2, 0.9, 1.7, 3.1),
    "unit": (0.1, 0.35, 0.6, 0.85),
}
_STEP = 1e-30  # imaginary: the derivative is exact but for rounding
_TOLERANCE = 1e-10
_OTHER = 0.7  # of what else shifts or scales what gets the density: no part of the slope, but for a constant
_FUNCTIONS: dict[str, Callable[[complex], complex]] = {
    "exp": np.exp,
    "log": np.log,
    "log1p": lambda x: np.log(1 + x),
    "log1m": lambda x: np.log(1 - x),
    "inv": lambda x: 1 / x,
    "sqrt": np.sqrt,
    "square": lambda x: x * x,
    "inv_sqrt": lambda x: 1 / np.sqrt(x),
    "inv_square": lambda x: 1 / (x * x),
    "inv_logit": lambda x: 1 / (1 + np.exp(-x)),
    "logit": lambda x: np.log(x / (1 - x)),
    "log_inv_logit": lambda x: -np.log(1 + np.exp(-x)),
    "log1m_inv_logit": lambda x: -np.log(1 + np.exp(x)),
    "abs": lambda x: x if x.real > 0 else -x,
}
_OPERATORS: dict[str, Callable[[complex, complex], complex]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "^": lambda a, b: a**b,
}


class _UnknownError(Exception):
    """An expression is not the same function of each element of one parameter."""


def find_changes(
    flow: Dataflow, outcomes: Collection[Variable], variate_of: Callable[[Node], Variate | None]
) -> tuple[frozenset[str], frozenset[int]]:
    """Return the parameters whose variable is changed, and the terms (by `id`) that are Jacobians of it.

    Parameters
    ----------
    flow : Dataflow
    outcomes : collection of Variable
    variate_of : callable
        Reads what a statement gives a density, under any name.
    """
    laws: dict[Variable, list[tuple[Variate, Node, Contribution]]] = {}
    found: dict[Variable, list[tuple[int, Node, Contribution]]] = {}
    for contribution in flow.contributions:
        if not flow.closure(contribution.own | contribution.control).isdisjoint(outcomes):
            continue
        for sign, term, left in _terms(contribution):
            parameters = [v for v in flow.depends(term if left is None else left) if v.kind == "parameter"]
            if left is not None:
                variate = variate_of(left)
                if variate is not None and _changed(variate):
                    laws.setdefault(variate.variable, []).append((variate, left, contribution))
            elif len(parameters) == 1:
                found.setdefault(parameters[0], []).append((sign, term, contribution))
    names, jacobians = set(), set()
    for parameter, (law, *others) in laws.items():
        own = found.get(parameter, [])
        domain = _domain(parameter)
        if (
            not others
            and own
            and domain is not None
            and _gives(law[0], domain)
            and _is_jacobian(flow, law, own, domain)
        ):
            names.add(parameter.name)
            jacobians |= {id(term) for _, term, _ in own}
    return frozenset(names), frozenset(jacobians)


def _terms(contribution: Contribution) -> Iterator[tuple[int, Node, Node | None]]:
    """Yield sign and term of what a statement adds; with what gets the density, where it is one."""
    node = contribution.node
    if contribution.kind == "tilde":
        yield 1, node, nodes(node)[0]
    elif contribution.kind == "target":
        for sign, term in terms(nodes(node)[1]):
            yield sign, term, nodes(term)[0] if is_density(term) and nodes(term) else None


def _changed(variate: Variate) -> bool:
    return variate.variable.kind == "parameter" and any(other is None for _, other in variate.wrappers)


def _domain(parameter: Variable) -> Range | None:
    """Return which numbers a parameter may be, by its declaration."""
    if parameter.type not in ("real", "vector", "row_vector") or parameter.rank > 1:
        return None
    low, high = parameter.bounds.get("lower"), parameter.bounds.get("upper")
    if low is None and high is None:
        return "real"
    if not is_number(low, 0):
        return None
    return "positive" if high is None else "unit" if is_number(high, 1) else None


def _gives(variate: Variate, domain: Range) -> bool:
    """Return whether each function takes exactly the numbers that the one inside of it gives."""
    for operator, other in reversed(variate.wrappers):
        takes: Range = "real" if other is not None else MONOTONE[operator].takes
        if takes != domain:
            return False
        domain = domain if other is not None else MONOTONE[operator].gives
    return True


def _is_jacobian(
    flow: Dataflow, law: tuple[Variate, Node, Contribution], own: list[tuple[int, Node, Contribution]], domain: Range
) -> bool:
    """Return whether terms add the log slope of what gets the density, but for a constant."""
    variate, left, contribution = law
    differences = []
    try:
        for x in _AT[domain]:
            moved = _Values(flow, variate.variable, complex(x, _STEP), _OTHER)
            slope = moved.term(left, contribution.controls).imag / _STEP
            plain = _Values(flow, variate.variable, complex(x))
            added = sum(sign * plain.term(term, one.controls).real for sign, term, one in own)
            differences.append(added - float(np.log(abs(slope))))
    except (_UnknownError, ZeroDivisionError):
        return False
    return bool(np.ptp(differences) <= _TOLERANCE * (1 + np.abs(differences).max()))


class _Values:
    """Evaluates expressions where each element of a parameter has one value, and other variables perhaps another."""

    def __init__(self, flow: Dataflow, parameter: Variable, at: complex, other: float | None = None) -> None:
        self._flow, self._parameter, self._at, self._other = flow, parameter, at, other
        self._coverage = Coverage(flow)

    def term(self, node: Node, controls: tuple[Node, ...]) -> complex:
        """Return what one element adds."""
        if any(one.data != "for_range" for one in controls):
            raise _UnknownError
        node = strip(node)
        if node.data == "call" and name_of(node) == "sum" and "sum" not in self._flow.scopes.functions:
            node = nodes(node)[0]
        return self.value(node, controls)

    def value(self, node: Node, controls: tuple[Node, ...]) -> complex:
        """Return the value of an expression that takes every element of the parameter once."""
        node = strip(node)
        if node.data in ("integer", "real"):
            return complex(number(node) or 0.0)
        if node.data in ("variable", "indexed"):
            return self._variable(node, controls)
        inner = [self.value(one, controls) for one in nodes(node)]
        if node.data == "unary" and token(node, "SIGN") is not None:
            return -inner[0] if token(node, "SIGN") == "-" else inner[0]
        if node.data == "binary":
            operator = (token(node, "SIGN", "TIMES", "POWER") or "").removeprefix(".")
            if operator in _OPERATORS:
                return _OPERATORS[operator](*inner)
        if node.data == "call" and name_of(node) not in self._flow.scopes.functions:
            if name_of(node) == "pow":
                return inner[0] ** inner[1]
            if name_of(node) in _FUNCTIONS:
                return _FUNCTIONS[name_of(node)](inner[0])
        raise _UnknownError

    def _variable(self, node: Node, controls: tuple[Node, ...]) -> complex:
        base = self._flow.scopes.variable(base_variable(node))
        if base is not None and self._other is not None and self._parameter not in self._flow.closure([base]):
            return complex(self._other)
        read = read_variate(node, self._flow.scopes, lambda v: True)
        region = None if read is None else self._coverage.region(read, controls)
        if read is None or region is None or not self._coverage.covers(read.variable, [region]):
            raise _UnknownError
        if read.variable is self._parameter:
            return self._at
        definitions = self._flow.definitions.get(read.variable, [])
        if len(definitions) != 1 or definitions[0].value is None or definitions[0].increment:
            raise _UnknownError
        (definition,) = definitions
        is_whole = definition.whole and not definition.controls
        if not is_whole and read_elementwise(self._flow, definition, lambda v: v is self._parameter) is None:
            raise _UnknownError
        assert definition.value is not None
        return self.value(definition.value, definition.controls)
