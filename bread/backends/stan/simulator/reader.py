"""Statements that give a density, read as random draws: ``x ~ d(a)``, ``target += d_lpdf(x | a)`` as x = d_rng(a)."""

from __future__ import annotations

from collections.abc import Callable

from bread.backends.stan.language.dataflow import Dataflow, Definition
from bread.backends.stan.language.distributions import DISTRIBUTIONS, GENERALISED_LINEAR
from bread.backends.stan.language.refusals import refuse
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import (
    Node,
    distribution_of,
    end,
    is_density,
    name_of,
    nodes,
    start,
    strip,
    terms,
)
from bread.backends.stan.language.variates import Variate, looked_up, read_variate
from bread.backends.stan.simulator.copies import filled_container, read_elementwise
from bread.backends.stan.simulator.coverage import Coverage
from bread.backends.stan.simulator.draw import Argument, Draw, Reading
from bread.backends.stan.simulator.dropped import headers, refuse_dropped
from bread.backends.stan.simulator.forms.censored import CensoredReader
from bread.backends.stan.simulator.forms.gathered import read_gathered
from bread.backends.stan.simulator.forms.hidden import read_hidden
from bread.backends.stan.simulator.forms.inflated import InflatedReader
from bread.backends.stan.simulator.forms.mixtures import read_mixture
from bread.backends.stan.simulator.forms.own import own_mass, summed_mass
from bread.backends.stan.simulator.forms.own_density import own_density
from bread.backends.stan.simulator.forms.points import PointsReader
from bread.backends.stan.simulator.forms.residuals import read_residuals
from bread.backends.stan.simulator.left_sides import check_derivative, refuse_left_side
from bread.backends.stan.simulator.unread import no_density
from bread.backends.stan.split.split import Classified, Splitter

_OWN = "Pass simulator=: a Stan program or a Python function that draws parameters and data."


# What a term of the log density may be, other than a density; each reads it or returns None.
TermForm = Callable[[Reading, Node, tuple[Node, ...], Node], list[Draw] | None]
TERM_FORMS: tuple[TermForm, ...] = (read_hidden, read_mixture, read_gathered)


class Reader:
    """Reads the draws of one program; implements `bread.backends.stan.simulator.draw.Reading`.

    Attributes
    ----------
    flow : Dataflow
    source : Source
    outcomes : frozenset of Variable
    """

    def __init__(self, flow: Dataflow, source: Source, splitter: Splitter, observed: frozenset[Variable]) -> None:
        self.flow = flow
        self.source = source
        self.outcomes = observed
        self._splitter = splitter
        self._inflated = InflatedReader(self)
        self._cases = (CensoredReader(self), PointsReader(self))
        self._coverage = Coverage(flow)
        self._is_named_likelihood = False

    def read(self, classified: Classified) -> list[Draw]:
        """Read one contribution.

        Raises
        ------
        RefusedError
            It is no draw that bread can make.
        """
        contribution, node = classified.contribution, classified.node
        self._is_named_likelihood = classified.part == "likelihood"
        if contribution.kind == "function":
            raise refuse(
                self.source,
                node,
                "a function that adds to the log density has no simulator.",
                "Write its statements in the model block. " + _OWN,
            )
        if contribution.kind == "jacobian":
            raise refuse(
                self.source,
                node,
                "a change of variables has no simulator.",
                "Declare the variable that has the prior as a parameter. " + _OWN,
            )
        for cases in self._cases:
            found = cases.read(node, contribution.controls)
            if found is not None:
                return found
        if contribution.kind == "tilde":
            variate, *arguments = nodes(node)
            truncation = next((child for child in arguments if child.data == "truncation"), None)
            low = high = None
            residuals = read_residuals(self.flow, contribution, lambda v: v in self.outcomes)
            if residuals is not None:
                return residuals
            if truncation is not None:
                arguments.remove(truncation)
                low = next((nodes(c)[0] for c in nodes(truncation) if c.data == "lower_limit"), None)
                high = next((nodes(c)[0] for c in nodes(truncation) if c.data == "upper_limit"), None)
            draw = self._draw(node, contribution.controls, distribution_of(node), variate, arguments, low, high)
            return [draw] if draw is not None else []
        inflated = self._inflated.read(node, contribution.controls)
        if inflated is not None:
            return inflated
        return self._read_sum(node, contribution.controls, terms(nodes(node)[1]))

    def _draw(
        self,
        node: Node,
        controls: tuple[Node, ...],
        name: str,
        variate_node: Node,
        arguments: list[Node],
        low: Node | None = None,
        high: Node | None = None,
    ) -> Draw | None:
        if not self._is_random(variate_node, *arguments):
            self._leave_out(node, controls, node)
            return None
        variate = self.variate(variate_node)
        if variate is None:
            raise refuse_left_side(self.flow, self.source, node, variate_node, self._is_drawn)
        own = self._splitter.is_observed(self.flow.reads(*arguments))
        if variate.variable.kind == "parameter" and own:
            raise refuse(
                self.source,
                node,
                f"the prior of {variate.variable.name!r} depends on observed data.",
                "Use constants, or a data variable of its own for the values computed from the outcomes.",
            )
        check_derivative(self.flow, self.source, node, variate_node, variate)
        read = tuple(Argument((argument,)) for argument in arguments)
        is_truncated = low is not None or high is not None
        own_law = own_mass(self.flow, self.source, node, name, arguments, is_truncated)
        density = own_density(self, node, name, arguments, variate, is_truncated)
        if density is not None:
            added, law, functions, note = density
            return Draw(node, controls, variate, added, read, own=law, functions=functions, note=note)
        if own_law is not None:
            form = summed_mass(self.flow, self.source, node, name, variate)
            return Draw(node, controls, variate, name, read, form=form, own=own_law)
        if name in GENERALISED_LINEAR:
            name, templates = GENERALISED_LINEAR[name]
            read = tuple(Argument(tuple(arguments), template) for template in templates)
        if name not in DISTRIBUTIONS:
            raise refuse(self.source, node, f"Stan has no random number generator for {name!r}.", _OWN)
        return Draw(node, controls, variate, name, read, low, high)

    def variate(self, node: Node) -> Variate | None:
        """Read what a statement gives a density, under any name; None where it is no variable's elements."""
        return read_variate(node, self.flow.scopes, self._is_drawn, self._alias)

    def _alias(self, variable: Variable) -> Node | Variate | None:
        """Return what a variable is another name for, if it is defined once, in one piece or element by element.

        A container of one element is another name for what is put there.
        """
        definitions = self.flow.definitions.get(variable, [])
        if variable.kind not in ("transformed data", "transformed parameter", "local") or len(definitions) != 1:
            return None
        (definition,) = definitions
        whole = definition.whole or self._coverage.is_one_element(variable)
        # declared in the innermost loop or condition around the value, it has no value of another turn
        fresh = all(start(one) <= start(variable.node) < end(one) for one in definition.controls)
        plain = whole and fresh and not definition.increment
        return definition.value if plain else read_elementwise(self.flow, definition, self._is_drawn)

    def _is_random(self, *expressions: Node) -> bool:
        variables = self.flow.depends(*expressions)
        return any(v.kind == "parameter" for v in variables) or not self.outcomes.isdisjoint(variables)

    def _leave_out(self, node: Node, controls: tuple[Node, ...], term: Node) -> None:
        refuse_dropped(self.flow, self.source, self._is_drawn, node, controls, term)

    def _is_drawn(self, variable: Variable) -> bool:
        return variable.kind == "parameter" or variable in self.outcomes

    # target += ...

    def _read_sum(self, node: Node, controls: tuple[Node, ...], summed: list[tuple[int, Node]]) -> list[Draw]:
        draws: list[Draw] = []
        normalisers: list[tuple[int, Node]] = []
        # what cannot be drawn is best shown by a term with an outcome
        for factor, term in sorted(summed, key=lambda one: not self._splitter.is_observed(self.flow.reads(one[1]))):
            if id(term) in self.flow.jacobians:
                continue
            if not self._is_random(term):
                self._leave_out(node, controls, term)
                continue
            variable = self.flow.scopes.variable(term) if term.data == "variable" else None
            is_sum = variable is not None and self._splitter.is_accumulator(variable)
            collected = variable if is_sum else filled_container(self.flow, term)
            if collected is not None:
                self._check_added_once(node, controls, collected)
                for definition in self.flow.definitions[collected]:
                    draws += self._read_definition(definition, collected, factor)
            elif self._splitter.is_normaliser(term):
                normalisers.append((factor, term))
            elif factor < 0:
                raise self._no_density(node, controls, term)
            else:
                draws += self._read_densities(node, controls, term)
        return [self._truncate(node, draws, normalisers)] if normalisers else draws

    def _check_added_once(self, node: Node, controls: tuple[Node, ...], variable: Variable) -> None:
        """Refuse an accumulator that may be added more or less than once, or before it is complete."""
        inside = all(start(control) <= start(variable.node) < end(control) for control in controls)
        complete = all(start(definition.node) < start(node) for definition in self.flow.definitions[variable])
        if not inside or not complete:
            raise refuse(
                self.source,
                node,
                f"adds {variable.name!r}, filled elsewhere: its terms may count more or less than once.",
                "Add each density with its own target += ... " + _OWN,
            )

    def _read_definition(self, definition: Definition, variable: Variable, sign: int) -> list[Draw]:
        """Read the terms that one increment adds to an accumulator."""
        assert definition.value is not None
        kept = [
            (factor, term)
            for factor, term in terms(definition.value, sign)
            if not (term.data == "variable" and self.flow.scopes.variable(term) is variable)
        ]
        return self._read_sum(definition.node, definition.controls, kept)

    def _read_densities(self, node: Node, controls: tuple[Node, ...], term: Node) -> list[Draw]:
        if self.is_density(term) and nodes(term):
            draw = self._component(node, controls, term)
            if draw is not None:
                return [draw]
        for read in TERM_FORMS:
            found = read(self, node, controls, term)
            if found is not None:
                return found
        raise self._no_density(node, controls, term)

    def is_density(self, term: Node) -> bool:
        """Return whether a term is a density, or looks up the log probability of an outcome in a table."""
        return is_density(term) or self._lookup(term) is not None

    def _lookup(self, term: Node) -> tuple[Node, Argument] | None:
        """Read ``log(phi[k, w[n]])`` or ``log_phi[k, w[n]]``: the outcome, and the probabilities of its values.

        Those of a simplex sum to one; others are made to show it whenever they are used.
        """
        found = looked_up(term, self.flow.scopes)
        if found is None:
            return None
        base, places, outcome, is_log = found
        variate = read_variate(outcome, self.flow.scopes, lambda v: v in self.outcomes)
        if variate is None or variate.open or variate.wrappers:
            return None
        chosen = ", ".join(f"{{{i}}}" for i in range(1, len(places) + 1))
        template = f"{{0}}[{chosen}]" if places else "{0}"
        held = self.flow.scopes.variable(base) if base.data == "variable" else None
        if held is None or held.type != "simplex" or not is_log:
            template = f"bread_probabilities({template if is_log else f'exp({template})'})"
        return outcome, Argument((base, *places), template)

    def selection(self, node: Node) -> Variate | None:
        """Read the elements of one outcome that an expression takes."""
        return read_variate(node, self.flow.scopes, lambda v: v in self.outcomes)

    def component(self, node: Node, controls: tuple[Node, ...], term: Node) -> Draw | None:
        """Read the density of a mixture's component; none of the program's own that is no law of Stan's."""
        draw = self._component(node, controls, term)
        return None if draw is None or draw.functions else draw

    def _component(self, node: Node, controls: tuple[Node, ...], term: Node) -> Draw | None:
        lookup = self._lookup(term)
        if lookup is not None:
            outcome, simplex = lookup
            found = read_variate(outcome, self.flow.scopes, self._is_drawn)
            return None if found is None else Draw(node, controls, found, "categorical", (simplex,))
        variate, *arguments = nodes(term)
        return self._draw(node, controls, distribution_of(term), variate, arguments)

    def _no_density(self, node: Node, controls: tuple[Node, ...], term: Node) -> Exception:
        part = "likelihood" if self._is_likelihood(controls, term) else "prior"
        return no_density(self.flow, self.source, node, term, part)

    def _is_likelihood(self, controls: tuple[Node, ...], term: Node) -> bool:
        """Return whether a term belongs to the likelihood: by its value, by the conditions that it stands under."""
        return self._is_named_likelihood or self._splitter.is_observed(self.flow.reads(term, *headers(controls)))

    def _truncate(self, node: Node, draws: list[Draw], normalisers: list[tuple[int, Node]]) -> Draw:
        """Read ``d_lpdf(x | a) - d_lccdf(0 | a)``: the distribution truncated below at 0."""
        if any(sign > 0 for sign, _ in normalisers):  # what normalises a truncation is taken off, never added
            raise refuse(
                self.source,
                node,
                "adds the probability of a range, as of a censored observation, which bread does not simulate.",
                "Pass simulator=: a Stan program or a Python function that draws parameters and data, and censors as "
                "yours were; name what says which are censored as observed, too.",
            )
        reason = "normalises a truncation in a way that bread does not know."
        if len(draws) != 1 or len(normalisers) != 1:
            raise refuse(self.source, node, reason, "Write x ~ d(...) T[low, high].")
        (draw,), ((sign, term),) = draws, normalisers
        term = strip(term)
        if not any(v.kind == "parameter" for v in self.flow.depends(term)):
            self._leave_out(node, draw.controls, term)
            return draw
        name = name_of(term) if term.data in ("density", "call") else ""
        limit, *arguments = nodes(term) if name else (term,)
        same = [self.source.code[a.meta.start_pos : a.meta.end_pos].split() for a in arguments] == [
            self.source.code[a.parts[0].meta.start_pos : a.parts[0].meta.end_pos].split() for a in draw.arguments
        ]
        if (
            sign > 0
            or not same
            or draw.own is not None
            or draw.variate.open
            or name not in (f"{draw.distribution}_lccdf", f"{draw.distribution}_lcdf")
        ):
            raise refuse(self.source, node, reason, "Write x ~ d(...) T[low, high].")
        low, high = (limit, None) if name.endswith("_lccdf") else (None, limit)
        return Draw(draw.statement, draw.controls, draw.variate, draw.distribution, draw.arguments, low, high)
