"""Censored outcomes: ``if (cens[n] == 0) y[n] ~ d(a); else if (cens[n] == 1) target += d_lccdf(c[n] | a);``.

The outcome is drawn from d; where it lies beyond its limit, the limit is recorded in its place, and which side it lies
on. Both are outcomes: ``y`` and ``cens``. What decides a draw is the limit of every observation, whether it turns out
to be censored or not. It is known where it is data of its own, or a number. Where the program compares with ``y[n]``
itself, as brms does, the data hold it for censored observations alone: it is known where all of these share one limit
on each side, and no other observation lies beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bread.backends.stan.language.distributions import DISTRIBUTIONS, Distribution
from bread.backends.stan.language.refusals import RefusedError, refuse
from bread.backends.stan.language.rendering import Renderer
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.syntax import Node, is_density, name_of, nodes, number, strip, terms
from bread.backends.stan.language.variates import Variate
from bread.backends.stan.simulator.draw import Draw, Mode, Reading, Writer
from bread.backends.stan.simulator.forms.flags import (
    Branch,
    Flag,
    ReadOnce,
    branches_of,
    chain_of,
    is_range,
    read_flags,
)
from bread.backends.stan.simulator.limits import why_unknown

Side = Literal["right", "left", "interval"]
ADDS = "adds the probability of a range, as of a censored observation,"
_OWN = "Or pass simulator=: a Stan program or a Python function that draws parameters and data."
# The code of a flag, which is always one that the program asks for: inside of any bounds that it declares.
_FLAG = Distribution("scalar", "", (), True, "inside")


@dataclass(frozen=True)
class Cell:
    """A range of values of which only that they lie there is recorded.

    Attributes
    ----------
    side : "right", "left" or "interval"
    ends : tuple of Node
        The limit; lower and upper end of an interval.
    term : Node
        The log probability of the range.
    own : bool
        Whether the limit is what is recorded as the outcome.
    """

    side: Side
    ends: tuple[Node, ...]
    term: Node
    own: bool


@dataclass(frozen=True, eq=False)
class Censored:
    """How a censored outcome is drawn, and its flag with it.

    Attributes
    ----------
    cells : tuple of Cell
    codes : tuple of int
        Values of the flag: of each cell, and last of an outcome that is seen.
    flag : Node or None
        The element of the flag; None where the program looks at the outcome itself.
    whole : tuple of Variable
        Outcome and flag.
    """

    cells: tuple[Cell, ...]
    codes: tuple[int, ...]
    flag: Node | None
    whole: tuple[Variable, ...]

    def expressions(self, draw: Draw) -> list[Node]:
        """Return the limits that are data of their own."""
        return [end for cell in self.cells if not cell.own for end in cell.ends]

    def code(self, draw: Draw, writer: Writer, render: Renderer, mode: Mode) -> str:
        """Return the code that draws the outcome, and records it or the limit that it lies beyond."""
        if mode != "draw":
            raise refuse(writer.source, draw.statement, "an outcome that depends on itself is censored.", _OWN)
        element = writer.element(draw, render)
        arguments = [argument.text(render) for argument in draw.arguments]
        kind = "int" if draw.law.discrete else "real"
        code = f"{kind} bread_x = {draw.law.generator.format(*arguments, variate=element)};"
        limits, conditions, ordered = [], [], []
        for i, cell in enumerate(self.cells):
            ends = [f"bread_end{i}_{j}" for j in range(len(cell.ends))]
            for name, node in zip(ends, cell.ends, strict=True):
                limits.append(f"real {name} = {self._own_limit(i) if cell.own else render(node)};")
            conditions.append(_condition(cell.side, ends))
            ordered.append((cell.side, ends))
        code += f" {' '.join(limits)} {_check_apart(ordered)}"
        for i, (cell, condition) in enumerate(zip(self.cells, conditions, strict=True)):
            seen = self._seen(i, render) + f" {element} = {self._recorded(i, cell, render)};"
            code += f" if ({condition}) {{ {seen} {draw.total} += {render(cell.term)}; }} else"
        code += (
            f" {{ {self._seen(-1, render)} {element} = bread_x; {draw.total} += {writer.held_density(draw, render)}; }}"
        )
        return f"{{ {code} }}"

    def _seen(self, i: int, render: Renderer) -> str:
        return "" if self.flag is None else f"{render(self.flag)} = {self.codes[i]};"

    def _own_limit(self, i: int) -> str:
        outcome, flag = (variable.name for variable in self.whole)
        return f"bread_limit({outcome}, {flag}, {self.codes[i]}, {1 if self.cells[i].side == 'right' else -1})"

    def _recorded(self, i: int, cell: Cell, render: Renderer) -> str:
        """Return the limit as it stands, in the type of the outcome."""
        if cell.own:
            outcome, flag = (variable.name for variable in self.whole)
            return f"bread_recorded({outcome}, {flag}, {self.codes[i]})"
        return render(cell.ends[0])


def _condition(side: Side, ends: Sequence[str]) -> str:
    if side == "interval":
        return f"bread_x > {ends[0]} && bread_x <= {ends[1]}"
    return f"bread_x {'>' if side == 'right' else '<='} {ends[0]}"


def _check_apart(cells: Sequence[tuple[Side, Sequence[str]]]) -> str:
    """Return code that rejects ranges with values in common: their probabilities would count some twice."""
    low = {side: ends[-1] for side, ends in cells}
    high = {side: ends[0] for side, ends in cells}
    pairs = [("left", "interval"), ("left", "right"), ("interval", "right")]
    bad = [f"{low[one]} > {high[other]}" for one, other in pairs if one in low and other in high]
    bad += [f"{ends[0]} > {ends[1]}" for _, ends in cells if len(ends) == 2]
    return f'if ({" || ".join(bad)}) reject("bread: the limits of a censored outcome overlap");' if bad else ""


@dataclass(frozen=True, eq=False)
class FlagOf:
    """The flag of a censored outcome: written where the outcome is drawn."""

    outcome: Node

    def expressions(self, draw: Draw) -> list[Node]:
        """Return the outcome."""
        return [self.outcome]

    def code(self, draw: Draw, writer: Writer, render: Renderer, mode: Mode) -> str:
        """Return nothing."""
        return ""


class CensoredReader:
    """Recognises censored outcomes of one program."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._flow = reading.flow
        self._source = reading.source
        self._found = ReadOnce()

    def read(self, statement: Node, controls: tuple[Node, ...]) -> list[Draw] | None:
        """Return the draws of the branches of one condition: for the first, and nothing for the others.

        None if the condition around the statement is none of a censored outcome.

        Raises
        ------
        RefusedError
            It is, and the limits are not known.
        """
        chain = chain_of(controls)
        if chain is None:
            return None
        root, outer = chain
        return self._found.draws(root, lambda: self._read(root, outer))

    def _read(self, root: Node, controls: tuple[Node, ...]) -> list[Draw] | None:
        branches = branches_of(root)
        if branches is None:
            return None
        ranges = [(i, cell) for i, one in enumerate(branches) if (cell := self._cell(one)) is not None]
        events = [i for i, one in enumerate(branches) if _event(one) is not None]
        if not ranges or len(events) != 1 or len(ranges) + 1 != len(branches):
            return None
        if len({cell.side for _, cell in ranges}) != len(ranges):
            return None
        event = _event(branches[events[0]])
        if event is None or self._reading.selection(nodes(event)[0]) is None:
            return None
        component = self._reading.component(root, controls, event)
        if component is None or not self._is_plain(component):
            return None
        name, arguments = component.distribution, nodes(event)[1:]
        if any(not self._is_of(cell.term, name, arguments) for _, cell in ranges):
            return None
        element = nodes(event)[0]
        cells = [replace(cell, own=cell.side != "interval" and self._is(cell.ends[0], element)) for _, cell in ranges]
        order = (*(i for i, _ in ranges), events[0])
        return self._draws(root, controls, component, element, cells, branches, order)

    def _draws(
        self,
        root: Node,
        controls: tuple[Node, ...],
        component: Draw,
        element: Node,
        cells: list[Cell],
        branches: list[Branch],
        order: tuple[int, ...],
    ) -> list[Draw] | None:
        flags = read_flags(self._flow, [one.condition for one in branches], component.variable)
        if flags is None:
            return None
        flag = self._flag(root, flags)
        if flag is None and (component.law.discrete or any(cell.own for cell in cells)):
            return None
        whole = (component.variable,) if flag is None else (component.variable, flag.variable)
        ends = [end for cell in cells if not cell.own for end in cell.ends]
        inside = [part for argument in component.arguments for part in argument.parts]
        if not set(whole).isdisjoint(self._flow.depends(*inside)):
            return None
        if not self._reading.outcomes.isdisjoint(self._flow.depends(*ends)):
            raise self._unknown(root, cells, f"the ends `{self._text(ends[0])}`, ... of intervals are outcomes: those "
                                "of observations that fall elsewhere are not known.")  # fmt: skip
        if any(v.kind == "parameter" for v in self._flow.depends(*ends)):
            return None
        codes = tuple(flags.codes[i] for i in order) if flags.flag is not None else ()
        why = why_unknown(self._flow, component.variate, flag, cells, codes)
        if why:
            raise self._unknown(root, cells, why)
        form = Censored(tuple(cells), codes, flags.flag, whole)
        drawn = replace(component, statement=root, controls=controls, form=form)
        if flag is None:
            return [drawn]
        return [drawn, Draw(root, controls, flag, "flag", (), form=FlagOf(element), own=_FLAG)]

    def _flag(self, root: Node, flags: Flag) -> Variate | None:
        """Return the elements of the flag, which must be an outcome; None where there is no flag."""
        if flags.flag is None:
            return None
        found = self._reading.selection(flags.flag)
        if found is None:
            text = self._text(flags.flag)
            reason = f"{ADDS} and which observations are censored (`{text}`) is not among the outcomes."
            raise refuse(self._source, root, reason, f"Name it in observed=, too. {_OWN}")
        return found

    def _unknown(self, root: Node, cells: Sequence[Cell], why: str) -> RefusedError:
        return refuse(self._source, root, f"{ADDS} and {why}", f"{self._way_out(cells)} {_OWN}")

    def _way_out(self, cells: Sequence[Cell]) -> str:
        """Return how limits are given: as data, those of observations that are not censored, too."""
        needs = "Data are simulated with the limit of every observation, where it would have been censored"
        own = next((cell for cell in cells if cell.own or self._is_outcome(cell)), None)
        if own is None:
            limits = dict.fromkeys(f"`{self._text(end)}`" for cell in cells for end in cell.ends if number(end) is None)
            named = " and ".join(limits) or "that of the program"
            return f"{needs}; bread does not guess it. Let {named} be that, also where nothing was censored."
        law = name_of(strip(nodes(own.term)[0]) if own.side == "interval" else own.term).rpartition("_")[0]
        if own.side == "interval":
            declared = "`vector[N] low; vector[N] high;`"
            written = f"log_diff_exp({law}_lcdf(high[n] | ...), {law}_lcdf(low[n] | ...))"
        else:
            declared, written = "`vector[N] limit;`", f"{name_of(own.term)}(limit[n] | ...)"
        return (
            f"{needs}; bread does not guess it. Declare it in the data, {declared}, fill it for the observations that "
            f"were not censored, too (infinity where nothing would have been), and write `{written}`."
        )

    def _is_outcome(self, cell: Cell) -> bool:
        return not self._reading.outcomes.isdisjoint(self._flow.depends(*cell.ends))

    # parts

    def _cell(self, branch: Branch) -> Cell | None:
        """Read ``d_lccdf(c | a)``, ``d_lcdf(c | a)`` or ``log_diff_exp(d_lcdf(b | a), d_lcdf(c | a))``."""
        added = terms(branch.value) if branch.value is not None else []
        if len(added) != 1 or added[0][0] < 0:
            return None
        term = added[0][1]
        if not is_range(term):
            return None
        if name_of(term) == "log_diff_exp":
            high, low = (strip(one) for one in nodes(term))
            is_plain = name_of(high).endswith("_lcdf") and name_of(low).endswith("_lcdf")
            return Cell("interval", (nodes(low)[0], nodes(high)[0]), term, False) if is_plain else None
        return Cell("right" if name_of(term).endswith("_lccdf") else "left", (nodes(term)[0],), term, False)

    def _is_of(self, term: Node, name: str, arguments: Sequence[Node]) -> bool:
        """Return whether a probability is of the law that outcomes which are seen have."""
        parts = [strip(one) for one in nodes(term)] if name_of(term) == "log_diff_exp" else [term]
        wanted = [self._text(one) for one in arguments]
        return all(
            name_of(one).rpartition("_")[0] == name
            and name_of(one) not in self._flow.scopes.functions
            and [self._text(argument) for argument in nodes(one)[1:]] == wanted
            for one in parts
        )

    def _is_plain(self, draw: Draw) -> bool:
        variate, law = draw.variate, draw.law
        is_whole = not variate.open and not variate.wrappers and len(variate.indices) == 1
        return is_whole and draw.own is None and law.shape == "scalar" and draw.distribution in DISTRIBUTIONS

    def _text(self, node: Node) -> str:
        return "".join(self._source.code[node.meta.start_pos : node.meta.end_pos].split())

    def _is(self, node: Node, other: Node) -> bool:
        return self._text(strip(node)) == self._text(strip(other))


def _event(branch: Branch) -> Node | None:
    """Return the density that a branch gives an outcome, as a call or a tilde statement; None where it adds more."""
    if branch.tilde is not None:
        return branch.tilde
    added = terms(branch.value) if branch.value is not None else []
    is_one = len(added) == 1 and added[0][0] > 0 and is_density(added[0][1]) and bool(nodes(added[0][1]))
    return added[0][1] if is_one else None
