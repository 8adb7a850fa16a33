"""The part of a program that the law of one variable needs, as Stan code over simulated values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from bread.backends.stan.language.dataflow import Dataflow, base_variable
from bread.backends.stan.language.rendering import Renderer
from bread.backends.stan.language.scopes import Variable, name_position
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, name_of, nodes
from bread.backends.stan.simulator.draw import Draw, Mode
from bread.backends.stan.simulator.drawer import Drawer
from bread.backends.stan.simulator.dropped import headers

_BLOCKS = ("transformed_data_block", "transformed_parameters_block", "model_block")


class Slicer:
    """Cuts slices out of one program.

    Parameters
    ----------
    recomputed : collection of Variable
        Transformed parameters, and transformed data that depend on observed variables: computed anew from simulated
        values.
    draws : iterable of Draw
        All draws of the program.
    """

    def __init__(
        self,
        flow: Dataflow,
        source: Source,
        blocks: dict[str, Node],
        render: Renderer,
        drawer: Drawer,
        recomputed: Collection[Variable],
        draws: Iterable[Draw],
    ) -> None:
        self._flow = flow
        self._source = source
        self._blocks = blocks
        self._render = render
        self._drawer = drawer
        self._recomputed = frozenset(recomputed)
        self._draws: dict[int, list[Draw]] = {}
        for draw in draws:
            self._draws.setdefault(id(draw.statement), []).append(draw)
        self._control_reads: dict[int, frozenset[Variable]] = {}

    def reached(self, variables: Iterable[Variable]) -> frozenset[Variable]:
        """Return what ``variables`` depend on, going only through values that are computed anew."""
        seen = set(variables)
        stack = list(seen)
        while stack:
            variable = stack.pop()
            if not self._is_computed(variable):
                continue
            for definition in self._flow.definitions.get(variable, ()):
                new = definition.reads - seen
                seen |= new
                stack += new
            sizes = self._flow.reads(*variable.dimensions) - seen
            seen |= sizes
            stack += sizes
        return frozenset(seen)

    def _is_computed(self, variable: Variable) -> bool:
        if variable in self._recomputed:
            return True
        return variable.kind in ("local", "loop") and variable.block != "functions_block"

    def reads(self, draw: Draw, mode: Mode = "draw") -> frozenset[Variable]:
        """Return what the law of a draw, and the conditions and loops around it, read directly."""
        read = draw.places() if mode == "count" else draw.expressions()
        return self._flow.reads(*read, *headers(draw.controls))

    def code(self, draws: Collection[Draw], mode: Mode) -> str:
        """Return the code that makes ``draws``, in the order of the program."""
        needed = {v for v in self.reached(v for draw in draws for v in self.reads(draw, mode)) if self._is_computed(v)}
        wanted = {id(draw) for draw in draws}
        pieces = []
        for rule in _BLOCKS:
            if rule in self._blocks:
                pieces += [self._statement(node, needed, wanted, mode) for node in nodes(self._blocks[rule])]
        return " ".join(piece for piece in pieces if piece)

    def _statement(self, node: Node, needed: set[Variable], wanted: set[int], mode: Mode) -> str:
        draws = [draw for draw in self._draws.get(id(node), ()) if id(draw) in wanted]
        if draws:
            return " ".join(self._draw(draw, mode) for draw in draws)
        if node.data == "declaration":
            pieces = []
            for declarator in nodes(node)[1:]:
                variable = self._flow.scopes.declared[name_position(declarator)]
                if variable in needed:
                    pieces.append(self._declare(variable, declarator, nodes(node)[0]))
            return " ".join(pieces)
        if node.data == "assignment":
            left = nodes(node)[0]
            targets = nodes(left) if left.data == "tuple" else [left]
            found = {self._flow.scopes.variable(base_variable(target)) for target in targets}
            return self._render(node) if not found.isdisjoint(needed) else ""
        if node.data in ("block", "profile"):
            inner = " ".join(filter(None, (self._statement(child, needed, wanted, mode) for child in nodes(node))))
            return f"{{ {inner} }}" if inner else ""
        if node.data in ("if_", "while_", "for_range", "for_each"):
            return self._control(node, needed, wanted, mode)
        return ""

    def _draw(self, draw: Draw, mode: Mode) -> str:
        if mode == "count":
            return self._drawer.count(draw, self._render)
        if draw.form is not None:
            return draw.form.code(draw, self._drawer, self._render, mode)
        return self._drawer.code(draw, self._render, mode)

    def _declare(self, variable: Variable, declarator: Node, declared: Node) -> str:
        values = nodes(declarator)
        value = f" = {self._render(values[0])}" if values else ""
        kind = self._render.type_of(variable)
        if variable.type == "tuple":  # as it is written, without bounds
            kind = re.sub(r"<[^<>]*>", "", self._render(declared))
        return f"{kind} {self._render.name(variable)}{value};"

    def _control(self, node: Node, needed: set[Variable], wanted: set[int], mode: Mode) -> str:
        children = nodes(node)
        if node.data == "if_":
            condition, *bodies = children
            inner = [self._statement(body, needed, wanted, mode) for body in bodies]
            if not any(inner):
                return ""
            code = f"if ({self._render(condition)}) {{ {inner[0]} }}"
            return code + (f" else {{ {inner[1]} }}" if len(inner) > 1 and inner[1] else "")
        *header, body = children
        inside = self._statement(body, needed, wanted, mode)
        if not inside:
            return ""
        if node.data == "while_":
            return f"while ({self._render(header[0])}) {{ {inside} }}"
        over = ":".join(f"({self._render(part)})" for part in header)
        return f"for ({name_of(node)} in {over}) {{ {inside} }}"

    # the order in which elements of one variable are drawn

    def draws_in_order(self, draws: Collection[Draw], variable: Variable) -> bool:
        """Return whether every value that a draw reads from its own variable is read inside the same outermost loop."""
        return all(self._read_inside(draw, variable) for draw in draws)

    def _read_inside(self, draw: Draw, variable: Variable) -> bool:
        seen = set(self.reads(draw))
        stack = [v for v in seen if v is not variable]
        outermost = draw.controls[0] if draw.controls else None
        while stack:
            current = stack.pop()
            if not self._is_computed(current):
                continue
            for definition in self._flow.definitions.get(current, ()):
                if variable in definition.reads and (
                    outermost is None or not definition.controls or definition.controls[0] is not outermost
                ):
                    return False
                new = definition.reads - seen - {variable}
                seen |= new
                stack += new
        return True
