"""Text edits after which the data say which observations, along the outcome's first dimension, are in the likelihood.

The program keeps every statement. One that takes a single element, ``y[n] ~ ..`` in a loop, stands under a condition;
one that takes many, ``y ~ ..``, takes a part of its outcome and of those arguments that have an element for each. What
else depends on an outcome is refused: the likelihood would not be a sum over observations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bread.backends.stan.language.dataflow import Contribution, Dataflow, Definition
from bread.backends.stan.language.distributions import DISTRIBUTIONS
from bread.backends.stan.language.refusals import RefusedError, refuse
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import (
    Node,
    distribution_of,
    end,
    is_density,
    is_number,
    name_of,
    nodes,
    start,
    strip,
    terms,
)
from bread.backends.stan.language.variates import rank, read_variate
from bread.backends.stan.split.observation_reads import ObservationReads, headers
from bread.backends.stan.split.rewriting import DECLARATION, Edit

SIZE, IS_IN = "bread_n_observations", "bread_is_in"  # names of the data that say which observations count
DATA = f"int<lower=0> {SIZE}; array[{SIZE}] int<lower=0, upper=1> {IS_IN};"
_CONTAINERS = ("vector", "row_vector", "matrix", "array[] int", "array[,] int", "array[] real", "array[] vector")
FUNCTIONS = " ".join(
    [
        "array[] int bread_places(array[] int is_in) {"
        " array[sum(is_in)] int at; int last = 0;"
        " for (n in 1:size(is_in)) if (is_in[n] == 1) { last += 1; at[last] = n; }"
        " return at; }",
        "array[] int bread_tiled(array[] int x, int times) {"
        " array[size(x) * times] int y; int last = 0;"
        " for (i in 1:times) for (n in 1:size(x)) { last += 1; y[last] = x[n]; }"
        " return y; }",
        *(f"{one} bread_pick({one} x, array[] int at) {{ return x; }}" for one in ("int", "real")),
        *(f"{one} bread_pick({one} x, array[] int at) {{ return x[at]; }}" for one in _CONTAINERS),
        "array[] row_vector bread_pick(array[] row_vector x, array[] int at) { return x[at]; }",
    ]
)
# Of regressions in one statement, the arguments that have an element, or a row, for each outcome.
_BY_ROW = {
    "bernoulli_logit_glm": (0, 1),
    "binomial_logit_glm": (0, 1, 2),
    "poisson_log_glm": (0, 1),
    "neg_binomial_2_log_glm": (0, 1, 3),
    "normal_id_glm": (0, 1, 3),
    "ordered_logistic_glm": (0,),
    "categorical_logit_glm": (0,),
}
_LOOP = "Write a loop over the observations, `for (n in 1:N) y[n] ~ ...;`, whose statement reads one of them."


def with_observations(
    edits: Sequence[Edit], parts: Sequence[str], flow: Dataflow, source: Source, outcome: Variable
) -> list[Edit]:
    """Return the edits of the tempered program and those after which data say which observations count.

    Parameters
    ----------
    edits : sequence of Edit
        They make the tempered program from ``source``.
    parts : sequence of str
        Of each contribution of ``flow``: "prior", "likelihood" or "both".
    flow : Dataflow
    source : Source
    outcome : Variable
        The one observed variable.

    Raises
    ------
    RefusedError
        A statement is not known to be a sum over observations.
    """
    rewriter = _Rewriter(flow, source, outcome)
    for contribution, part in zip(flow.contributions, parts, strict=True):
        if part != "prior":
            rewriter.rewrite(contribution, part)
        elif outcome in flow.closure(contribution.own | contribution.control):
            raise refuse(source, contribution.node, "counts as prior and depends on the outcomes.", "")
    declared = [
        replace(edit, text=edit.text.replace(DECLARATION, f"{DECLARATION} {FUNCTIONS}", 1))
        if DECLARATION in edit.text
        else edit
        for edit in edits
    ]
    return [*rewriter.before, *declared, *rewriter.after]


class _Rewriter:
    """Collects the edits of one program: those that go before an edit at the same place, and after."""

    def __init__(self, flow: Dataflow, source: Source, outcome: Variable) -> None:
        self._flow, self._source, self._outcome = flow, source, outcome
        self._reads = ObservationReads(flow, source, outcome)
        self.before: list[Edit] = []
        self.after: list[Edit] = []
        self._gathered: set[Variable] = set()

    def rewrite(self, contribution: Contribution, part: str) -> None:
        """Make a contribution one of the observations that count."""
        node, controls = contribution.node, contribution.controls
        expressions = nodes(node) if contribution.kind == "tilde" else nodes(node)[1:]
        index = self._reads.common_index(expressions, controls) if part == "likelihood" else None
        if index is not None:
            self._guard(node, index)
            return
        outside = self._reads.outside(expressions, controls)
        if outside is not None:
            raise self._refuse(
                node,
                f"reads the local variable {outside.name!r}, which may hold what other observations left there.",
                "Declare it inside the loop over the observations.",
            )
        if self._reads.depends(*headers(controls)):
            raise self._refuse(node, "stands under a condition, or in a loop, that depends on other outcomes.")
        if contribution.kind == "tilde":
            if any(child.data == "truncation" for child in nodes(node)):
                raise self._refuse(node, "truncates several outcomes at once.")
            self._pick_density(node, node)
            return
        for sign, term in terms(nodes(node)[1]):
            if part != "both" or self._reads.depends(term):
                self._pick_term(node, sign, term)

    def _guard(self, statement: Node, index: str) -> None:
        self.before.append(Edit(start(statement), start(statement), f"{{ if ({IS_IN}[{index}] == 1) "))
        self.after.append(Edit(end(statement), end(statement), " }"))

    def _pick(self, expression: Node, places: str) -> None:
        self.after.append(Edit(start(expression), start(expression), "bread_pick("))
        self.before.append(Edit(end(expression), end(expression), f", {places})"))

    # -- terms of a sum ---------------------------------------------------------------------------------------

    def _pick_term(self, statement: Node, sign: int, term: Node) -> None:
        """Make a term of a sum one of the observations that count."""
        if sign < 0 or not self._reads.depends(term):
            raise self._refuse(statement, "adds a term that does not belong to single observations.", _LOOP)
        if is_density(term):
            self._pick_density(statement, term)
            return
        summed = strip(nodes(term)[0]) if term.data == "call" and name_of(term) == "sum" else term
        variable = self._flow.scopes.variable(summed) if summed.data == "variable" else None
        if variable is not None and variable.rank == 1 and variable in self._reads.carriers - {self._outcome}:
            self._pick(summed, f"bread_places({IS_IN})")
        elif variable is None or variable.rank or variable in self._gathered:
            raise self._refuse(statement, "is not known to be a sum over the observations.", _LOOP)
        else:
            self._gathered.add(variable)
            for definition in self._flow.definitions.get(variable, ()):
                self._gather(statement, variable, definition)

    def _gather(self, statement: Node, variable: Variable, definition: Definition) -> None:
        """Make an increment of a sum, which is gathered before it is added, one of the observations that count."""
        value = definition.value
        added = [] if value is None else terms(value)
        if not definition.increment:
            added = [(sign, one) for sign, one in added if not self._is(one, variable) or sign < 0]
            if is_number(value, 0.0):
                return
            if value is None or len(added) != len(terms(value)) - 1:
                raise self._refuse(statement, f"{variable.name!r} is no sum that begins at 0.", _LOOP)
        index = self._reads.common_index([one for _, one in added], definition.controls)
        if index is not None:
            self._guard(definition.node, index)
            return
        if self._reads.depends(*headers(definition.controls)):
            raise self._refuse(statement, "is gathered under a condition that depends on other outcomes.")
        for sign, one in added:
            self._pick_term(statement, sign, one)

    def _is(self, node: Node, variable: Variable) -> bool:
        return node.data == "variable" and self._flow.scopes.variable(node) is variable

    # -- densities of many outcomes ---------------------------------------------------------------------------

    def _pick_density(self, statement: Node, call: Node) -> None:
        """Make a vectorised statement, or a call of a density, one of the observations that count."""
        variate, *arguments = [child for child in nodes(call) if child.data != "truncation"]
        if self._reads.depends(*arguments):
            raise self._refuse(statement, "the law of some outcomes depends on others.")
        places, is_vector = self._places(statement, variate)
        for i in self._by_row(statement, distribution_of(call), arguments, is_vector):
            if rank(arguments[i], self._flow.scopes) != 0:
                self._pick(arguments[i], places)
        self._pick(variate, places)

    def _places(self, statement: Node, variate: Node) -> tuple[str, bool]:
        """Return which elements of a variate count, in Stan, and whether an element is more than a number."""
        carriers = self._reads.carriers
        read = read_variate(variate, self._flow.scopes, lambda variable: variable in carriers)
        if read is None or not read.open or read.indices[0].kind == "one":
            raise self._refuse(
                statement, "what has a density is no plain selection of the outcome's elements, known to be single "
                "observations.", _LOOP,
            )  # fmt: skip
        if any(self._reads.depends(node) for _, node in read.wrappers):
            raise self._refuse(statement, "the law of some outcomes depends on others.")
        first, variable = read.indices[0], read.variable
        low, high = (self._reads.text(node) if node is not None else "" for node in (first.low, first.high))
        chosen = {"between": f"[{low}:{high}]", "many": f"[{low}]"}.get(first.kind, "")
        is_in = f"{IS_IN}{chosen}"
        if read.open == (0,):
            return f"bread_places({is_in})", False
        if read.is_whole and variable.rank == 2 and variable.plain == "matrix":
            columns = self._reads.text(read.indices[1].size)
            return f"bread_places(bread_tiled({is_in}, {columns}))", False
        if read.open == (0, 1) and variable.array_sizes:
            return f"bread_places({is_in})", True
        raise self._refuse(statement, "takes elements of several observations in an order that is not followed.", _LOOP)

    def _by_row(self, statement: Node, name: str, arguments: Sequence[Node], is_vector: bool) -> Sequence[int]:
        """Return the arguments that have an element for each observation, where they are containers."""
        functions = self._flow.scopes.functions
        if f"{name}_lpdf" in functions or f"{name}_lpmf" in functions:
            raise self._refuse(statement, f"{name!r} is the program's own density of many outcomes at once.", _LOOP)
        if name in _BY_ROW:
            return _BY_ROW[name]
        law = DISTRIBUTIONS.get(name)
        if law is None or law.shape == "matrix" or is_vector != (law.shape == "vector"):
            raise self._refuse(statement, f"outcomes that {name!r} takes at once need not be independent.")
        if is_vector:
            return [i for i in law.vector_arguments if rank(arguments[i], self._flow.scopes) == 2]
        return [i for i in range(len(arguments)) if i not in law.vector_arguments]

    def _refuse(self, node: Node, reason: str, remedy: str = "") -> RefusedError:
        return refuse(self._source, node, reason, remedy)
