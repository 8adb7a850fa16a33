"""Calls of the program's own functions as terms of the log density, replaced by the statements of the functions.

``target += reduce_sum(partial_sum_lpdf, y, grainsize, mu);`` adds what the function returns for the whole of ``y``;
``y[n] ~ own(mu);`` adds what ``own_lpdf`` returns. A ``return`` of the function becomes ``target +=``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.scopes import Variable, name_position
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import (
    DENSITY_SUFFIXES,
    Node,
    distribution_of,
    end,
    is_density,
    name_of,
    nodes,
    start,
    strip,
    terms,
    token,
    walk,
)
from bread.backends.stan.split.rewriting import Edit, blank

_SLICED = ("reduce_sum", "reduce_sum_static")
_PLAIN = ("variable", "integer", "real")


class _NotInlinedError(Exception):
    """A function has no form that can be put in the place of its call."""


def inline_edits(flow: Dataflow, source: Source, kept: Collection[str] = ()) -> Iterator[Edit]:
    """Yield an edit for each statement that adds the value of one of the program's own functions but those ``kept``."""
    for i, contribution in enumerate(flow.contributions):
        node = contribution.node
        try:
            code = _statement(flow, source, node, f"bread_r{i}_", kept)
        except _NotInlinedError:
            continue
        if code:
            yield Edit(start(node), end(node), code + blank(source.text[start(node) : end(node)]))


def _statement(flow: Dataflow, source: Source, node: Node, prefix: str, kept: Collection[str]) -> str:
    """Return what a statement is replaced by; "" where it calls no function that is put in its place."""
    if node.data == "tilde":
        if any(child.data == "truncation" for child in nodes(node)):
            return ""
        name = _own_density(flow, distribution_of(node))
        return _body(flow, source, name, list(nodes(node)), prefix) if name and name not in kept else ""
    if node.data != "assignment" or token(node, "ASSIGN") != "+=":
        return ""
    added = terms(nodes(node)[1])
    if len(added) != 1 or added[0][0] < 0 or added[0][1].data not in ("call", "density"):
        return ""
    call = added[0][1]
    name = name_of(call)
    if name in _SLICED:
        return _sliced(flow, source, call, prefix)
    name = _own_density(flow, distribution_of(call)) if is_density(call) else _adding(flow, call)
    return _body(flow, source, name, list(nodes(call)), prefix) if name and name not in kept else ""


def _own_density(flow: Dataflow, name: str) -> str:
    """Return the program's own density of that name; "" for none, and for a mass function of one whole number.

    Those are drawn by adding up masses.
    """
    functions = flow.scopes.functions
    if f"{name}_lpdf" in functions:
        return f"{name}_lpdf"
    firsts = [next((c for c in nodes(one) if c.data == "argument"), None) for one in functions.get(f"{name}_lpmf", ())]
    types = ["".join(str(leaf) for leaf in nodes(one)[-1].scan_values(bool)) for one in firsts if one is not None]
    return f"{name}_lpmf" if types and "int" not in types else ""


def _adding(flow: Dataflow, call: Node) -> str:
    """Return the name of a function of the program's that returns a log density under a name of its own."""
    name = name_of(call)
    found = flow.scopes.functions.get(name, ()) if call.data == "call" else ()
    is_sum = any(is_density(inner) for one in found for inner in walk(one))
    return name if is_sum and not name.endswith(("_lp", "_rng", "_jacobian", *DENSITY_SUFFIXES)) else ""


def _sliced(flow: Dataflow, source: Source, call: Node, prefix: str) -> str:
    function, sliced, _, *shared = nodes(call)
    variable = flow.scopes.variable(strip(sliced)) if strip(sliced).data == "variable" else None
    if function.data != "variable" or variable is None or not variable.rank:
        return ""
    name = name_of(function)
    for suffix in ("_lupdf", "_lupmf"):
        name = name.removesuffix(suffix) + ("_lp" + suffix[-2:] if name.endswith(suffix) else "")
    return _body(flow, source, name, [sliced, variable, *shared], prefix)


def _body(flow: Dataflow, source: Source, name: str, given: Sequence[Node | Variable], prefix: str) -> str:
    """Return the statements of a function in a block, with arguments in place; a Variable stands for (1, its size)."""
    texts: list[str] = []
    for one in given:
        if isinstance(one, Variable):
            size = one.dimensions[0]
            texts += ["1", f"({source.code[start(size) : end(size)]})"]
        else:
            text = source.code[start(one) : end(one)]
            texts.append(text if strip(one) is one and one.data in (*_PLAIN, "indexed", "call") else f"({text})")
    fitting = [one for one in flow.scopes.functions.get(name, ()) if _fits(one, len(texts))]
    if len(fitting) != 1:
        raise _NotInlinedError
    *_, block = nodes(fitting[0])
    arguments = [child for child in nodes(fitting[0]) if child.data == "argument"]
    writer = _Writer(
        flow, source, prefix, {name_position(one): text for one, text in zip(arguments, texts, strict=True)}
    )
    return f"{{ {writer.tail(nodes(block))} }}"


def _fits(function: Node, n: int) -> bool:
    children = nodes(function)
    return children[-1].data == "block" and sum(child.data == "argument" for child in children) == n


class _Writer:
    """Writes the statements of one function under other names."""

    def __init__(self, flow: Dataflow, source: Source, prefix: str, given: Mapping[int, str]) -> None:
        self._flow = flow
        self._code = source.code
        self._prefix = prefix
        # by the offset of their declaration
        self._texts = dict(given)

    def tail(self, statements: Sequence[Node]) -> str:
        """Return statements of which the last returns: what it returns is added to the log density."""
        pieces = []
        for i, statement in enumerate(statements):
            rest = list(statements[i + 1 :])
            if not any(inner.data == "return_" for inner in walk(statement)):
                pieces.append(self._plain(statement))
                continue
            if statement.data == "return_" and nodes(statement):
                return " ".join([*pieces, f"target += {self.text(nodes(statement)[0])};"])
            if statement.data == "block":
                return " ".join([*pieces, self.tail([*nodes(statement), *rest])])
            if statement.data == "if_":
                condition, *bodies = nodes(statement)
                first = self.tail([bodies[0], *rest] if not _returns(bodies[0]) else [bodies[0]])
                other = self.tail([*bodies[1:], *rest] if not bodies[1:] or not _returns(bodies[1]) else bodies[1:])
                return " ".join([*pieces, f"if ({self.text(condition)}) {{ {first} }} else {{ {other} }}"])
            raise _NotInlinedError  # from inside of a loop
        raise _NotInlinedError

    def _plain(self, statement: Node) -> str:
        """Return a statement without a return; integers that are declared once stand for their values."""
        if statement.data == "declaration" and token(nodes(statement)[0], "TYPE") == "int":
            declarators = nodes(statement)[1:]
            given = [nodes(one) for one in declarators]
            if all(given) and not any(self._is_changed(one) for one in declarators):
                for one, values in zip(declarators, given, strict=True):
                    self._texts[name_position(one)] = f"({self.text(values[0])})"
                return ""
        if statement.data in ("for_range", "if_", "block") and any(
            inner.data == "declaration" and token(nodes(inner)[0], "TYPE") == "int" for inner in walk(statement)
        ):
            return self._nested(statement)
        return self.text(statement)

    def _nested(self, statement: Node) -> str:
        if statement.data == "block":
            return f"{{ {' '.join(self._plain(one) for one in nodes(statement))} }}"
        if statement.data == "for_range":
            low, high, body = nodes(statement)
            name = f"{self._prefix}{name_of(statement)}"
            return f"for ({name} in {self.text(low)}:{self.text(high)}) {self._plain(body)}"
        condition, *bodies = nodes(statement)
        code = f"if ({self.text(condition)}) {{ {self._plain(bodies[0])} }}"
        return code + (f" else {{ {self._plain(bodies[1])} }}" if len(bodies) > 1 else "")

    def _is_changed(self, declarator: Node) -> bool:
        """Return whether a variable is assigned again, anywhere in its function."""
        at = name_position(declarator)
        variable = self._flow.scopes.declared.get(at)
        uses = [place for place, one in self._flow.scopes.uses.items() if one is variable]
        return any(self._code[place + len(name_of(declarator)) :].lstrip()[:2] in _ASSIGNED or
                   (self._code[place + len(name_of(declarator)) :].lstrip()[:1] == "=" and
                   self._code[place + len(name_of(declarator)) :].lstrip()[:2] != "==") for place in uses)  # fmt: skip

    def text(self, node: Node) -> str:
        """Return a node under the new names, on one line."""
        changes: dict[int, tuple[int, str]] = {}
        for inner in walk(node):
            if inner.data == "variable":
                variable = self._flow.scopes.variable(inner)
                if variable is None or variable.kind not in ("argument", "local", "loop"):
                    continue
                at, declared = name_position(inner), _declared_at(variable)
                changes[at] = len(name_of(inner)), self._texts.get(declared, self._prefix + variable.name)
            elif inner.data in ("declarator", "for_range", "for_each"):
                changes[name_position(inner)] = len(name_of(inner)), self._prefix + name_of(inner)
            elif inner.data in ("call", "density") and name_of(inner).endswith(("_lp", "_jacobian")):
                raise _NotInlinedError
        pieces, position = [], start(node)
        for at, (length, text) in sorted(changes.items()):
            pieces += [self._code[position:at], text]
            position = at + length
        return " ".join("".join([*pieces, self._code[position : end(node)]]).split())


_ASSIGNED = ("+=", "-=", "*=", "/=")


def _declared_at(variable: Variable) -> int:
    return name_position(variable.node)


def _returns(statement: Node) -> bool:
    """Return whether a statement always returns."""
    if statement.data == "return_":
        return True
    if statement.data == "block":
        return any(_returns(one) for one in nodes(statement))
    if statement.data == "if_":
        bodies = nodes(statement)[1:]
        return len(bodies) == 2 and all(_returns(one) for one in bodies)
    return False
