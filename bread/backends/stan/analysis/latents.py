"""Standardised effects: what a scale multiplies, the z of a non-centred hierarchy or of a Gaussian process.

They are drawn anew while hyperparameters are held, as the effects of a centred hierarchy are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bread.backends.stan.language.dataflow import Dataflow, base_variable
from bread.backends.stan.language.scopes import Scopes, Variable, name_position
from bread.backends.stan.language.syntax import (
    Node,
    distribution_of,
    is_density,
    is_number,
    name_of,
    nodes,
    strip,
    token,
    walk,
)

CENTRED = {"std_normal": None, "normal": 0, "student_t": 1, "double_exponential": 0}  # where the location stands
RESHAPES = ("to_vector", "to_row_vector", "to_matrix", "to_array_1d", "to_array_2d")
PRODUCTS = (
    "dot_product", "rows_dot_product", "columns_dot_product", "diag_pre_multiply", "diag_post_multiply",
    "multiply_lower_tri_self_transpose",
)  # fmt: skip
_BLOCKS = ("transformed_parameters_block", "model_block")
_FOLLOWED = 4  # calls inside each other


def latents(flow: Dataflow, blocks: Mapping[str, Node]) -> frozenset[str]:
    """Return the parameters that are standardised effects.

    A container whose own law is normal, Student t or Laplace around the literal 0 with constants for the rest, and
    whose every other use is a factor of a product, elementwise or of matrices, with something that depends on other
    parameters; indices, transposes, constant factors and the user's functions are looked through.
    """
    tree = _Parents([blocks[name] for name in _BLOCKS if name in blocks])
    found = set()
    for variable in flow.scopes.of_kind("parameter"):
        if variable.rank > 0 and not variable.bounds and _is_latent(variable, flow, tree):
            found.add(variable.name)
    return frozenset(found)


class _Parents:
    """Nodes of some trees, each with the node that it stands in."""

    def __init__(self, roots: list[Node]) -> None:
        self.roots = roots
        self._parents = {id(child): node for root in roots for node in walk(root) for child in nodes(node)}

    def of(self, node: Node) -> Node | None:
        return self._parents.get(id(node))

    def uses(self, variable: Variable, scopes: Scopes) -> Iterator[Node]:
        for root in self.roots:
            for node in walk(root):
                if node.data == "variable" and scopes.variable(node) is variable:
                    yield node


def _is_latent(variable: Variable, flow: Dataflow, tree: _Parents) -> bool:
    laws, others = 0, 0
    for use in tree.uses(variable, flow.scopes):
        statement = _law(use, tree)
        if statement is not None:
            if not _is_centred(statement, flow):
                return False
            laws += 1
        elif _is_factor(use, tree, _Program(flow, variable)):
            others += 1
        else:
            return False
    return laws == 1 and others > 0


def _law(use: Node, tree: _Parents) -> Node | None:
    """Return the tilde statement or density of which this use is the variate."""
    node: Node | None = use
    while node is not None:
        above = tree.of(node)
        if above is not None and (above.data == "tilde" or is_density(above)) and nodes(above)[0] is node:
            inner = strip(node)
            if inner.data == "call" and name_of(inner) in RESHAPES:
                inner = nodes(inner)[0]
            return above if base_variable(inner) is use else None
        node = above
    return None


def _is_centred(statement: Node, flow: Dataflow) -> bool:
    name = distribution_of(statement)
    arguments = [node for node in nodes(statement)[1:] if node.data != "truncation"]
    if name not in CENTRED or len(arguments) != len(nodes(statement)) - 1:
        return False
    place = CENTRED[name]
    is_zero = place is None or (place < len(arguments) and is_number(arguments[place], 0.0))
    return is_zero and not any(v.kind == "parameter" for v in flow.depends(*arguments))


class _Program:
    """Whether a factor varies with parameters other than the variable."""

    def __init__(self, flow: Dataflow, variable: Variable) -> None:
        self.flow = flow
        self._variable = variable

    def varies(self, node: Node) -> bool:
        return any(v.kind == "parameter" and v is not self._variable for v in self.flow.depends(node))


class _Function(_Program):
    """The same inside a function: whatever is not constant in this call counts, local variables too."""

    def __init__(self, flow: Dataflow, variable: Variable, constant: frozenset[Variable]) -> None:
        super().__init__(flow, variable)
        self._constant = constant | {variable}

    def varies(self, node: Node) -> bool:
        return bool(self.flow.reads(node) - self._constant)


def _is_factor(use: Node, tree: _Parents, program: _Program, depth: int = 0) -> bool:
    """Return whether a use is a factor of a product whose other factor varies."""
    node = use
    while True:
        above = tree.of(node)
        if above is None:
            return False
        is_base = nodes(above)[0] is node
        if above.data in ("parenthesised", "transpose", "unary") or (above.data == "indexed" and is_base):
            node = above
        elif above.data == "binary" and token(above, "TIMES") in ("*", ".*", "/", "./"):
            left, right = nodes(above)
            if node is right and token(above, "TIMES") in ("/", "./"):
                return False
            if program.varies(right if node is left else left):
                return True
            node = above
        elif above.data == "call":
            others = [argument for argument in nodes(above) if argument is not node]
            if name_of(above) in RESHAPES and is_base:
                node = above
            elif name_of(above) in PRODUCTS:
                if any(program.varies(argument) for argument in others):
                    return True
                node = above
            else:
                return depth < _FOLLOWED and _is_factor_inside(above, node, program, depth)
        else:
            return False


def _is_factor_inside(call: Node, argument: Node, program: _Program, depth: int) -> bool:
    """Return whether a function of the user's takes an argument only as a factor, beside another that varies."""
    scopes = program.flow.scopes
    functions = scopes.functions.get(name_of(call), [])
    if len(functions) != 1:
        return False
    body = [node for node in nodes(functions[0]) if node.data == "block"]
    own = [scopes.declared[name_position(node)] for node in nodes(functions[0]) if node.data == "argument"]
    variable = next(v for v, node in zip(own, nodes(call), strict=True) if node is argument)
    constant = frozenset(v for v, node in zip(own, nodes(call), strict=True) if not program.varies(node))
    tree, inside = _Parents(body), _Function(program.flow, variable, constant)
    uses = list(tree.uses(variable, scopes))
    return bool(uses) and all(_is_factor(use, tree, inside, depth + 1) for use in uses)
