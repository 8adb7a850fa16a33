"""What every value of a program depends on, and every contribution to its log density."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bread.backends.stan.language.scopes import Scopes, Variable
from bread.backends.stan.language.syntax import Node, line, name_of, nodes, strip, token, walk, walk_values

ContributionKind = Literal["tilde", "target", "jacobian", "function"]


@dataclass(frozen=True, eq=False)
class Definition:
    """One assignment (or declaration with a value) of a variable.

    ``reads`` holds what the value, the indices on the left and the conditions and loop bounds around it depend on
    directly. ``increment`` marks ``x += value``.
    """

    target: Variable
    value: Node | None
    reads: frozenset[Variable]
    node: Node
    controls: tuple[Node, ...]
    increment: bool = False
    whole: bool = True


@dataclass(frozen=True, eq=False)
class Contribution:
    """One statement that adds to the log density.

    Attributes
    ----------
    kind : "tilde", "target", "jacobian" or "function"
        ``y ~ d(..)``, ``target += ..``, ``jacobian += ..``, a call of a function whose name ends in ``_lp``.
    node : Node
        The statement.
    controls : tuple of Node
        ``if``, ``for`` and ``while`` statements around it, outermost first.
    own, control : frozenset of Variable
        What its expressions, and the conditions and loop bounds around it, read directly.
    block : str
        The block that it stands in.
    """

    kind: ContributionKind
    node: Node
    controls: tuple[Node, ...]
    own: frozenset[Variable]
    control: frozenset[Variable]
    block: str

    @property
    def line(self) -> int:
        """Line of the statement."""
        return line(self.node)


@dataclass
class Dataflow:
    """Definitions and contributions of a program, with the transitive closure of dependence.

    ``integers`` holds the values of scalar integers of the data block, by name, where they are known and no outcomes;
    ``values`` those of all data, as the user gave them. ``changed`` holds the names of parameters that get a density
    after a change of variables, ``jacobians`` the terms (by `id`) that belong to it.
    """

    scopes: Scopes
    definitions: dict[Variable, list[Definition]] = field(default_factory=lambda: defaultdict(list))
    contributions: list[Contribution] = field(default_factory=list)
    target_reads: list[Node] = field(default_factory=list)
    rejects: list[Node] = field(default_factory=list)
    integers: dict[str, int] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    changed: frozenset[str] = frozenset()
    jacobians: frozenset[int] = frozenset()
    _closures: dict[Variable, frozenset[Variable]] = field(default_factory=dict)

    def reads(self, *expressions: Node) -> frozenset[Variable]:
        """Return the variables that expressions name."""
        found = (
            self.scopes.variable(inner)
            for node in expressions
            for inner in walk_values(node)
            if inner.data == "variable"
        )
        return frozenset(variable for variable in found if variable is not None)

    def closure(self, variables: Iterable[Variable]) -> frozenset[Variable]:
        """Return all that ``variables`` depend on, themselves included; sizes of declarations do not count."""
        result: set[Variable] = set()
        for variable in variables:
            result |= self._closure(variable)
        return frozenset(result)

    def depends(self, *expressions: Node) -> frozenset[Variable]:
        """Return all that the values of ``expressions`` depend on."""
        return self.closure(self.reads(*expressions))

    def _closure(self, variable: Variable) -> frozenset[Variable]:
        if variable not in self._closures:
            seen, stack = {variable}, [variable]
            while stack:
                for definition in self.definitions.get(stack.pop(), ()):
                    new = definition.reads - seen
                    seen |= new
                    stack += new
            self._closures[variable] = frozenset(seen)
        return self._closures[variable]


def analyse_dataflow(blocks: dict[str, Node], scopes: Scopes) -> Dataflow:
    """Collect definitions and contributions of all blocks but generated quantities and functions."""
    flow = Dataflow(scopes)
    for rule in ("transformed_data_block", "transformed_parameters_block", "model_block"):
        if rule in blocks:
            for statement in nodes(blocks[rule]):
                _visit(flow, statement, (), frozenset(), rule)
    return flow


def is_target(node: Node) -> bool:
    """Return whether an assignment's left side is ``target`` or ``jacobian``."""
    return node.data == "variable" and name_of(node) in ("target", "jacobian")


def base_variable(node: Node) -> Node:
    """Return the ``variable`` node under indices: ``x`` of ``x[1][2]``."""
    node = strip(node)
    while node.data in ("indexed", "projection"):
        node = strip(nodes(node)[0])
    return node


def loop_variable(scopes: Scopes, loop: Node) -> Variable:
    """Return the variable that a ``for`` statement declares."""
    from bread.backends.stan.language.scopes import name_position

    return scopes.declared[name_position(loop)]


def _visit(flow: Dataflow, node: Node, controls: tuple[Node, ...], control: frozenset[Variable], block: str) -> None:
    data = node.data
    _note_calls(flow, node, controls, control, block)
    if data == "declaration":
        for declarator in nodes(node)[1:]:
            for value in nodes(declarator):
                target = next(v for v in flow.scopes.variables if v.node is declarator)
                flow.definitions[target].append(
                    Definition(target, value, flow.reads(value) | control, declarator, controls)
                )
    elif data == "assignment":
        _visit_assignment(flow, node, controls, control, block)
    elif data == "tilde":
        flow.contributions.append(Contribution("tilde", node, controls, flow.reads(*nodes(node)), control, block))
    elif data in ("block", "profile"):
        for child in nodes(node):
            _visit(flow, child, controls, control, block)
    elif data in ("if_", "while_", "for_range", "for_each"):
        _visit_control(flow, node, controls, control, block)


def _visit_assignment(
    flow: Dataflow, node: Node, controls: tuple[Node, ...], control: frozenset[Variable], block: str
) -> None:
    left, value = nodes(node)
    operator = token(node, "ASSIGN")
    if is_target(left) and flow.scopes.variable(left) is None:
        kind: ContributionKind = "target" if name_of(left) == "target" else "jacobian"
        flow.contributions.append(Contribution(kind, node, controls, flow.reads(value), control, block))
        return
    targets = nodes(left) if left.data == "tuple" else [left]
    for one in targets:
        target = flow.scopes.variable(base_variable(one))
        if target is None:
            continue
        reads = flow.reads(value) | control
        if base_variable(one) is not strip(one) or operator is not None:
            reads |= flow.reads(one)
        whole = strip(one).data == "variable"
        flow.definitions[target].append(Definition(target, value, reads, node, controls, operator == "+=", whole))


def _visit_control(
    flow: Dataflow, node: Node, controls: tuple[Node, ...], control: frozenset[Variable], block: str
) -> None:
    children = nodes(node)
    if node.data == "if_":
        header, bodies = children[:1], children[1:]
    else:
        header, bodies = children[:-1], children[-1:]
    if node.data in ("for_range", "for_each"):
        variable = loop_variable(flow.scopes, node)
        flow.definitions[variable].append(Definition(variable, None, flow.reads(*header) | control, node, controls))
    inner = control | flow.reads(*header)
    for body in bodies:
        _visit(flow, body, (*controls, node), inner, block)


def _note_calls(
    flow: Dataflow, node: Node, controls: tuple[Node, ...], control: frozenset[Variable], block: str
) -> None:
    """Note reads of target(), rejections and calls of functions that change the target."""
    if node.data in ("block", "profile", "if_", "while_", "for_range", "for_each"):
        expressions = [child for child in nodes(node) if node.data in ("if_", "while_") and child is nodes(node)[0]]
    else:
        expressions = [node]
    for expression in expressions:
        for inner in walk(expression):
            if inner.data != "call":
                continue
            name = name_of(inner)
            if name == "target":
                flow.target_reads.append(inner)
            elif name in ("reject", "fatal_error"):
                flow.rejects.append(inner)
            elif name.endswith(("_lp", "_jacobian")) and name in flow.scopes.functions:
                flow.contributions.append(Contribution("function", node, controls, flow.reads(inner), control, block))
