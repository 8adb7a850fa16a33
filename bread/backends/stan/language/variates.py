"""What stands left of a ``~``: which elements of which variable, and how a value is put there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bread.backends.stan.language.monotone import MONOTONE, Range
from bread.backends.stan.language.scopes import Scopes, Variable
from bread.backends.stan.language.syntax import Node, is_number, name_of, nodes, number, strip, terms, token, walk

Render = Callable[[Node], str]
_OF_OUTCOMES = ("log", "log10", "logit")
_POWERS = {2.0: "square", 0.5: "sqrt", -1.0: "inv", -2.0: "inv_square", -0.5: "inv_sqrt"}
_FLATTEN = ("to_vector", "to_row_vector", "to_array_1d")
# functions of scalars, and functions that return one number whatever they get
_ELEMENTWISE = {"exp", "log", "sqrt", "square", "inv", "inv_logit", "logit", "abs", "fabs", "pow", "inv_sqrt", "Phi"}
_ELEMENTWISE |= {"log1p", "log1m", "expm1", "cos", "sin", "tan", "cbrt", "pi", "e"}
_REDUCING = {"mean", "sum", "sd", "variance", "max", "min", "num_elements", "size", "rows", "cols"}
_REDUCING |= {"dot_self", "dot_product", "distance"}
# functions that return a container of one dimension
_FLAT = {*_FLATTEN, "rep_vector", "rep_row_vector", "linspaced_vector", "zeros_vector", "ones_vector"}


@dataclass(frozen=True)
class Index:
    """What a variate takes along one dimension of its variable.

    ``one`` element ``low``; ``all``; from ``low`` to ``high`` (``between``); those that the integer array ``low``
    names (``many``). ``size`` is the size of the dimension.
    """

    kind: Literal["one", "all", "between", "many"]
    size: Node
    low: Node | None = None
    high: Node | None = None

    def count(self, render: Render) -> str:
        """Return how many elements are taken, as a Stan expression."""
        if self.kind == "one":
            return "1"
        if self.kind == "all":
            return f"({render(self.size)})"
        if self.kind == "many":
            assert self.low is not None
            return f"size({render(self.low)})"
        low = render(self.low) if self.low is not None else "1"
        high = render(self.high) if self.high is not None else render(self.size)
        return f"(({high}) - ({low}) + 1)"

    def at(self, counter: str, render: Render) -> str:
        """Return the position of the element number ``counter``, as a Stan expression."""
        if self.kind == "one":
            assert self.low is not None
            return render(self.low)
        if self.kind == "many":
            assert self.low is not None
            return f"{render(self.low)}[{counter}]"
        if self.kind == "all" or self.low is None:
            return counter
        return f"({render(self.low)}) + {counter} - 1"


@dataclass(frozen=True)
class Variate:
    """The elements of one variable that a statement gives a density, perhaps shifted and scaled.

    Attributes
    ----------
    variable : Variable
    indices : tuple of Index
        One per dimension of the variable.
    wrappers : tuple of (str, Node)
        Operations around the elements, outermost first: the outcome x of the density is mapped back to the element
        by undoing them in this order: ("+", b) for element + b, ("-", b) for element - b, ("r-", b) for b - element,
        ("*", b), ("/", b), and functions: for outcomes ("log", None), ("log10", None) and ("logit", None), for
        parameters ("exp", None) and the others of `MONOTONE`.
    """

    variable: Variable
    indices: tuple[Index, ...]
    wrappers: tuple[tuple[str, Node | None], ...] = ()

    @property
    def open(self) -> tuple[int, ...]:
        """Dimensions along which more than one element is taken."""
        return tuple(i for i, index in enumerate(self.indices) if index.kind != "one")

    @property
    def is_whole(self) -> bool:
        """Return whether all elements are taken."""
        return all(index.kind == "all" for index in self.indices)

    def invert(self, outcome: str, render: Render) -> str:
        """Return the element for which the variate equals ``outcome``."""
        for operator, node in self.wrappers:
            if node is None:
                outcome = f"pow(10, {outcome})" if operator == "log10" else MONOTONE[operator].inverse.format(outcome)
                continue
            other = f"({render(node)})"
            outcome = {
                "+": f"({outcome} - {other})",
                "-": f"({outcome} + {other})",
                "r-": f"({other} - {outcome})",
                "*": f"({outcome} / {other})",
                "/": f"({outcome} * {other})",
            }[operator]
        return outcome

    @property
    def gives(self) -> Range | None:
        """Return which numbers the variate may be, of a parameter whose variable is changed; None for any other."""
        if self.variable.kind != "parameter" or all(node is not None for _, node in self.wrappers):
            return None
        operator, other = self.wrappers[0]
        return MONOTONE[operator].gives if other is None else "real"

    def log_slope(self, element: str, render: Render) -> str:
        """Return code that adds the log slope of its functions at an element, but for constants; "" for none."""
        code = ""
        for operator, node in reversed(self.wrappers):
            if node is None:
                code += f" + ({MONOTONE[operator].log_slope.format(element)})"
                element = f"{operator}({element})"
            else:
                other = f"({render(node)})"
                element = f"({other} - {element})" if operator == "r-" else f"({element} {operator} {other})"
        return code


Alias = Callable[[Variable], Node | Variate | None]


def is_many(node: Node, scopes: Scopes) -> bool:
    """Return whether an index expression is an array of integers."""
    return rank(node, scopes) not in (0, None)


def rank(node: Node, scopes: Scopes) -> int | None:
    """Return the number of dimensions of an expression where it is plain to see, else None."""
    node = strip(node)
    if node.data in ("integer", "real"):
        return 0
    if node.data in ("array", "row"):
        return 1
    if node.data == "variable":
        variable = scopes.variable(node)
        return (
            None if variable is None or variable.type in ("", "tuple") or variable.kind == "argument" else variable.rank
        )
    if node.data == "indexed":
        base, *indices = nodes(node)
        inner = rank(base, scopes)
        if inner is None:
            return None
        taken = [rank(nodes(index)[0], scopes) == 0 for index in indices if index.data == "index_one"]
        return inner - len(taken) if all(taken) else None
    if node.data in ("unary", "transpose"):
        return rank(nodes(node)[0], scopes)
    if node.data == "binary":
        known = [r for r in (rank(child, scopes) for child in nodes(node)) if r is not None]
        return max(known) if len(known) == 2 and min(known) == 0 else None
    if node.data == "call" and name_of(node) not in scopes.functions:
        if name_of(node) in _FLAT:
            return 1
        ranks = [rank(child, scopes) for child in nodes(node)]
        scalar = name_of(node) in _ELEMENTWISE and all(r == 0 for r in ranks)
        return 0 if scalar or (name_of(node) in _REDUCING and len(ranks) > 0 and ranks != [0, 0]) else None
    return None


def read_variate(
    node: Node,
    scopes: Scopes,
    is_target: Callable[[Variable], bool],
    alias: Alias = lambda variable: None,
) -> Variate | None:
    """Read what a statement gives a density; None where it is no plain selection of elements of one variable.

    Parameters
    ----------
    node : Node
        The variate.
    is_target : callable
        Whether a variable is one that is drawn (a parameter or an observed variable).
    alias : callable
        What a variable is another name for, as an expression or read already, or None.
    """
    node = strip(node)
    plain = _read_selection(node, scopes)
    if plain is not None:
        if is_target(plain.variable):
            return plain
        value = alias(plain.variable)
        if value is not None and not isinstance(value, Variate):
            value = read_variate(value, scopes, is_target, alias)
        return _narrow(value, plain, scopes) if value is not None else None
    function = _function(node, scopes)
    if function is not None:
        # of an outcome, the derivative is a constant of the data; of a parameter it is a part of the law
        name, argument = function
        inner = read_variate(argument, scopes, is_target, alias)
        is_known = inner is not None and name in (MONOTONE if inner.variable.kind == "parameter" else _OF_OUTCOMES)
        return Variate(inner.variable, inner.indices, ((name, None), *inner.wrappers)) if inner and is_known else None
    if node.data == "binary":
        return _read_affine(node, scopes, is_target, alias)
    return None


def _function(node: Node, scopes: Scopes) -> tuple[str, Node] | None:
    """Read a function of one argument, ``1 / x`` and ``x^2`` among them: its name, and the argument."""
    inside = nodes(node)
    if node.data == "call" and len(inside) == 1 and name_of(node) in (*MONOTONE, *_OF_OUTCOMES):
        return None if name_of(node) in scopes.functions else (name_of(node), inside[0])
    is_power = node.data == "call" and name_of(node) == "pow" and name_of(node) not in scopes.functions
    if is_power or (node.data == "binary" and token(node, "POWER") is not None):
        sign, power = terms(inside[1])[0]
        name = _POWERS.get(sign * (number(power) or 0.0)) if len(terms(inside[1])) == 1 else None
        return None if name is None else (name, inside[0])
    if node.data == "binary" and token(node, "TIMES") in ("/", "./") and is_number(inside[0], 1):
        return "inv", inside[1]
    return None


def _read_affine(node: Node, scopes: Scopes, is_target: Callable[[Variable], bool], alias: Alias) -> Variate | None:
    operator = token(node, "SIGN", "TIMES")
    left, right = nodes(node)
    inside = [any(_is_drawn(inner, scopes, is_target) for inner in walk(side)) for side in (left, right)]
    if operator is None or inside == [False, False]:
        return None
    if inside == [True, True]:  # an outcome before a parameter, else what stands first
        outcomes = [any(_is_outcome(inner, scopes, is_target) for inner in walk(side)) for side in (left, right)]
        # a density of several numbers is not that of one; what is a product goes last
        fit = [(rank(side, scopes) or 0, token(strip(side), "TIMES") is None) for side in (left, right)]
        inside = outcomes if sum(outcomes) == 1 else [fit[0] >= fit[1], fit[0] < fit[1]]
    side, other = (left, right) if inside[0] else (right, left)
    inner = read_variate(side, scopes, is_target, alias)
    name = operator.removeprefix(".")
    if name == "%" or inner is None or (name == "/" and not inside[0]):
        return None
    if name == "-" and not inside[0]:
        name = "r-"
    return Variate(inner.variable, inner.indices, ((name, other), *inner.wrappers))


def _narrow(inner: Variate, outer: Variate, scopes: Scopes) -> Variate | None:
    """Return the elements ``outer`` of an alias that stands for ``inner``."""
    if outer.is_whole or not inner.open:
        return inner
    if len(inner.open) != len(outer.indices) or any(inner.indices[d].kind != "all" for d in inner.open):
        return None
    if any(node is not None and rank(node, scopes) != 0 for _, node in inner.wrappers):
        return None
    changed = list(inner.indices)
    for dimension, index in zip(inner.open, outer.indices, strict=True):
        changed[dimension] = Index(index.kind, inner.indices[dimension].size, index.low, index.high)
    return Variate(inner.variable, tuple(changed), inner.wrappers)


def _is_drawn(node: Node, scopes: Scopes, is_target: Callable[[Variable], bool]) -> bool:
    if node.data != "variable":
        return False
    variable = scopes.variable(node)
    return variable is not None and is_target(variable)


def _is_outcome(node: Node, scopes: Scopes, is_target: Callable[[Variable], bool]) -> bool:
    variable = scopes.variable(node) if node.data == "variable" else None
    return variable is not None and variable.kind == "data" and is_target(variable)


def _read_selection(node: Node, scopes: Scopes) -> Variate | None:
    node = strip(node)
    if node.data == "transpose":
        inner = _read_selection(nodes(node)[0], scopes)
        return inner if inner is not None and len(inner.open) == 1 else None
    if node.data == "variable":
        variable = scopes.variable(node)
        if variable is None or variable.type in ("", "tuple"):
            return None
        return Variate(variable, tuple(Index("all", size) for size in variable.dimensions))
    if node.data == "call":
        return _read_function(node, scopes)
    if node.data == "indexed":
        base, *indices = nodes(node)
        inner = _read_selection(base, scopes)
        return None if inner is None else _take(inner, indices, scopes)
    return None


def _read_function(node: Node, scopes: Scopes) -> Variate | None:
    name, arguments = name_of(node), nodes(node)
    if name in scopes.functions or not arguments:
        return None
    inner = _read_selection(arguments[0], scopes)
    if inner is None:
        return None
    if name in _FLATTEN and len(arguments) == 1:
        kept = len(inner.open)
        matrix = (
            kept == 2 and inner.variable.plain == "matrix" and len(inner.variable.array_sizes) == len(inner.indices) - 2
        )
        matrix = matrix and not inner.variable.array_sizes[: len(inner.open) - 2] and name == "to_vector"
        return inner if kept <= 1 or (matrix and all(inner.indices[i].kind == "all" for i in inner.open)) else None
    if name == "col" and len(arguments) == 2 and len(inner.open) == 2 and inner.variable.plain == "matrix":
        last = inner.open[-1]
        if inner.indices[last].kind == "all":
            changed = list(inner.indices)
            changed[last] = Index("one", changed[last].size, arguments[1])
            return Variate(inner.variable, tuple(changed))
    return None


def _take(inner: Variate, indices: list[Node], scopes: Scopes) -> Variate | None:
    """Apply indices to the open dimensions of a selection; only whole dimensions can be narrowed."""
    open_dimensions = inner.open
    if len(indices) > len(open_dimensions):
        return None
    changed = list(inner.indices)
    for dimension, index in zip(open_dimensions, indices, strict=False):
        if changed[dimension].kind != "all":
            return None
        size = changed[dimension].size
        children = nodes(index)
        if index.data == "index_all":
            continue
        if index.data == "index_one":
            many = is_many(children[0], scopes)
            changed[dimension] = Index("many" if many else "one", size, children[0])
        elif index.data == "index_between":
            changed[dimension] = Index("between", size, children[0], children[1])
        elif index.data == "index_from":
            changed[dimension] = Index("between", size, children[0], None)
        elif index.data == "index_to":
            changed[dimension] = Index("between", size, None, children[0])
    return Variate(inner.variable, tuple(changed))


def looked_up(term: Node, scopes: Scopes) -> tuple[Node, tuple[Node, ...], Node, bool] | None:
    """Read ``log(phi[k, x])``, a probability out of a table, or ``lp[k, x]``, its log: phi, k, the category x, which.

    The table is a variable, or ``softmax(...)`` and ``log_softmax(...)``.
    """
    is_log = _is_call(term, scopes, "log")
    base = strip(nodes(term)[0]) if is_log else strip(term)
    indices: list[Node] = []
    while base.data == "indexed":
        inner, *outer = nodes(base)
        base, indices = strip(inner), outer + indices
    if not indices or any(index.data != "index_one" for index in indices):
        return None
    variable = scopes.variable(base) if base.data == "variable" else None
    size = 1 if is_softmax(base, scopes) else variable.rank if variable is not None and variable.plain != "int" else 0
    if len(indices) != size:
        return None
    *places, category = (nodes(index)[0] for index in indices)
    return base, tuple(places), category, is_log


def is_softmax(node: Node, scopes: Scopes, is_log: bool | None = None) -> bool:
    """Return whether an expression is ``softmax(...)`` (``is_log``), ``log_softmax(...)`` (not), or either (None)."""
    names = {True: ("softmax",), False: ("log_softmax",), None: ("softmax", "log_softmax")}[is_log]
    return any(_is_call(strip(node), scopes, name) for name in names)


def _is_call(node: Node, scopes: Scopes, name: str) -> bool:
    is_it = node.data == "call" and name_of(node) == name and len(nodes(node)) == 1
    return is_it and name not in scopes.functions
