"""Parsing Stan programs: a lark grammar of our own, with exact offsets and lines.

stanc's own dumps (MIR, AST) carry no locations, so that they cannot be mapped back to the user's text. A program is
parsed after stanc accepted it; the grammar therefore may accept more than Stan does.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources

from lark import Lark, Token, Tree, UnexpectedInput

from bread.backends.stan.language.kept_parser import read_parser
from bread.backends.stan.language.source import Source
from bread.errors import UnsupportedModelError

Node = Tree[Token]

BLOCKS = (
    "functions_block",
    "data_block",
    "transformed_data_block",
    "parameters_block",
    "transformed_parameters_block",
    "model_block",
    "generated_quantities_block",
)
SIZES = ("size", "num_elements", "rows", "cols")
MOST_DEPTH = 250  # of the tree: a quarter of the calls that Python allows inside each other
DENSITY_SUFFIXES = ("_lpdf", "_lpmf", "_lupdf", "_lupmf")


@cache
def _parser() -> Lark:
    grammar = resources.files("bread.backends.stan.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    return read_parser(grammar)


def parse(source: Source) -> dict[str, Node]:
    """Parse a program that stanc accepts.

    Returns
    -------
    dict of str to Node
        The blocks that the program has, by their rule names (`BLOCKS`), in program order.

    Raises
    ------
    UnsupportedModelError
        The text does not parse, or nests too deeply: the place and the line.
    """
    try:
        tree = _parser().parse(source.text)
    except UnexpectedInput as error:
        line = getattr(error, "line", 1)
        place = source.origin(line if isinstance(line, int) else 1)
        found = source.text.split("\n")[max(0, (line if isinstance(line, int) else 1) - 1)].strip()
        raise UnsupportedModelError(
            f"{place}: bread cannot read this line of the Stan program: {found!r}. "
            "Check it with stanc; if stanc accepts it, please report the line."
        ) from None
    blocks = nodes(tree)
    for block in blocks:
        _refuse_deep(block, source)
    return {str(block.data): block for block in blocks}


def _refuse_deep(block: Node, source: Source) -> None:
    """Refuse a block that nests more deeply than the analysis, which recurses into expressions, can follow."""
    level = [block]
    for _ in range(MOST_DEPTH):
        deepest, level = level, [child for node in level for child in nodes(node)]
        if not level:
            return
    raise UnsupportedModelError(
        f"{source.origin(line(deepest[0]))}: the program nests more than {MOST_DEPTH} levels deep here (each operator "
        "of a sum and each parenthesis counts), which bread does not follow. Use intermediate variables."
    )


def nodes(node: Node) -> list[Node]:
    """Return the children of ``node`` that are nodes, without tokens."""
    return [child for child in node.children if isinstance(child, Tree)]


def name_token(node: Node) -> Token:
    """Return the first NAME of ``node``: what a variable, call, density, tilde, loop or declarator is called."""
    return next(child for child in node.children if isinstance(child, Token) and child.type == "NAME")


def name_of(node: Node) -> str:
    """Return the name that ``node`` carries."""
    return str(name_token(node))


def token(node: Node, *types: str) -> str | None:
    """Return the first token of one of ``types`` among the children, or None."""
    for child in node.children:
        if isinstance(child, Token) and child.type in types:
            return str(child)
    return None


def start(node: Node) -> int:
    """Offset of the first character."""
    return int(node.meta.start_pos)


def end(node: Node) -> int:
    """Offset just after the last character."""
    return int(node.meta.end_pos)


def source_text(source: Source, node: Node) -> str:
    """Return the text of a node on one line, without comments."""
    return " ".join(source.code[start(node) : end(node)].split())


def line(node: Node) -> int:
    """Line of the first character, from 1."""
    return int(node.meta.line)


def walk(node: Node) -> Iterator[Node]:
    """Yield ``node`` and everything below it, in the order of the text."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack += reversed(nodes(current))


def walk_values(node: Node) -> Iterator[Node]:
    """Yield what `walk` does, but for variables of which only the size is asked: ``rows(x)``, ``size(x)``."""
    stack = [node]
    while stack:
        current = stack.pop()
        if not is_size(current):
            yield current
            stack += reversed(nodes(current))


def is_size(node: Node) -> bool:
    """Return whether an expression is the size of a variable."""
    return (
        node.data == "call" and name_of(node) in SIZES and len(nodes(node)) == 1 and nodes(node)[0].data == "variable"
    )


def strip(node: Node) -> Node:
    """Take off parentheses around an expression."""
    while node.data == "parenthesised":
        node = nodes(node)[0]
    return node


def is_density(node: Node) -> bool:
    """Return whether an expression is a call of a log density or mass: ``normal_lpdf(y | mu, sigma)``."""
    return node.data in ("density", "call") and name_of(node).endswith(DENSITY_SUFFIXES)


def distribution_of(node: Node) -> str:
    """Return the distribution that a tilde statement or a density call names: "normal"."""
    name = name_of(node)
    if node.data != "tilde":
        for suffix in DENSITY_SUFFIXES:
            name = name.removesuffix(suffix)
    return name


def terms(node: Node, sign: int = 1) -> list[tuple[int, Node]]:
    """Split an expression into the terms of its outermost sum: (+1 or -1, term)."""
    node = strip(node)
    if node.data == "binary":
        operator = token(node, "SIGN")
        if operator is not None:
            left, right = nodes(node)
            return terms(left, sign) + terms(right, sign if operator == "+" else -sign)
    if node.data == "unary" and token(node, "SIGN") is not None:
        return terms(nodes(node)[0], sign if token(node, "SIGN") == "+" else -sign)
    return [(sign, node)]


def number(node: Node | None) -> float | None:
    """Return the value of a literal number, else None."""
    if node is None:
        return None
    node = strip(node)
    if node.data in ("integer", "real"):
        return float(str(node.children[0]).replace("_", ""))
    return None


def is_number(node: Node | None, value: float) -> bool:
    """Return whether ``node`` is the literal ``value``."""
    return number(node) == value
