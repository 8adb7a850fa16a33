"""Which declaration each name of a program means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from lark import Token

from bread.backends.stan.language.syntax import BLOCKS, Node, line, name_of, name_token, nodes, token

Kind = Literal[
    "data", "transformed data", "parameter", "transformed parameter", "generated", "local", "loop", "argument"
]

_TOP_LEVEL: dict[str, Kind] = {
    "data_block": "data",
    "transformed_data_block": "transformed data",
    "parameters_block": "parameter",
    "transformed_parameters_block": "transformed parameter",
    "model_block": "local",
    "generated_quantities_block": "generated",
}
# Dimensions that a type has beside those of its arrays, and the type without its constraint.
_PLAIN: dict[str, tuple[str, int]] = {
    "int": ("int", 0),
    "real": ("real", 0),
    "complex": ("complex", 0),
    "vector": ("vector", 1),
    "simplex": ("vector", 1),
    "unit_vector": ("vector", 1),
    "ordered": ("vector", 1),
    "positive_ordered": ("vector", 1),
    "sum_to_zero_vector": ("vector", 1),
    "row_vector": ("row_vector", 1),
    "matrix": ("matrix", 2),
    "sum_to_zero_matrix": ("matrix", 2),
    "column_stochastic_matrix": ("matrix", 2),
    "row_stochastic_matrix": ("matrix", 2),
    "corr_matrix": ("matrix", 2),
    "cov_matrix": ("matrix", 2),
    "cholesky_factor_corr": ("matrix", 2),
    "cholesky_factor_cov": ("matrix", 2),
    "complex_vector": ("complex_vector", 1),
    "complex_row_vector": ("complex_row_vector", 1),
    "complex_matrix": ("complex_matrix", 2),
}


@dataclass(frozen=True, eq=False)
class Variable:
    """A declared name: compared by identity, since inner scopes may use a name again.

    Attributes
    ----------
    name : str
    kind : str
        Where it is declared.
    type : str
        The declared element type, such as "simplex"; "tuple" for tuples; "" where unknown (some loop variables).
    array_sizes, sizes : tuple of Node
        Sizes of the arrays around the element, and of the element itself, as written.
    bounds : dict of str to Node
        ``lower``, ``upper``, ``offset``, ``multiplier`` as written.
    node : Node
        The declaration.
    """

    name: str
    kind: Kind
    type: str
    array_sizes: tuple[Node, ...]
    sizes: tuple[Node, ...]
    bounds: dict[str, Node]
    node: Node
    block: str

    @property
    def line(self) -> int:
        """Line of the declaration."""
        return line(self.node)

    @property
    def plain(self) -> str:
        """The element type without its constraint: "vector" for a simplex."""
        return _PLAIN.get(self.type, (self.type, 0))[0]

    @property
    def rank(self) -> int:
        """Number of dimensions, arrays and element together."""
        return len(self.array_sizes) + _PLAIN.get(self.type, ("", 0))[1]

    @property
    def dimensions(self) -> tuple[Node, ...]:
        """Sizes of all dimensions; a square matrix has its size twice."""
        inner = self.sizes
        if _PLAIN.get(self.type, ("", 0))[1] == 2 and len(inner) == 1:
            inner = (inner[0], inner[0])
        return (*self.array_sizes, *inner)

    def __repr__(self) -> str:
        return f"{self.kind} {self.name} (line {self.line})"


@dataclass
class Scopes:
    """Every declaration and use of a program.

    Attributes
    ----------
    variables : list of Variable
        In the order of the text.
    uses : dict of int to Variable
        Offset of a name in an expression -> what it means.
    functions : dict of str to list of Node
        The user's functions; a name may be overloaded.
    """

    variables: list[Variable] = field(default_factory=list)
    uses: dict[int, Variable] = field(default_factory=dict)
    functions: dict[str, list[Node]] = field(default_factory=dict)
    declared: dict[int, Variable] = field(default_factory=dict)

    def of_kind(self, *kinds: Kind) -> list[Variable]:
        """Return variables of these kinds, in the order of the text."""
        return [variable for variable in self.variables if variable.kind in kinds]

    def named(self, name: str, *kinds: Kind) -> Variable | None:
        """Return the top-level variable of that name."""
        return next((v for v in self.variables if v.name == name and (not kinds or v.kind in kinds)), None)

    def variable(self, node: Node) -> Variable | None:
        """Return what a ``variable`` node means; None for names such as ``target`` on the left of ``+=``."""
        return self.uses.get(name_position(node))


def name_position(node: Node) -> int:
    """Offset of the name that ``node`` carries."""
    return int(name_token(node).start_pos or 0)


def resolve(blocks: dict[str, Node]) -> Scopes:
    """Find the declaration of every name in every block."""
    scopes = Scopes()
    top: dict[str, Variable] = {}
    for rule in BLOCKS:
        if rule not in blocks:
            continue
        if rule == "functions_block":
            for function in nodes(blocks[rule]):
                scopes.functions.setdefault(name_of(function), []).append(function)
                _resolve_function(scopes, function)
            continue
        # names of the model block are local to it, those of the other blocks are seen by the blocks below
        scope = dict(top) if rule == "model_block" else top
        for statement in nodes(blocks[rule]):
            _resolve(scopes, statement, scope, _TOP_LEVEL[rule], rule)
    return scopes


def _resolve_function(scopes: Scopes, function: Node) -> None:
    scope: dict[str, Variable] = {}
    for child in nodes(function):
        if child.data == "argument":
            kind_node = nodes(child)[-1]
            type_name = next(
                (
                    str(t)
                    for n in [kind_node, *nodes(kind_node)]
                    for t in n.children
                    if isinstance(t, Token) and t.type == "TYPE"
                ),
                "",
            )
            variable = Variable(name_of(child), "argument", type_name, (), (), {}, child, "functions_block")
            _declare(scopes, variable, scope, child)
        elif child.data == "block":
            _resolve(scopes, child, scope, "local", "functions_block")


def _declare(scopes: Scopes, variable: Variable, scope: dict[str, Variable], node: Node) -> None:
    scope[variable.name] = variable
    scopes.variables.append(variable)
    scopes.declared[name_position(node)] = variable


def _resolve(scopes: Scopes, node: Node, scope: dict[str, Variable], kind: Kind, block: str) -> None:
    """Resolve a statement or an expression; declarations enter ``scope``."""
    data = node.data
    if data == "declaration":
        declared_type, *declarators = nodes(node)
        _resolve(scopes, declared_type, scope, "local", block)
        for declarator in declarators:
            for value in nodes(declarator):
                _resolve(scopes, value, scope, "local", block)
            _declare(scopes, _variable(declared_type, declarator, kind, block), scope, declarator)
    elif data in ("block", "profile"):
        inner = dict(scope)
        for child in nodes(node):
            _resolve(scopes, child, inner, "local", block)
    elif data in ("for_range", "for_each"):
        *header, body = nodes(node)
        for child in header:
            _resolve(scopes, child, scope, "local", block)
        inner = dict(scope)
        type_name = "int" if data == "for_range" else ""
        _declare(scopes, Variable(name_of(node), "loop", type_name, (), (), {}, node, block), inner, node)
        _resolve(scopes, body, inner, "local", block)
    elif data == "variable":
        found = scope.get(name_of(node))
        if found is not None:
            scopes.uses[name_position(node)] = found
    else:
        for child in nodes(node):
            inner = dict(scope) if data in ("if_", "while_") else scope
            _resolve(scopes, child, inner, "local", block)


def _variable(declared_type: Node, declarator: Node, kind: Kind, block: str) -> Variable:
    array_sizes: list[Node] = []
    while declared_type.data == "array_type":
        *own, declared_type = nodes(declared_type)
        array_sizes += own
    if declared_type.data == "tuple_type":
        return Variable(name_of(declarator), kind, "tuple", tuple(array_sizes), (), {}, declarator, block)
    bounds: dict[str, Node] = {}
    sizes: tuple[Node, ...] = ()
    for child in nodes(declared_type):
        if child.data == "constraint":
            bounds = {name_of(bound): nodes(bound)[0] for bound in nodes(child)}
        elif child.data == "sizes":
            sizes = tuple(nodes(child))
    return Variable(
        name_of(declarator),
        kind,
        token(declared_type, "TYPE") or "",
        tuple(array_sizes),
        sizes,
        bounds,
        declarator,
        block,
    )
