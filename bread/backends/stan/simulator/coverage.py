"""Which elements of a variable its statements draw: each exactly once, some never, or in doubt.

Sizes and loop bounds are compared as linear forms of the program's own integers, so that ``2:N`` and ``1`` together
cover a vector of size ``N``. Integers of the data count with their values, where these are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from bread.backends.stan.language.dataflow import Dataflow, loop_variable
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.syntax import Node, is_size, name_of, nodes, strip, token
from bread.backends.stan.language.variates import Index, Variate

Linear = tuple[tuple[str, int], ...]  # atoms and coefficients, sorted; the constant under ""


def _sum(a: Linear, b: Linear, factor: int = 1) -> Linear:
    total = dict(a)
    for atom, coefficient in b:
        total[atom] = total.get(atom, 0) + factor * coefficient
    return tuple(sorted((atom, c) for atom, c in total.items() if c != 0))


def difference(a: Linear, b: Linear) -> Linear:
    """Return a - b."""
    return _sum(a, b, -1)


def constant(value: int) -> Linear:
    """Return a number as a linear form."""
    return (("", value),) if value else ()


@dataclass(frozen=True)
class Region:
    """Intervals (both ends counted) that a statement covers along each dimension; None where in doubt."""

    intervals: tuple[tuple[Linear, Linear] | None, ...]


class Coverage:
    """Compares regions of variables by the integers of one program."""

    def __init__(self, flow: Dataflow) -> None:
        self._flow = flow

    def linear(self, node: Node) -> Linear:
        """Return an integer expression as a linear form; whatever is not linear becomes an atom by its text."""
        node = strip(node)
        if node.data == "integer":
            return constant(int(str(node.children[0]).replace("_", "")))
        if node.data == "variable":
            return self._linear_variable(node)
        if node.data == "binary" and token(node, "SIGN") is not None:
            left, right = nodes(node)
            return _sum(self.linear(left), self.linear(right), 1 if token(node, "SIGN") == "+" else -1)
        if node.data == "unary" and token(node, "SIGN") == "-":
            return _sum((), self.linear(nodes(node)[0]), -1)
        if node.data == "binary" and token(node, "TIMES") == "*":
            forms = [self.linear(child) for child in nodes(node)]
            for number, other in (forms, forms[::-1]):
                if all(atom == "" for atom, _ in number):
                    return _sum((), other, dict(number).get("", 0))
        if is_size(node):
            size = self._size(node)
            if size is not None:
                return self.linear(size)
        return ((self._text(node), 1),)

    def _size(self, node: Node) -> Node | None:
        """Return the declared size that ``size(x)``, ``rows(x)``, ... stands for."""
        variable = self._flow.scopes.variable(nodes(node)[0])
        if variable is None or variable.kind == "argument" or not variable.rank:
            return None
        name, inner = name_of(node), len(variable.array_sizes)
        if (name == "num_elements" and variable.rank == 1) or (name == "size" and (inner or variable.rank == 1)):
            return variable.dimensions[0]
        if name == "rows" and not inner and variable.plain in ("vector", "matrix"):
            return variable.dimensions[0]
        if name == "cols" and not inner and variable.plain in ("row_vector", "matrix"):
            return variable.dimensions[-1]
        return None

    def _linear_variable(self, node: Node) -> Linear:
        variable = self._flow.scopes.variable(node)
        if variable is not None and variable.kind == "transformed data":
            definitions = self._flow.definitions.get(variable, [])
            if len(definitions) == 1 and definitions[0].whole and definitions[0].value and not definitions[0].controls:
                return self.linear(definitions[0].value)
        if variable is not None and variable.kind == "data" and variable.name in self._flow.integers:
            return constant(self._flow.integers[variable.name])
        if variable is not None and variable.kind in ("loop", "local"):
            return ((f"{variable.name}@{variable.line}", 1),)
        return ((name_of(node), 1),)

    def _text(self, node: Node) -> str:
        return " ".join(str(leaf) for leaf in node.scan_values(lambda _: True)) + f":{node.data}"

    def equal(self, a: Node, b: Node) -> bool:
        """Return whether two integer expressions are equal for certain."""
        return self.linear(a) == self.linear(b)

    def region(self, variate: Variate, controls: tuple[Node, ...]) -> Region | None:
        """Return the elements that a statement inside loops covers, or None where it may cover one twice.

        Every loop around the statement must choose the element along exactly one dimension.
        """
        loops = {loop_variable(self._flow.scopes, c): c for c in controls if c.data == "for_range"}
        if any(control.data in ("for_each", "while_") for control in controls):
            return None
        used: set[Variable] = set()
        intervals: list[tuple[Linear, Linear] | None] = []
        for index in variate.indices:
            mentioned = {
                v for node in (index.low, index.high) if node is not None for v in self._flow.reads(node)
            } & set(loops)
            if not mentioned:
                intervals.append(self._interval(index))
                continue
            interval = self._loop_interval(index, mentioned, loops)
            # a loop that runs through two dimensions covers a part of them that no interval describes
            known = interval is not None and used.isdisjoint(mentioned)
            intervals.append(interval if known else None)
            if interval is not None:
                used |= mentioned
        return Region(tuple(intervals)) if used == set(loops) else None

    def _loop_interval(
        self, index: Index, mentioned: set[Variable], loops: dict[Variable, Node]
    ) -> tuple[Linear, Linear] | None:
        if index.kind != "one" or len(mentioned) != 1 or index.low is None:
            return None
        (variable,) = mentioned
        form = self.linear(index.low)
        atom = f"{variable.name}@{variable.line}"
        if dict(form).get(atom) != 1 or any(variable.name in a and a != atom for a, _ in form):
            return None
        low, high, _ = nodes(loops[variable])
        shift = _sum(form, ((atom, 1),), -1)
        return _sum(self.linear(low), shift), _sum(self.linear(high), shift)

    def _interval(self, index: Index) -> tuple[Linear, Linear] | None:
        size = self.linear(index.size)
        if index.kind == "all":
            return constant(1), size
        if index.kind == "one":
            assert index.low is not None
            return self.linear(index.low), self.linear(index.low)
        if index.kind == "between":
            low = constant(1) if index.low is None else self.linear(index.low)
            return low, size if index.high is None else self.linear(index.high)
        return None

    def many_regions(self, variate: Variate, controls: tuple[Node, ...]) -> list[Region] | None:
        """Return regions, one for each element of a literal ``{1, 3}``; None where in doubt."""
        literal = [i for i, index in enumerate(variate.indices) if index.kind == "many"]
        if not literal:
            region = self.region(variate, controls)
            return None if region is None else [region]
        if len(literal) > 1:
            return None
        index = variate.indices[literal[0]]
        assert index.low is not None
        if strip(index.low).data != "array":
            return None
        regions = []
        for element in nodes(strip(index.low)):
            changed = list(variate.indices)
            changed[literal[0]] = Index("one", index.size, element)
            region = self.region(Variate(variate.variable, tuple(changed)), controls)
            if region is None:
                return None
            regions.append(region)
        return regions

    def covers(self, variable: Variable, regions: list[Region]) -> bool:
        """Return whether regions cover every element of ``variable`` exactly once, for certain."""
        sizes = [self.linear(size) for size in variable.dimensions]
        full = [(constant(1), size) for size in sizes]
        if not sizes:
            return len(regions) == 1
        split = [d for d in range(len(sizes)) if any(region.intervals[d] != full[d] for region in regions)]
        if not split:
            return len(regions) == 1
        if len(split) > 1:
            return False
        pieces = [region.intervals[split[0]] for region in regions]
        if any(piece is None for piece in pieces):
            return False
        position, remaining = constant(1), [piece for piece in pieces if piece is not None]
        lengths = [dict(difference(high, low)) for low, high in remaining]
        if any(set(length) <= {""} and length.get("", 0) < -1 for length in lengths):
            return False  # an interval that ends before it begins would take elements back
        while remaining:
            following = [piece for piece in remaining if piece[0] == position]
            if len(following) != 1:
                return False
            remaining.remove(following[0])
            position = _sum(following[0][1], constant(1))
        return position == _sum(sizes[split[0]], constant(1))

    def lack(self, variable: Variable, regions: list[Region]) -> bool:
        """Return whether regions have fewer elements than ``variable``, for certain."""
        whole = tuple((constant(1), self.linear(size)) for size in variable.dimensions)
        total, *parts = (_volume(intervals) for intervals in (whole, *(region.intervals for region in regions)))
        known = [part for part in parts if part is not None]
        return total is not None and len(known) == len(parts) and sum(known) < total

    def is_one_element(self, variable: Variable) -> bool:
        """Return whether a container has one element, for certain."""
        return variable.rank > 0 and all(self.linear(size) == constant(1) for size in variable.dimensions)

    def overlap(self, a: Region, b: Region) -> bool:
        """Return whether two regions have an element in common, for certain, where neither is empty."""

        def within(low: Linear, high: Linear) -> bool:
            gap = dict(difference(high, low))
            return set(gap) <= {""} and gap.get("", 0) >= 0

        for one, other in zip(a.intervals, b.intervals, strict=True):
            if one is None or other is None:
                return False
            if one != other and not (within(one[0], other[1]) and within(other[0], one[1])):
                return False
        return True

    def disjoint(self, a: Region, b: Region) -> bool:
        """Return whether two regions have no element in common, for certain."""
        for one, other in zip(a.intervals, b.intervals, strict=True):
            if one is None or other is None:
                continue
            for first, second in ((one, other), (other, one)):
                gap = dict(_sum(second[0], first[1], -1))
                if set(gap) <= {""} and gap.get("", 0) > 0:
                    return True
        return False


def _volume(intervals: Sequence[tuple[Linear, Linear] | None]) -> int | None:
    """Return how many elements a region has; None where that is not known."""
    lengths = [None if one is None else dict(difference(one[1], one[0])) for one in intervals]
    if any(length is None or set(length) - {""} for length in lengths):
        return None
    return prod(max(0, length.get("", 0) + 1) for length in lengths if length is not None)


def branch(control: Node, statement: Node) -> int:
    """Return which branch of an ``if`` a statement stands in: 1 for the first, 2 for ``else``."""
    bodies = nodes(control)[1:]
    position = statement.meta.start_pos
    return next(i for i, body in enumerate(bodies, 1) if body.meta.start_pos <= position < body.meta.end_pos)


def exclusive(controls: Sequence[Node], statement: Node, other_controls: Sequence[Node], other: Node) -> bool:
    """Return whether two statements stand in different branches of one ``if``."""
    others = {id(control) for control in other_controls}  # nodes of the same text are equal
    shared = [control for control in controls if control.data == "if_" and id(control) in others]
    return any(branch(control, statement) != branch(control, other) for control in shared)
