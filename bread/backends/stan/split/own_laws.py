"""Which statements of a program are the law of some parameters alone: what gives way to another law of theirs."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from bread.backends.stan.language.dataflow import Contribution, Dataflow
from bread.backends.stan.language.refusals import refuse
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, is_density, nodes, terms

_WAY_OUT = "Use simulate_from='prior'."


class OwnLaws:
    """Tells the law of named parameters from that of the others.

    Parameters
    ----------
    flow : Dataflow
    source : Source
    names : collection of str
        Parameters.
    """

    def __init__(self, flow: Dataflow, source: Source, names: Collection[str]) -> None:
        self._flow = flow
        self._source = source
        self._names = frozenset(names)

    def belongs(self, contribution: Contribution, part: str) -> bool:
        """Return whether a contribution is a part of the law of the named parameters.

        It is if no other parameter enters it. It is not if it is likelihood, or gives a density to other parameters.

        Raises
        ------
        RefusedError
            It is neither: the laws cannot be told apart, or the named parameters depend on others.
        """
        node = contribution.node
        if part == "likelihood":
            return False
        everything = self._parameters(self._flow.closure(contribution.own | contribution.control))
        if part == "prior" and everything and everything <= self._names and contribution.kind != "function":
            return True
        pieces = [node] if contribution.kind == "tilde" else [piece for _, piece in self._terms(contribution)]
        for piece in pieces:
            self._refuse_shared(node, piece, part, is_tilde=contribution.kind == "tilde")
        return False

    def _terms(self, contribution: Contribution) -> list[tuple[int, Node]]:
        if contribution.kind == "function":
            return [(1, contribution.node)]
        return terms(nodes(contribution.node)[1])

    def _refuse_shared(self, statement: Node, piece: Node, part: str, *, is_tilde: bool) -> None:
        if self._parameters(self._flow.depends(piece)).isdisjoint(self._names):
            return
        has_variate = is_tilde or (is_density(piece) and bool(nodes(piece)))
        own: frozenset[str] = self._parameters(self._flow.depends(nodes(piece)[0])) if has_variate else frozenset()
        if own.isdisjoint(self._names) and (own or (part == "both" and has_variate)):
            return
        named = ", ".join(repr(name) for name in sorted(self._names))
        reason = f"the law of {named} cannot be told from that of other parameters."
        if own and own <= self._names:
            reason = f"the law of {', '.join(repr(name) for name in sorted(own))} depends on other parameters."
        raise refuse(self._source, statement, reason, f"Write one statement for each parameter. {_WAY_OUT}")

    def _parameters(self, variables: Iterable[Variable]) -> frozenset[str]:
        return frozenset(variable.name for variable in variables if variable.kind == "parameter")
