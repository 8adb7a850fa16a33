"""Outcomes whose errors have the density: ``err[t] = y[t] - nu[t]; ... err ~ normal(0, sigma)``.

Where an error is an outcome plus or minus other terms, the change of variables has derivative one. The errors are
drawn where the program computes them, and the outcomes follow, in the order of the program; that the errors computed
again from the outcomes have the same density is checked at every draw.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bread.backends.stan.language.dataflow import Contribution, Dataflow, Definition
from bread.backends.stan.language.distributions import DISTRIBUTIONS
from bread.backends.stan.language.rendering import Renderer
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.syntax import Node, distribution_of, nodes, start, strip, terms
from bread.backends.stan.language.variates import Variate, rank, read_variate
from bread.backends.stan.simulator.coverage import Coverage
from bread.backends.stan.simulator.draw import Argument, Draw, Mode, Writer

_FIXED = ("parameter", "transformed parameter", "data", "transformed data")


@dataclass(frozen=True, eq=False)
class Residual:
    """How one assignment computes an error: ``error = sign * outcome + rest``."""

    error: Node
    outcome: Node
    sign: int
    rest: tuple[tuple[int, Node], ...]

    def expressions(self, draw: Draw) -> list[Node]:
        """Return what the assignment reads and writes, but for the outcome."""
        return [self.error, *(term for _, term in self.rest)]

    def code(self, draw: Draw, writer: Writer, render: Renderer, mode: Mode) -> str:
        """Return the code in the place of the assignment: draw the error and the outcome, or compute it again."""
        arguments = [argument.text(render) for argument in draw.arguments]
        rest = " ".join(f"{'+' if sign > 0 else '-'} ({render(term)})" for sign, term in self.rest) or "+ 0"
        error, outcome = render(self.error), render(self.outcome)
        sign = "" if self.sign > 0 else "-"
        density = f"{draw.distribution}_lpdf({{}} | {', '.join(arguments)})" if arguments else "std_normal_lpdf({})"
        if mode == "check":
            return f"{error} = {sign}{outcome} {rest}; bread_again += {density.format(error)};"
        generator = DISTRIBUTIONS[draw.distribution].generator.format(*arguments)
        return (
            f"{{ real bread_x = {generator}; {outcome} = {sign}(bread_x - (0 {rest})); {error} = bread_x; "
            f"bread_sim_log_likelihood += {density.format('bread_x')}; }}"
        )


def read_residuals(
    flow: Dataflow, contribution: Contribution, is_outcome: Callable[[Variable], bool]
) -> list[Draw] | None:
    """Return the draws of ``err ~ d(...)``; None where ``err`` is no error of outcomes that bread can follow."""
    variate, *arguments = nodes(contribution.node)
    variate = strip(variate)
    variable = flow.scopes.variable(variate) if variate.data == "variable" else None
    name = distribution_of(contribution.node)
    distribution = DISTRIBUTIONS.get(name)
    if variable is None or variable.kind not in ("local", "transformed parameter") or variable.rank > 1:
        return None
    if distribution is None or distribution.shape != "scalar" or distribution.support != "real":
        return None
    reads = flow.reads(*arguments)
    if any(rank(argument, flow.scopes) != 0 for argument in arguments) or any(v.kind not in _FIXED for v in reads):
        return None
    if any(is_outcome(v) for v in flow.depends(*arguments)):
        return None
    definitions = _whole(flow, contribution, variable) if variable.rank else _paired(flow, contribution, variable)
    draws = []
    for definition in definitions:
        found = _read(flow, definition, is_outcome)
        if found is None:
            return None
        outcome, residual = found
        listed = tuple(Argument((argument,)) for argument in arguments)
        draws.append(Draw(definition.node, definition.controls, outcome, name, listed, form=residual))
    return draws or None


def _whole(flow: Dataflow, contribution: Contribution, variable: Variable) -> list[Definition]:
    """Return the assignments that fill a vector of errors, each element once, before it gets its density."""
    coverage = Coverage(flow)
    regions = []
    definitions = flow.definitions.get(variable, [])
    n_around = len(contribution.controls)
    for definition in definitions:
        inner = definition.controls[n_around:]
        is_inside = definition.controls[:n_around] == contribution.controls
        if definition.node.data != "assignment" or not is_inside or any(c.data != "for_range" for c in inner):
            return []
        element = read_variate(nodes(definition.node)[0], flow.scopes, lambda v: v is variable)
        region = coverage.region(element, inner) if element is not None and not element.open else None
        if region is None or start(definition.node) > start(contribution.node):
            return []
        regions.append(region)
    n_densities = sum(1 for other in flow.contributions if _variate_is(flow, other, variable))
    return definitions if n_densities == 1 and coverage.covers(variable, regions) else []


def _paired(flow: Dataflow, contribution: Contribution, variable: Variable) -> list[Definition]:
    """Return the one assignment whose value a scalar error holds when it gets its density."""
    events: list[tuple[int, Definition | Contribution]] = [
        (start(one.node), one) for one in flow.definitions.get(variable, []) if one.node.data == "assignment"
    ]
    if len(events) != len(flow.definitions.get(variable, [])):
        return []
    events += [(start(one.node), one) for one in flow.contributions if _variate_is(flow, one, variable)]
    ordered = [event for _, event in sorted(events, key=lambda pair: pair[0])]
    found: list[Definition] = []
    for definition, density in zip(ordered[::2], ordered[1::2], strict=False):
        if not isinstance(definition, Definition) or not isinstance(density, Contribution):
            return []
        if definition.controls != density.controls or any(c.data != "for_range" for c in definition.controls):
            return []
        if density.node is contribution.node:
            found.append(definition)
    return found if len(ordered) % 2 == 0 else []


def _variate_is(flow: Dataflow, contribution: Contribution, variable: Variable) -> bool:
    if contribution.kind != "tilde":
        return variable in flow.reads(contribution.node)
    return variable in flow.reads(nodes(contribution.node)[0])


def _read(
    flow: Dataflow, definition: Definition, is_outcome: Callable[[Variable], bool]
) -> tuple[Variate, Residual] | None:
    """Read ``err[t] = y[t] - (...)``."""
    if definition.increment or definition.value is None:
        return None
    chosen: list[tuple[int, Node, Variate]] = []
    rest: list[tuple[int, Node]] = []
    for sign, term in terms(definition.value):
        found = read_variate(term, flow.scopes, is_outcome)
        if found is not None and not found.open and not found.wrappers:
            chosen.append((sign, term, found))
        else:
            rest.append((sign, term))
    if len(chosen) != 1:
        return None
    ((sign, term, outcome),) = chosen
    return outcome, Residual(nodes(definition.node)[0], term, sign, tuple(rest))
