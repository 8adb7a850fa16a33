"""Hidden Markov chains that the program sums out by the forward algorithm.

``for (k in 1:K) g[1, k] = v + d(y[1] | ..);`` and, for t in 2:N and k in 1:K, ``for (j in 1:K) acc[j] = g[t - 1, j] +
w + d(y[t] | ..); g[t, k] = log_sum_exp(acc);``, then ``target += log_sum_exp(g[N]);``. Where the exp(w) sum to one over
k, state k follows state j with that probability, and y[t] has the density d given both. The states are drawn in turn,
and each outcome after its state. That the probabilities sum to one is checked whenever they are used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from bread.backends.stan.language.dataflow import Definition, loop_variable
from bread.backends.stan.language.rendering import Renderer, plain_type
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.syntax import Node, name_of, nodes, start, strip, terms, walk
from bread.backends.stan.language.variates import Index, Variate, read_variate
from bread.backends.stan.simulator.coverage import Coverage, Linear, Region, constant, difference
from bread.backends.stan.simulator.draw import Draw, Mode, Reading, Writer
from bread.backends.stan.simulator.forms.weights import CHOOSE, check_sum, refuse_bounded, refuse_own_elements

_SUM = check_sum("the probabilities of a hidden state")
_CHOOSE = f"bread_state = {CHOOSE};"


@dataclass(frozen=True, eq=False)
class Move:
    """The first state, or a state after another one: its log weight, and the outcomes it gives.

    Attributes
    ----------
    definition : Definition
        The assignment of the log densities that are summed.
    weights : tuple of (int, Node)
        Signed terms.
    outcomes : tuple of Draw
    """

    definition: Definition
    weights: tuple[tuple[int, Node], ...]
    outcomes: tuple[Draw, ...]


@dataclass(frozen=True, eq=False)
class Hidden:
    """A hidden chain: the statements of its forward algorithm.

    Attributes
    ----------
    table : Variable
        Log densities by time and state.
    summed : Variable
        What is summed over the state before.
    first, next : Move
    assigned : Definition
        ``table[t, k] = log_sum_exp(summed)``.
    last : Node
        The row of the table that gives the log density.
    """

    table: Variable
    summed: Variable
    first: Move
    next: Move
    assigned: Definition
    last: Node

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The outcomes, drawn together."""
        return tuple(draw.variable for draw in self.first.outcomes)

    def expressions(self, draw: Draw) -> list[Node]:
        """Return what the law of an outcome reads; later ones read the first, with which they are drawn."""
        found = [self.last, *self.table.dimensions, *self.summed.dimensions]
        for move in (self.first, self.next):
            found += [term for _, term in move.weights]
            found += [node for one in move.outcomes for node in one.expressions()]
            found += [node for loop in move.definition.controls for node in nodes(loop)[:-1]]
        if draw.variable is not self.variables[0]:
            base = next(n for n in walk(self.first.definition.node) if n.data == "variable" and self._is_first(n))
            found.append(base)
        return found

    def _is_first(self, node: Node) -> bool:
        return name_of(node) == self.variables[0].name

    def code(self, draw: Draw, writer: Writer, render: Renderer, mode: Mode) -> str:
        """Return the code that draws states and outcomes in turn, then adds the program's own log density of them."""
        refuse_bounded(draw, writer)
        refuse_own_elements(draw, writer, mode)
        if draw.variable is not self.variables[0]:
            return ""
        size = render(self.table.dimensions[1])
        first, following = self.first, self.next
        (begin,) = first.definition.controls
        time, state, before = following.definition.controls
        chosen = f"{name_of(state)} == bread_state"
        came = f"{name_of(before)} == bread_before"
        pieces = [
            f"vector[{size}] bread_w; int bread_state; int bread_before;",
            _loop(begin, f"bread_w[{name_of(begin)}] = {_weight(first, render)};", render),
            f"{_SUM if first.weights else ''} {_CHOOSE}",
            _loop(begin, f"if ({name_of(begin)} == bread_state) {{ {_assign(first, render, writer)} }}", render),
        ]
        weigh = f"if ({came}) bread_w[{name_of(state)}] = {_weight(following, render)};"
        give = f"if ({chosen} && {came}) {{ {_assign(following, render, writer)} }}"
        step = (
            f"bread_before = bread_state; {_loop(state, _loop(before, weigh, render), render)} "
            f"{_SUM if following.weights else ''} {_CHOOSE} {_loop(state, _loop(before, give, render), render)}"
        )
        pieces.append(_loop(time, step, render))
        pieces.append(self._density(render, draw.total))
        return f"{{ {' '.join(pieces)} }}"

    def _density(self, render: Renderer, total: str) -> str:
        """Return the program's own forward algorithm over the simulated outcomes."""
        first, inner, assigned = self.first.definition, self.next.definition, self.assigned
        names = {render.name(self.table): "bread_table", render.name(self.summed): "bread_summed"}

        def own(text: str) -> str:
            for name, new in names.items():
                text = re.sub(rf"\b{re.escape(name)}\b", new, text)
            return text

        def assign(one: Definition) -> str:
            left, value = nodes(one.node)
            return own(f"{render(left)} = {render(value)};")

        time, state, before = inner.controls
        step = f"{_loop(before, assign(inner), render)} {assign(assigned)}"
        return (
            f"{plain_type(self.table, render)} bread_table; {plain_type(self.summed, render)} bread_summed; "
            f"{_loop(first.controls[0], assign(first), render)} {_loop(time, _loop(state, step, render), render)} "
            f"{total} += log_sum_exp(bread_table[{render(self.last)}]);"
        )


def read_hidden(reading: Reading, node: Node, controls: tuple[Node, ...], term: Node) -> list[Draw] | None:
    """Read ``log_sum_exp(g[N])`` as the draws of the outcomes of a hidden chain; None where it is none."""
    if controls or term.data != "call" or name_of(term) != "log_sum_exp" or len(nodes(term)) != 1:
        return None
    hidden = _HiddenReader(reading).read(strip(nodes(term)[0]))
    if hidden is None or any(start(one.node) >= start(node) for one in (hidden.first.definition, hidden.assigned)):
        return None
    draws = []
    for position, variable in enumerate(hidden.variables):
        rows = Variate(variable, (Index("between", variable.dimensions[0], None, hidden.last),))
        components = tuple(move.outcomes[position] for move in (hidden.first, hidden.next))
        draws.append(Draw(node, (), rows, "mixture", (), components=components, form=hidden))
    return draws


class _HiddenReader:
    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._flow = reading.flow
        self._outcomes = reading.outcomes
        self._coverage = Coverage(reading.flow)

    def read(self, row: Node) -> Hidden | None:
        """Read ``g[N]`` and the assignments behind it."""
        found = read_variate(row, self._flow.scopes, lambda v: v.kind in ("local", "transformed parameter"))
        if found is None or found.wrappers or [index.kind for index in found.indices] != ["one", "all"]:
            return None
        table, last = found.variable, found.indices[0].low
        definitions = sorted(self._flow.definitions.get(table, []), key=lambda one: start(one.node))
        if len(definitions) != 2 or last is None:
            return None
        first, assigned = definitions
        end, size = self._coverage.linear(last), self._coverage.linear(table.dimensions[1])
        states, rows = (constant(1), size), (constant(2), end)
        if self._places(first, table, 1) != Region(((constant(1), constant(1)), states)):
            return None
        if self._places(assigned, table, 2) != Region((rows, states)):
            return None
        summed = self._summed(assigned)
        if summed is None or self._coverage.linear(summed.variable.dimensions[0]) != size:
            return None
        inner = summed.definition
        if inner.controls[:2] != assigned.controls or start(inner.node) >= start(assigned.node):
            return None
        if self._places(inner, summed.variable, 1, around=2) != Region((states,)):
            return None
        before = Region(((constant(1), difference(end, constant(1))), states))
        moves = self._move(first, None), self._move(inner, (table, before))
        if moves[0] is None or moves[1] is None or not self._match(moves[0], moves[1], end):
            return None
        return Hidden(table, summed.variable, moves[0], self._sorted(moves[1], moves[0]), assigned, last)

    def _places(self, one: Definition, variable: Variable, n_loops: int, around: int = 0) -> Region | None:
        """Return the elements that an assignment in loops fills, each loop along its own dimension, in their order."""
        loops = one.controls[around:]
        if one.increment or one.node.data != "assignment" or len(loops) != n_loops:
            return None
        if any(loop.data != "for_range" for loop in one.controls):
            return None
        target = read_variate(nodes(one.node)[0], self._flow.scopes, lambda v: v is variable)
        return None if target is None else self._region(target, loops)

    def _region(self, element: Variate, loops: tuple[Node, ...]) -> Region | None:
        if element.open or element.wrappers:
            return None
        mentioned = [
            [v for v in self._flow.reads(index.low) if v.kind == "loop"] for index in element.indices if index.low
        ]
        if [v for found in mentioned for v in found] != [loop_variable(self._flow.scopes, loop) for loop in loops]:
            return None
        return self._coverage.region(element, loops)

    def _summed(self, assigned: Definition) -> _Summed | None:
        value = strip(assigned.value) if assigned.value is not None else None
        if value is None or value.data != "call" or name_of(value) != "log_sum_exp" or len(nodes(value)) != 1:
            return None
        argument = strip(nodes(value)[0])
        variable = self._flow.scopes.variable(argument) if argument.data == "variable" else None
        if variable is None or variable.kind not in ("local", "transformed parameter") or variable.rank != 1:
            return None
        definitions = self._flow.definitions.get(variable, [])
        return _Summed(variable, definitions[0]) if len(definitions) == 1 else None

    def _move(self, one: Definition, before: tuple[Variable, Region] | None) -> Move | None:
        """Read the terms that one assignment adds: the row before, outcomes, and log weights."""
        assert one.value is not None
        weights: list[tuple[int, Node]] = []
        outcomes: list[Draw] = []
        n_before = 0
        for sign, term in terms(one.value):
            if self._reading.is_density(term) and not self._outcomes.isdisjoint(self._flow.depends(term)):
                draw = self._reading.component(one.node, one.controls, term) if sign > 0 else None
                if draw is None or not self._is_outcome(draw):
                    return None
                outcomes.append(draw)
            elif before is not None and sign > 0 and self._is_row(term, before, (one.controls[0], one.controls[-1])):
                n_before += 1
            else:
                weights.append((sign, term))
        reads = [node for _, node in weights] + [node for draw in outcomes for node in draw.expressions()]
        headers = [node for loop in one.controls for node in nodes(loop)[:-1]]
        if n_before != (before is not None) or not self._is_known(self._flow.reads(*reads, *headers), one):
            return None
        return Move(one, tuple(weights), tuple(outcomes))

    def _is_row(self, term: Node, before: tuple[Variable, Region], loops: tuple[Node, ...]) -> bool:
        table, region = before
        element = read_variate(term, self._flow.scopes, lambda v: v is table)
        return element is not None and self._region(element, loops) == region

    def _is_outcome(self, draw: Draw) -> bool:
        variate = draw.variate
        plain = not variate.wrappers and not variate.open and len(variate.indices) == 1
        return plain and draw.variable in self._outcomes and draw.law.shape == "scalar" and draw.form is None

    def _is_known(self, reads: frozenset[Variable], one: Definition) -> bool:
        """Return whether values are free of outcomes, and can be computed before the chain is drawn."""
        if not self._outcomes.isdisjoint(self._flow.closure(reads)):
            return False
        for variable in reads:
            if variable.kind != "local":
                continue
            definitions = self._flow.definitions.get(variable, [])
            if variable.block != "model_block" or len(definitions) != 1 or start(definitions[0].node) > start(one.node):
                return False
            if any(control in one.controls for control in definitions[0].controls):
                return False
        return True

    def _match(self, first: Move, following: Move, end: Linear) -> bool:
        """Return whether both give the same outcomes, each once: elements 1, and 2 to the last."""
        names = [sorted(draw.variable.name for draw in move.outcomes) for move in (first, following)]
        if names[0] != names[1] or not names[0] or len(set(names[0])) < len(names[0]):
            return False
        time: Callable[[Draw], Region | None] = lambda draw: self._region(draw.variate, draw.controls[:1])  # noqa: E731
        begin = Region(((constant(1), constant(1)),))
        rows = Region(((constant(2), end),))
        return all(self._region(draw.variate, ()) == begin for draw in first.outcomes) and all(
            time(draw) == rows for draw in following.outcomes
        )

    def _sorted(self, move: Move, like: Move) -> Move:
        order = [draw.variable for draw in like.outcomes]
        outcomes = sorted(move.outcomes, key=lambda draw: order.index(draw.variable))
        return Move(move.definition, move.weights, tuple(outcomes))


@dataclass(frozen=True, eq=False)
class _Summed:
    variable: Variable
    definition: Definition


def _loop(loop: Node, code: str, render: Renderer) -> str:
    low, high, _ = nodes(loop)
    return f"for ({name_of(loop)} in ({render(low)}):({render(high)})) {{ {code} }}"


def _weight(move: Move, render: Renderer) -> str:
    return "0" + "".join(f" {'+' if sign > 0 else '-'} ({render(term)})" for sign, term in move.weights)


def _assign(move: Move, render: Renderer, writer: Writer) -> str:
    return " ".join(writer.assign(draw, render) for draw in move.outcomes)
