"""Which observation a piece of a program reads: the index of the outcome's first dimension, also through variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bread.backends.stan.language.dataflow import Dataflow, Definition, loop_variable
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, end, is_size, nodes, source_text, start, strip
from bread.backends.stan.language.variates import rank, read_variate

_HEADED = ("for_range", "for_each", "while_", "if_", "block", "profile")


class ObservationReads:
    """Reads of the one outcome of a program.

    Attributes
    ----------
    carriers : set of Variable
        The outcome, and containers whose element n is computed from observation n alone: ``log_y = log(y)``,
        ``log_lik[n] = normal_lpdf(y[n] | ..)``.
    """

    def __init__(self, flow: Dataflow, source: Source, outcome: Variable) -> None:
        self._flow, self._source, self._outcome = flow, source, outcome
        self.carriers: set[Variable] = {outcome}
        for variable in flow.scopes.of_kind("transformed data", "transformed parameter", "local"):
            if variable.rank and outcome in flow.closure([variable]) and self._is_carrier(variable):
                self.carriers.add(variable)

    def depends(self, *expressions: Node | None) -> bool:
        """Return whether values of expressions depend on the outcome."""
        return self._outcome in self._flow.depends(*(one for one in expressions if one is not None))

    def text(self, node: Node) -> str:
        """Return an expression on one line."""
        return source_text(self._source, node)

    def common_index(self, expressions: Iterable[Node], controls: Sequence[Node]) -> str | None:
        """Return the index of the one observation that expressions under these statements read, or None."""
        loops = [loop for loop in controls if loop.data in ("for_range", "for_each")]
        own = {loop_variable(self._flow.scopes, loop) for loop in loops}
        everything = [*expressions, *headers(controls)]
        found = {self._index_text(index, own) for index in self._indices(everything, loops)}
        return found.pop() if len(found) == 1 else None

    def outside(self, expressions: Iterable[Node], controls: Sequence[Node]) -> Variable | None:
        """Return a local variable that outcomes enter and that is declared outside the loops, or None."""
        loops = [loop for loop in controls if loop.data in ("for_range", "for_each")]
        for variable in self._flow.reads(*expressions) - self.carriers:
            is_local = variable.kind == "local" and self._outcome in self._flow.closure([variable])
            if loops and is_local and not _is_declared_in(variable, loops):
                return variable
        return None

    def _is_carrier(self, variable: Variable) -> bool:
        """Return whether element n of a container depends on observation n alone."""
        definitions = self._flow.definitions.get(variable, [])
        if len(definitions) == 1 and definitions[0].whole and not definitions[0].controls:
            return self._is_copy(definitions[0])
        return bool(definitions) and all(map(self._is_element, definitions))

    def _is_copy(self, definition: Definition) -> bool:
        """Return whether a container is the outcome, or a column of it, perhaps shifted, scaled, or its logs."""
        if definition.value is None or definition.increment:
            return False
        read = read_variate(definition.value, self._flow.scopes, lambda one: one in self.carriers)
        if read is None or read.indices[0].kind != "all" or len(read.open) != definition.target.rank:
            return False
        return not any(self.depends(node) for _, node in read.wrappers)

    def _is_element(self, definition: Definition) -> bool:
        """Return whether a definition sets ``x[n]`` from observation n, or all of x from no outcome."""
        if not self.depends(definition.value, *headers(definition.controls)):
            return definition.node.data == "declarator" or definition.whole
        if definition.node.data != "assignment":
            return False
        left, value = nodes(definition.node)
        places = nodes(left)[1:] if left.data == "indexed" else []
        if not places or places[0].data != "index_one" or self.depends(*places):
            return False
        return self.common_index([value], definition.controls) == self.text(nodes(places[0])[0])

    def _indices(self, expressions: Iterable[Node], loops: Sequence[Node]) -> Iterator[Node | None]:
        """Yield the first index of every read of the outcome, also through variables; None for one without."""
        seen: set[Variable] = set()
        stack = list(expressions)
        while stack:
            expression = stack.pop()
            yield from self._own_indices(expression)
            for variable in self._flow.reads(expression) - seen - self.carriers:
                seen.add(variable)
                if self._outcome not in self._flow.closure([variable]):
                    continue
                if variable.kind != "local" or not _is_declared_in(variable, loops):
                    yield None  # it may hold what other observations left there
                for definition in self._flow.definitions.get(variable, ()):
                    stack += [definition.node, *headers(definition.controls)]

    def _own_indices(self, node: Node) -> Iterator[Node | None]:
        if is_size(node):
            return
        base = strip(nodes(node)[0]) if node.data == "indexed" else node
        if base.data == "variable" and self._flow.scopes.variable(base) in self.carriers:
            first = nodes(node)[1] if node.data == "indexed" else None
            yield nodes(first)[0] if first is not None and first.data == "index_one" else None
            children = nodes(node)[1:]
        else:
            children = nodes(node) if node.data not in _HEADED else []
        for child in children:
            yield from self._own_indices(child)

    def _index_text(self, index: Node | None, loops: set[Variable]) -> str | None:
        if index is None or rank(index, self._flow.scopes) != 0:
            return None
        are_fixed = all(v in loops or v.kind in ("data", "transformed data") for v in self._flow.reads(index))
        return self.text(index) if are_fixed and not self.depends(index) else None


def headers(controls: Iterable[Node]) -> list[Node]:
    """Return conditions and bounds of the statements around another."""
    return [
        child
        for control in controls
        for child in (nodes(control)[:1] if control.data == "if_" else nodes(control)[:-1])
    ]


def _is_declared_in(variable: Variable, loops: Sequence[Node]) -> bool:
    """Return whether a variable is declared anew for each observation: inside one of the loops."""
    return any(start(loop) <= start(variable.node) < end(loop) for loop in loops)
