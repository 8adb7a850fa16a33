"""Which contributions to the log density are likelihood, and which are prior.

A contribution is likelihood exactly if its value depends on an observed variable; statements count as a whole. A
sum is split only where every term free of observed variables is a complete density of a parameter. What remains in
doubt is refused, never guessed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from bread.backends.stan.language.dataflow import Contribution, Dataflow
from bread.backends.stan.language.refusals import quote, refuse
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import (
    Node,
    distribution_of,
    is_density,
    name_of,
    nodes,
    strip,
    terms,
    token,
    walk,
)
from bread.errors import InvalidArgumentError

Part = Literal["prior", "likelihood", "both"]
_NAME_LINES = "Name the lines of the likelihood: likelihood=[...]; every other contribution is then prior."


@dataclass(frozen=True, eq=False)
class Classified:
    """A contribution and its part; for "both", the terms of its sum that are likelihood."""

    contribution: Contribution
    part: Part
    likelihood_terms: tuple[Node, ...] = ()

    @property
    def node(self) -> Node:
        """The statement."""
        return self.contribution.node


class Splitter:
    """Classifies the contributions of one program."""

    def __init__(self, flow: Dataflow, source: Source, observed: Collection[Variable]) -> None:
        self._flow = flow
        self._source = source
        self._observed = frozenset(observed)

    def is_observed(self, variables: Collection[Variable]) -> bool:
        """Return whether values of ``variables`` depend on an observed variable."""
        return not self._observed.isdisjoint(self._flow.closure(variables))

    def _depends_observed(self, *expressions: Node) -> bool:
        return self.is_observed(self._flow.reads(*expressions))

    def has_parameter(self, *expressions: Node) -> bool:
        """Return whether the values of ``expressions`` depend on a parameter."""
        return any(variable.kind == "parameter" for variable in self._flow.depends(*expressions))

    def split(self) -> list[Classified]:
        """Classify every contribution.

        Raises
        ------
        RefusedError
            The split is in doubt.
        """
        if self._flow.target_reads:
            raise refuse(
                self._source,
                self._flow.target_reads[0],
                "reads the log density accumulated so far, which tempering changes.",
                "Write the statement without target().",
            )
        result = [self._classify(contribution) for contribution in self._flow.contributions]
        if not any(item.part != "prior" for item in result):
            names = ", ".join(repr(v.name) for v in self._observed)
            node = self._flow.contributions[0].node if self._flow.contributions else next(iter(self._observed)).node
            raise refuse(
                self._source,
                node,
                f"no contribution to the log density depends on the observed {names}.",
                "Check observed=[...].",
            )
        return result

    def split_by_lines(self, lines: Sequence[int]) -> list[Classified]:
        """Classify by the user's own word: contributions that start on ``lines`` are likelihood.

        Raises
        ------
        InvalidArgumentError
            A line holds no contribution.
        """
        have = {c.line for c in self._flow.contributions}
        for line in lines:
            if line not in have:
                raise InvalidArgumentError(
                    f"likelihood={line}: no statement that adds to the log density starts on line {line} of "
                    f"{self._source.name!r}. Lines that do: {', '.join(map(str, sorted(have))) or 'none'}."
                )
        if self._flow.target_reads:
            return self.split()
        result = []
        for contribution in self._flow.contributions:
            if contribution.line in lines and contribution.kind in ("jacobian", "function"):
                raise refuse(
                    self._source, contribution.node, "is not a term that can be tempered.", "Write it as target += ..."
                )
            result.append(Classified(contribution, "likelihood" if contribution.line in lines else "prior"))
        return result

    # single contributions

    def _classify(self, contribution: Contribution) -> Classified:
        source, node = self._source, contribution.node
        own, control = self.is_observed(contribution.own), self.is_observed(contribution.control)
        if contribution.kind == "function":
            if own or control:
                raise refuse(
                    source,
                    node,
                    "a function ending in _lp or _jacobian adds to the log density and depends on observed data.",
                    "Write its statements in the model block.",
                )
            return Classified(contribution, "prior")
        if contribution.kind == "jacobian":
            if own or control:
                raise refuse(source, node, "a Jacobian term that depends on observed data.", "Take the data out of it.")
            return Classified(contribution, "prior")
        if contribution.kind == "tilde":
            return self._classify_tilde(contribution, own, control)
        return self._classify_target(contribution, own, control)

    def _classify_tilde(self, contribution: Contribution, own: bool, control: bool) -> Classified:
        node = contribution.node
        variate, *arguments = nodes(node)
        if own:
            self._refuse_reassigned(node, variate, arguments)
            return Classified(contribution, "likelihood")
        if control and self.has_parameter(variate):
            raise refuse(
                self._source,
                node,
                "the prior of a parameter stands under a condition or a loop that depends on observed data.",
                "Take the observed data out of the condition. " + _NAME_LINES,
            )
        if control:
            return Classified(contribution, "likelihood")
        if not self.has_parameter(variate) and self.has_parameter(*nodes(node)[1:]):
            self._refuse_disguised(node, variate)
        return Classified(contribution, "prior")

    def _refuse_reassigned(self, node: Node, variate: Node, arguments: list[Node]) -> None:
        """Refuse a parameter whose law may depend on observed data only by a later value of a local variable."""
        if self._depends_observed(variate) or not self.has_parameter(variate):
            return
        for variable in self._flow.depends(*arguments):
            whole = [d for d in self._flow.definitions.get(variable, ()) if d.whole and not d.increment]
            if variable.kind == "local" and len(whole) > 1 and self.is_observed([variable]):
                raise refuse(
                    self._source,
                    node,
                    f"the local variable {variable.name!r} is assigned several times, and depends on observed data at "
                    "some of them: in doubt.",
                    "Use one variable for each value. " + _NAME_LINES,
                )

    def _refuse_disguised(self, node: Node, variate: Node) -> None:
        if not any(v.kind == "data" for v in self._flow.depends(variate)):
            raise refuse(
                self._source,
                node,
                "a constant stands as the outcome: an observation in disguise, or a prior?",
                _NAME_LINES,
            )
        raise refuse(
            self._source,
            node,
            "has a density of data that are not observed: part of the likelihood, or of the prior?",
            "Add them to observed=[...]. " + _NAME_LINES,
        )

    def _classify_target(self, contribution: Contribution, own: bool, control: bool) -> Classified:
        value = nodes(contribution.node)[1]
        pieces = self.pieces(value)
        if control:
            if any(self._is_prior_density(piece) for _, piece in pieces):
                raise refuse(
                    self._source,
                    contribution.node,
                    "the prior of a parameter stands under a condition or a loop that depends on observed data.",
                    "Take the observed data out of the condition. " + _NAME_LINES,
                )
            return Classified(contribution, "likelihood")
        if not own:
            truncated = {distribution_of(piece) for _, piece in pieces if self._is_prior_density(piece)}
            for sign, piece in pieces:
                if sign < 0 and self.is_normaliser(piece) and self._truncates(piece) in truncated:
                    continue
                self._check_prior_term(contribution.node, piece)
            return Classified(contribution, "prior")
        return self._classify_mixed(contribution, value, pieces)

    def _classify_mixed(self, contribution: Contribution, value: Node, pieces: list[tuple[int, Node]]) -> Classified:
        for _, piece in pieces:
            if is_density(piece) and nodes(piece):
                self._refuse_reassigned(contribution.node, nodes(piece)[0], nodes(piece)[1:])
        free = [piece for _, piece in pieces if not self._depends_observed(piece) and self.has_parameter(piece)]
        if not any(self._is_prior_density(piece) for piece in free):
            return Classified(contribution, "likelihood")
        own_terms = terms(value)
        by_term = [(sign, term, self._depends_observed(term)) for sign, term in own_terms]
        splittable = all(self._is_prior_density(piece) for piece in free) and len(own_terms) == len(pieces)
        if not splittable or any(sign < 0 for sign, _, _ in by_term):
            raise refuse(
                self._source,
                contribution.node,
                "adds a prior density and terms of the likelihood, which cannot be told apart safely.",
                "Write one `target +=` for each.",
            )
        return Classified(contribution, "both", tuple(term for _, term, own in by_term if own))

    def pieces(self, value: Node, sign: int = 1, seen: frozenset[Variable] = frozenset()) -> list[tuple[int, Node]]:
        """Return the terms of a sum, accumulators (``lp += ..`` here and there, added once) replaced by their terms."""
        result = []
        for factor, term in terms(value, sign):
            variable = self._flow.scopes.variable(term) if term.data == "variable" else None
            if id(term) in self._flow.jacobians:
                result.append((factor, term))
            elif variable is not None and variable not in seen and self.is_accumulator(variable):
                for definition in self._flow.definitions[variable]:
                    assert definition.value is not None
                    result += self.pieces(definition.value, factor, seen | {variable})
            elif variable in seen:
                continue
            else:
                result.append((factor, term))
        return result

    def is_accumulator(self, variable: Variable) -> bool:
        """Return whether a real variable is a sum of terms: one plain start, then increments."""
        definitions = self._flow.definitions.get(variable, [])
        if variable.plain != "real" or variable.rank or variable.kind not in ("local", "transformed parameter"):
            return False
        plain = 0
        for definition in definitions:
            if definition.value is None:
                return False
            if definition.increment:
                continue
            value_terms = terms(definition.value)
            own = [
                t
                for s, t in value_terms
                if s > 0 and t.data == "variable" and self._flow.scopes.variable(t) is variable
            ]
            if not own:
                plain += 1
        return bool(definitions) and plain <= 1

    # terms

    def _is_prior_density(self, piece: Node) -> bool:
        return (
            is_density(piece)
            and bool(nodes(piece))
            and not self._depends_observed(piece)
            and self.has_parameter(nodes(piece)[0])
        )

    def _check_prior_term(self, statement: Node, piece: Node) -> None:
        """Refuse a term free of observed data that is no complete density of a parameter."""
        piece = strip(piece)
        if not self.has_parameter(piece) or self._is_prior_density(piece) or id(piece) in self._flow.jacobians:
            return
        if is_density(piece) and nodes(piece):
            self._refuse_disguised(piece, nodes(piece)[0])
        if self.is_normaliser(piece):
            raise refuse(
                self._source,
                statement,
                f"adds or takes off a probability that depends on parameters alone (`{quote(self._source, piece)}`): "
                "of censored observations, whose limit is not observed data, or does it normalise a prior?",
                _NAME_LINES,
            )
        raise refuse(
            self._source,
            statement,
            f"adds a term that depends on parameters alone and is no density that bread knows "
            f"(`{quote(self._source, piece)}`): part of the prior, or of the likelihood?",
            "Write it as a density. " + _NAME_LINES,
        )

    def _truncates(self, piece: Node) -> str:
        """Return the distribution whose truncation a term normalises."""
        found = next(
            n for n in walk(piece) if n.data in ("density", "call") and name_of(n).endswith(("_lcdf", "_lccdf"))
        )
        return name_of(found).rpartition("_")[0]

    def is_normaliser(self, piece: Node) -> bool:
        """Return whether a term is the log probability of a truncation: ``normal_lccdf(0 | mu, s)``, or n times it."""
        piece = strip(piece)
        if piece.data in ("density", "call") and name_of(piece).endswith(("_lcdf", "_lccdf")):
            return not self.has_parameter(nodes(piece)[0])
        if piece.data == "call" and name_of(piece) == "log_diff_exp":
            return all(self.is_normaliser(argument) for argument in nodes(piece))
        if piece.data == "binary" and token(piece, "TIMES") == "*":
            left, right = nodes(piece)
            return (not self.has_parameter(left) and self.is_normaliser(right)) or (
                not self.has_parameter(right) and self.is_normaliser(left)
            )
        return False
