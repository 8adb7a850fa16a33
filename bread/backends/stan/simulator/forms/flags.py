"""Conditions that tell cases of an outcome apart: ``if (cens[n] == 0) ... else if (cens[n] == 1) ... else ...``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bread.backends.stan.language.dataflow import Dataflow, base_variable, is_target
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.syntax import Node, name_of, nodes, number, strip, terms, token
from bread.backends.stan.simulator.draw import Draw

_SEEN = (0, 1, -1, 2, 3)  # what a flag may be where the program asks for nothing of its own: the last `else`


@dataclass(frozen=True)
class Branch:
    """One case: its condition (None for the last ``else``), and the one statement that it makes.

    ``value`` is what ``target +=`` adds, ``tilde`` a tilde statement without truncation; one of them is None.
    """

    condition: Node | None
    value: Node | None
    tilde: Node | None


@dataclass(frozen=True)
class Flag:
    """What conditions look at: an element of a flag and its value in each case, or else (None) the outcome itself."""

    flag: Node | None
    codes: tuple[int, ...] = ()


def chain_of(controls: tuple[Node, ...]) -> tuple[Node, tuple[Node, ...]] | None:
    """Return the first ``if`` of the chain of cases around a statement, and what is around the chain; None for none."""
    if not controls or controls[-1].data != "if_":
        return None
    at = len(controls) - 1
    while at and controls[at - 1].data == "if_" and _else_of(controls[at - 1]) is controls[at]:
        at -= 1
    return controls[at], controls[:at]


def _else_of(condition: Node) -> Node | None:
    bodies = nodes(condition)[1:]
    return _only(bodies[1]) if len(bodies) == 2 else None


def _only(body: Node) -> Node | None:
    """Return the one statement of a block."""
    while body.data == "block":
        inner = [child for child in nodes(body) if child.data != "empty"]
        if len(inner) != 1:
            return None
        body = inner[0]
    return body


def branches_of(root: Node) -> list[Branch] | None:
    """Return the cases of a chain; None where one makes more than one statement, or nothing."""
    found: list[Branch] = []
    current: Node | None = root
    while current is not None:
        condition, body, *_ = nodes(current)
        found.append(_branch(condition, body))
        other = _else_of(current)
        if other is not None and other.data == "if_":
            current = other
            continue
        if len(nodes(current)) == 3:
            found.append(_branch(None, nodes(current)[2]))
        current = None
    return found if all(one.value is not None or one.tilde is not None for one in found) else None


def _branch(condition: Node | None, body: Node) -> Branch:
    statement = _only(body)
    if statement is not None and statement.data == "tilde":
        is_cut = any(child.data == "truncation" for child in nodes(statement))
        return Branch(condition, None, None if is_cut else statement)
    if statement is not None and statement.data == "assignment":
        left, value = nodes(statement)
        if is_target(left) and name_of(left) == "target" and token(statement, "ASSIGN") == "+=":
            return Branch(condition, value, None)
    return Branch(condition, None, None)


def read_flags(flow: Dataflow, conditions: Sequence[Node | None], outcome: Variable) -> Flag | None:
    """Read the conditions of a chain of cases; None where they look at anything but one flag, or the outcome."""
    asked = [one for one in conditions if one is not None]
    if all(outcome in flow.reads(one) for one in asked):
        others = {v for v in flow.depends(*asked) if v is not outcome}
        return Flag(None) if all(v.kind in ("data", "transformed data", "loop") for v in others) else None
    read = [_asks(one) for one in asked]
    if any(one is None for one in read):
        return None
    found = [one for one in read if one is not None]
    elements = {"".join(str(leaf) for leaf in element.scan_values(lambda _: True)) for element, _ in found}
    variable = flow.scopes.variable(base_variable(found[0][0]))
    if len(elements) != 1 or variable is None or variable.kind != "data" or variable.plain != "int":
        return None
    if not variable.rank or outcome is variable:
        return None
    kinds = [kind for _, kind in found] + ["else"] * (len(conditions) - len(asked))
    codes = _codes(kinds, _values(flow, variable))
    return None if codes is None else Flag(found[0][0], codes)


def _values(flow: Dataflow, flag: Variable) -> list[int]:
    """Return the values that a flag has in the data, the most frequent first."""
    values = np.asarray(flow.values.get(flag.name, []))
    if values.dtype.kind not in "biu":
        return []
    found, counts = np.unique(values, return_counts=True)
    return [int(one) for one in found[np.argsort(-counts, kind="stable")]]


def _asks(condition: Node) -> tuple[Node, int | str] | None:
    """Read ``cens[n] == 1``, ``cens[n]`` or ``!cens[n]``: the element, and the value or "any", "none"."""
    condition = strip(condition)
    if condition.data == "indexed":
        return condition, "any"
    if condition.data == "unary" and token(condition, "NOT") is not None:
        inner = strip(nodes(condition)[0])
        return (inner, "none") if inner.data == "indexed" else None
    return equals(condition)


def equals(condition: Node) -> tuple[Node, int] | None:
    """Read ``cens[n] == 1``: the element, and the whole number; None for other conditions."""
    condition = strip(condition)
    if condition.data != "binary" or token(condition, "EQUAL") != "==":
        return None
    left, right = (strip(one) for one in nodes(condition))
    if right.data == "indexed":
        left, right = right, left
    sign, value = 1, number(right)
    if right.data == "unary" and token(right, "SIGN") == "-":
        sign, value = -1, number(nodes(right)[0])
    if left.data != "indexed" or value is None or value != int(value):
        return None
    return left, sign * int(value)


def _codes(kinds: Sequence[int | str], values: Sequence[int]) -> tuple[int, ...] | None:
    """Return a value of the flag for each case, which no case before it takes: one of the data where there is one."""
    codes: list[int] = []
    for i, kind in enumerate(kinds):
        possible = [one for one in (*values, *_SEEN) if _takes(kind, one)] if isinstance(kind, str) else [kind]
        free = [one for one in possible if not any(_takes(other, one) for other in kinds[:i])]
        if not free:
            return None
        codes.append(free[0])
    return tuple(codes)


def _takes(kind: int | str, value: int) -> bool:
    return {"any": value != 0, "none": value == 0, "else": True}[kind] if isinstance(kind, str) else value == kind


def flagged(flow: Dataflow) -> list[Variable]:
    """Return the flags of the data that tell censored outcomes from those that are seen."""
    found: dict[Variable, None] = {}
    for contribution in flow.contributions:
        chain = chain_of(contribution.controls)
        branches = branches_of(chain[0]) if chain is not None else None
        for branch in branches or ():
            added = terms(branch.value) if branch.value is not None else []
            if not any(sign > 0 and is_range(term) for sign, term in added):
                continue
            assert branches is not None
            asked = [_asks(one.condition) for one in branches if one.condition is not None]
            for element, _ in (one for one in asked if one is not None):
                variable = flow.scopes.variable(base_variable(element))
                if variable is not None and variable.kind == "data" and variable.plain == "int" and variable.rank:
                    found[variable] = None
    return list(found)


def is_range(term: Node) -> bool:
    """Return whether a term is the log probability of a range: ``d_lccdf``, ``d_lcdf``, or ``log_diff_exp`` of two."""
    if term.data == "call" and name_of(term) == "log_diff_exp":
        return all(is_range(strip(one)) for one in nodes(term))
    return term.data in ("call", "density") and name_of(term).endswith(("_lccdf", "_lcdf")) and bool(nodes(term))


class ReadOnce:
    """What the branches of one condition draw: read at the first branch, and nothing left for the others."""

    def __init__(self) -> None:
        self._found: dict[int, list[Draw] | None] = {}

    def draws(self, condition: Node, read: Callable[[], list[Draw] | None]) -> list[Draw] | None:
        """Return what ``read`` finds at the first call for a condition, then nothing; None where it found none."""
        is_first = id(condition) not in self._found
        if is_first:
            self._found[id(condition)] = read()
        found = self._found[id(condition)]
        return found if found is None or is_first else []
