"""What the draws of a program must satisfy: each parameter drawn once, each outcome at most once, nothing circular."""

from __future__ import annotations

from collections.abc import Sequence

from bread.backends.stan.language.dataflow import Dataflow, loop_variable
from bread.backends.stan.language.refusals import RefusedError, refuse
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, is_number, line, name_of, nodes, start, strip, token, walk
from bread.backends.stan.simulator.coverage import Coverage, Region, branch, exclusive
from bread.backends.stan.simulator.draw import Draw
from bread.backends.stan.simulator.dropped import headers
from bread.backends.stan.simulator.missing import asks_for_code
from bread.backends.stan.simulator.suggestions import in_words_of_brms, mending_line
from bread.backends.stan.split.split import Splitter

_OWN = "Pass simulator=: a Stan program or a Python function that draws parameters and data."
PRIOR_ONLY = "prior_only"  # brms: 1 would leave the likelihood out; it is always 0


class Requirements:
    """Checks the draws of one program before any code is written.

    Attributes
    ----------
    notes : list of str
        Facts for the report.
    counted : dict of Variable
        Variables of which the data tell how often each element is drawn: the simulator counts.
    """

    def __init__(self, flow: Dataflow, source: Source, splitter: Splitter, observed: Sequence[Variable]) -> None:
        self._flow = flow
        self._source = source
        self._splitter = splitter
        self._observed = tuple(observed)
        self._parameters = tuple(flow.scopes.of_kind("parameter"))
        self._coverage = Coverage(flow)
        self.notes: list[str] = []
        self.counted: dict[Variable, None] = {}

    def refuse_structure(self, blocks: dict[str, Node]) -> None:
        """Refuse jumps, types and sizes that a simulator cannot follow; note what the program may reject."""
        for rule in ("transformed_parameters_block", "model_block"):
            jump = first_jump(blocks[rule]) if rule in blocks else None
            if jump is not None:
                raise refuse(
                    self._source,
                    jump,
                    "jumps out of a loop; bread does not follow it.",
                    "Write the loop without it. " + _OWN,
                )
        self._refuse_random_data()
        self._refuse_parameters()
        self._refuse_outcomes()

    def _refuse_random_data(self) -> None:
        for variable in self._flow.scopes.of_kind("transformed data"):
            for definition in self._flow.definitions.get(variable, ()):
                calls = [n for n in walk(definition.node) if n.data == "call" and name_of(n).endswith("_rng")]
                if calls and self._splitter.is_observed([variable]):
                    raise refuse(self._source, calls[0], "draws at random from observed data.", _OWN)

    def _refuse_parameters(self) -> None:
        for variable in self._parameters:
            parts = (*variable.dimensions, *variable.bounds.values())
            if self._splitter.is_observed(self._flow.reads(*parts)):
                raise refuse(
                    self._source,
                    variable.node,
                    f"the size or the bounds of {variable.name!r} depend on observed data.",
                    "Give them as data of their own. " + _OWN,
                )
            if variable.type == "sum_to_zero_vector" and not variable.array_sizes:
                continue
            if variable.type in ("tuple", "unit_vector") or variable.type.startswith(
                ("sum_to_zero", "column_", "row_stoch", "complex")
            ):
                raise refuse(
                    self._source, variable.node, f"a parameter of type {variable.type} has no derived simulator.", _OWN
                )

    def _refuse_outcomes(self) -> None:
        for variable in self._observed:
            if variable.type == "tuple" or variable.plain.startswith("complex"):
                raise refuse(
                    self._source,
                    variable.node,
                    f"an observed variable of type {variable.type} has no derived simulator.",
                    _OWN,
                )
            if self._splitter.is_observed(self._flow.reads(*variable.dimensions)):
                raise refuse(self._source, variable.node, f"the size of {variable.name!r} is itself observed.", _OWN)
        for item in self._flow.rejects[:1]:
            place = self._source.origin(line(item))
            self.notes.append(f"{place}: the program may reject; draws of density zero must be drawn again.")

    def check_parameter(self, variable: Variable, draws: list[Draw]) -> None:
        """Refuse a parameter unless each of its elements is surely drawn exactly once."""
        for draw in draws:
            if any(
                self._flow.scopes.variable(n) is variable for control in draw.controls for n in self._headers(control)
            ):
                raise refuse(
                    self._source, draw.statement, f"the condition of the prior reads {variable.name!r} itself.", _OWN
                )
        try:
            self._check_each_once(variable, draws)
        except RefusedError as error:
            if error.refusal.flat or self._are_surely_several(draws) or not all(map(self._is_design, draws)):
                raise
            self.counted[variable] = None

    def _is_free(self, node: Node) -> bool:
        return not self._splitter.is_observed(self._flow.reads(node))

    def _is_design(self, draw: Draw) -> bool:
        """Return whether neither parameters nor outcomes enter which elements are drawn."""
        read = (*draw.places(), *headers(draw.controls))
        return all(map(self._is_free, read)) and not self._splitter.has_parameter(*read)

    def _are_surely_several(self, draws: list[Draw]) -> bool:
        """Return whether two draws that no condition chooses have an element in common, or a loop repeats one."""

        def is_sure(control: Node) -> bool:
            return control.data == "for_range" or (control.data == "if_" and self._always(control, draws))

        plain = [draw for draw in draws if all(map(is_sure, draw.controls))]
        regions = [self._coverage.region(draw.variate, draw.controls) for draw in plain]
        known = [region for region in regions if region is not None]
        doubled = any(self._coverage.overlap(one, other) for i, one in enumerate(known) for other in known[:i])
        return doubled or any(
            self._is_repeated(draw, loop) for draw in plain for loop in draw.controls if loop.data == "for_range"
        )

    def _is_repeated(self, draw: Draw, loop: Node) -> bool:
        """Return whether every turn of a loop draws the same elements: nothing that it changes says which."""
        inner = [one for one in draw.controls if start(one) > start(loop)]
        read = self._flow.depends(*draw.places(), *headers(inner))
        around = [control for v in read for one in self._flow.definitions.get(v, ()) for control in one.controls]
        return loop_variable(self._flow.scopes, loop) not in read and not any(one is loop for one in around)

    def _check_each_once(self, variable: Variable, draws: list[Draw]) -> None:
        for chosen in self._branches(draws):
            regions: list[Region] = []
            for draw in chosen:
                found = self._coverage.many_regions(draw.variate, draw.controls)
                if found is None:
                    raise refuse(
                        self._source,
                        draw.statement,
                        f"bread cannot verify that every element of {variable.name!r} is drawn once.",
                        "Give the prior to the whole variable, or in a loop over its size. " + _OWN,
                    )
                regions += found
            if not self._coverage.covers(variable, regions):
                if len(chosen) > 1 and not self._coverage.lack(variable, regions):
                    raise refuse(
                        self._source,
                        chosen[-1].statement,
                        f"{variable.name!r} has several priors; bread cannot verify that each element has exactly one.",
                        "Keep one prior for each element. " + _OWN,
                    )
                where = chosen[0].statement if chosen else draws[0].statement
                raise refuse(
                    self._source,
                    where,
                    f"not every element of {variable.name!r} is sure to have a prior.",
                    f"Give a proper prior to every element, such as `{mending_line(variable, self._source)}`"
                    f"{in_words_of_brms([variable], self._source)}; the scale is yours to choose.",
                    (variable.name,),
                )

    def _headers(self, control: Node) -> list[Node]:
        return [n for child in nodes(control)[:1] for n in walk(child) if n.data == "variable"]

    def _always(self, control: Node, draws: list[Draw]) -> bool:
        """Return whether a condition is ``!prior_only``, which is held at 0, with all of its draws in the branch."""
        condition = strip(nodes(control)[0])
        if condition.data != "unary" or token(condition, "NOT") is None:
            return False
        asked = strip(nodes(condition)[0])
        variable = self._flow.scopes.variable(asked) if asked.data == "variable" else None
        if variable is None or variable.kind != "data" or variable.type != "int" or variable.name != PRIOR_ONLY:
            return False
        return all(branch(control, draw.statement) == 1 for draw in draws if control in draw.controls)

    def _branches(self, draws: list[Draw]) -> list[list[Draw]]:
        """Return the draws made under each branch of the one ``if`` around them."""
        conditions = {
            id(c): c for draw in draws for c in draw.controls if c.data == "if_" and not self._always(c, draws)
        }
        if not conditions:
            return [draws]
        if len(conditions) > 1:
            raise refuse(self._source, draws[0].statement, "the prior stands under several conditions.", _OWN)
        (condition,) = conditions.values()
        return [
            [d for d in draws if condition not in d.controls or branch(condition, d.statement) == which]
            for which in (1, 2)
        ]

    def check_outcome(self, variable: Variable, draws: list[Draw]) -> None:
        """Refuse an outcome unless its elements are surely drawn at most once, under conditions on data alone."""
        if not draws:
            raise refuse(
                self._source,
                variable.node,
                f"the observed {variable.name!r} has no density that bread can draw from.",
                _OWN,
            )
        found: list[tuple[Draw, Region]] = []
        for draw in draws:
            positions = draw.places()
            scopes, source = self._flow.scopes, self._source
            asked = [c for c in draw.controls if not asks_for_code(draw, c, scopes, source, self._is_free)]
            if self._splitter.is_observed(self._flow.reads(*headers(asked), *positions)):
                raise refuse(self._source, draw.statement, "which outcomes are drawn depends on observed data.", _OWN)
            if any(v.kind == "parameter" for v in self._flow.depends(*headers(draw.controls), *positions)):
                raise refuse(self._source, draw.statement, "which outcomes are drawn depends on parameters.", _OWN)
            if variable.plain == "int" and not self._is_discrete(draw):
                raise refuse(
                    self._source,
                    draw.statement,
                    f"the integer {variable.name!r} has a continuous density.",
                    "Declare it as real.",
                )
            regions = self._coverage.many_regions(draw.variate, draw.controls)
            if self._are_surely_several([draw]):
                several = f"elements of {variable.name!r} have several densities."
                raise refuse(self._source, draw.statement, several, _OWN)
            if regions is None:
                self.counted[variable] = None
            for region in regions or ():
                for other, covered in found:
                    is_exclusive = exclusive(draw.controls, draw.statement, other.controls, other.statement)
                    if is_exclusive or self._coverage.disjoint(region, covered):
                        continue
                    self.counted[variable] = None
                    if self._are_surely_several([draw, other]):
                        raise refuse(
                            self._source, draw.statement, f"elements of {variable.name!r} have two densities.", _OWN
                        )
                found.append((draw, region))
        if any(self._is_condition(c) for d in draws for c in d.controls) or not self._coverage.covers(
            variable, [r for _, r in found]
        ):
            self.notes.append(f"Elements of {variable.name!r} that have no density are held at their observed values.")

    def _is_condition(self, control: Node) -> bool:
        return control.data == "if_" and any(name_of(n) != PRIOR_ONLY for n in self._headers(control))

    def _is_discrete(self, draw: Draw) -> bool:
        first = draw.components[0] if draw.components else draw
        return first.law.discrete


def first_jump(block: Node) -> Node | None:
    """Return the first break, continue or return of a block."""
    return next((node for node in walk(block) if node.data in ("break_", "continue_", "return_")), None)


def stays_inside(variable: Variable, draw: Draw) -> bool:
    """Return whether a simulated outcome never leaves its declared bounds, for certain."""
    if draw.components:
        return all(stays_inside(variable, component) for component in draw.components)
    lower, upper = variable.bounds.get("lower"), variable.bounds.get("upper")
    support = draw.law.support
    lower_zero = lower is None or is_number(lower, 0)
    if draw.variate.wrappers:
        return False
    if support == "inside":
        return True
    if support in ("positive", "counts"):
        if draw.distribution in ("bernoulli", "bernoulli_logit"):
            return lower_zero and (upper is None or is_number(upper, 1))
        return lower_zero and upper is None
    if support == "unit":
        return lower_zero and (upper is None or is_number(upper, 1))
    if support == "categories":
        return (lower_zero or is_number(lower, 1)) and upper is None
    return False
