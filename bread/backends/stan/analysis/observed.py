"""Which data variables are outcomes: named by the user, or inferred where the program leaves no doubt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import is_

from bread.backends.stan.language.dataflow import Dataflow, base_variable
from bread.backends.stan.language.refusals import quote
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import DENSITY_SUFFIXES, Node, is_density, line, name_of, nodes, terms, walk
from bread.backends.stan.language.variates import is_softmax, looked_up, read_variate
from bread.backends.stan.simulator.forms.flags import flagged
from bread.backends.stan.simulator.forms.residuals import read_residuals
from bread.errors import InvalidArgumentError, UnsupportedModelError


def check_observed(names: Sequence[str], flow: Dataflow, source: Source) -> tuple[Variable, ...]:
    """Return the data variables called ``names``.

    Raises
    ------
    InvalidArgumentError
        A name is not a data variable: what it is instead, and the data variables there are.
    """
    found = []
    data = ", ".join(repr(variable.name) for variable in flow.scopes.of_kind("data")) or "none"
    for name in names:
        variable = flow.scopes.named(name, "data")
        if variable is None:
            other = flow.scopes.named(name)
            what = (
                f"is a {other.kind} ({source.origin(other.line)})" if other else f"is not declared in {source.name!r}"
            )
            raise InvalidArgumentError(
                f"observed={name!r} {what}; observed variables are declared in the data block. Choose among: {data}."
            )
        found.append(variable)
    if not found:
        raise InvalidArgumentError(f"observed= is empty; name at least one outcome among the data variables: {data}.")
    return tuple(dict.fromkeys(found))


def infer_observed(flow: Dataflow, source: Source) -> tuple[Variable, ...]:
    """Infer the observed variables: data left of a ``~``, first in an ``_lpdf`` or ``_lpmf``, or a simplex's index.

    A transformed data variable there stands for the one data variable that its values come from. ``log(phi[x])`` looks
    up ``x`` where it is a term of the log density, or of a sum over components. Where no data stand there, the outcome
    may be the one whose error does: ``err[t] = y[t] - nu[t]; err ~ normal(0, sigma)``.

    Raises
    ------
    UnsupportedModelError
        There is none, or it is in doubt which: names the candidates.
    """
    found: dict[Variable, None] = {}
    for contribution in flow.contributions:
        for variate in _variates(contribution.node, flow):
            for variable in _data_behind(variate, flow, source):
                found[variable] = None
    if not found:
        found = dict.fromkeys(_behind_errors(flow, source))
    if found:
        found |= dict.fromkeys(flagged(flow))  # which outcomes are censored is an outcome, too
    if not found:
        data = ", ".join(repr(variable.name) for variable in flow.scopes.of_kind("data")) or "none"
        raise UnsupportedModelError(
            f"{source.name!r}: no data variable stands left of `~` or first in an _lpdf or _lpmf, so that bread cannot "
            f"tell which data are outcomes. Name them: observed=[...] (data variables: {data})."
        )
    return tuple(variable for variable in flow.scopes.of_kind("data") if variable in found)


def _behind_errors(flow: Dataflow, source: Source) -> list[Variable]:
    """Return the data variables whose errors have a density; two that one statement may mean are in doubt."""
    found: list[Variable] = []
    for contribution in flow.contributions:
        if contribution.kind != "tilde":
            continue
        possible = [
            data
            for data in flow.scopes.of_kind("data")
            if read_residuals(flow, contribution, partial(is_, data)) is not None
        ]
        if len(possible) > 1:
            variate = nodes(contribution.node)[0]
            _refuse_doubt(source, contribution.line, f"`{quote(source, variate)}`", possible)
        found += possible
    return found


def _variates(statement: Node, flow: Dataflow) -> list[Node]:
    found = [nodes(statement)[0]] if statement.data == "tilde" else []
    expressions = [statement]
    if statement.data == "assignment":
        # densities gathered in local variables and added later, as in mixtures
        for variable in flow.depends(nodes(statement)[1]):
            if variable.kind in ("local", "transformed parameter"):
                expressions += [d.value for d in flow.definitions.get(variable, ()) if d.value is not None]
    for expression in expressions:
        for inner in walk(expression):
            if is_density(inner) and nodes(inner):
                found.append(nodes(inner)[0])
            elif inner.data == "call" and name_of(inner).startswith("reduce_sum"):
                function, *arguments = nodes(inner)
                if function.data == "variable" and name_of(function).endswith(DENSITY_SUFFIXES):
                    found.append(arguments[0])
    if statement.data == "assignment":
        for term in _summands(nodes(statement)[1], flow, frozenset()):
            outcome = _category(term, flow)
            found += [outcome] if outcome is not None else _handed_on(term, flow)
    return found


def _category(term: Node, flow: Dataflow) -> Node | None:
    """Return the category whose log probability a term looks up in a simplex, or in what a softmax gives."""
    looked = looked_up(term, flow.scopes)
    if looked is None:
        return None
    base, _, category, is_log = looked
    variable = flow.scopes.variable(base) if base.data == "variable" else None
    values = [base] if variable is None else [one.value for one in flow.definitions.get(variable, ())]
    given = [one for one in values if one is not None]
    is_given = bool(given) and all(is_softmax(one, flow.scopes, is_log) for one in given)
    return category if is_given or (is_log and variable is not None and variable.type == "simplex") else None


def _handed_on(term: Node, flow: Dataflow) -> list[Node]:
    """Return the arguments of a call to which the user's function gives a density: ``y[n]`` of ``grade(y[n], p)``."""
    found = []
    for function in flow.scopes.functions.get(name_of(term), ()) if term.data == "call" else ():
        arguments = [child for child in nodes(function) if child.data == "argument"]
        handed = {id(child): given for child, given in zip(arguments, nodes(term), strict=False)}
        for inner in walk(function):
            if is_density(inner) and nodes(inner):
                values = map(flow.scopes.variable, _values(nodes(inner)[0]))
                found += [handed[id(v.node)] for v in values if v is not None and id(v.node) in handed]
    return found


def _summands(value: Node, flow: Dataflow, seen: frozenset[Variable]) -> list[Node]:
    """Return what a sum adds; variables, and sums over components, replaced by their own terms."""
    found = []
    for term in (one for sign, one in terms(value) if sign > 0):
        if term.data == "call" and name_of(term) in ("log_sum_exp", "log_mix"):
            found += [inner for argument in nodes(term) for inner in _summands(argument, flow, seen)]
            continue
        base = term if _category(term, flow) is not None else base_variable(term)
        variable = flow.scopes.variable(base) if base.data == "variable" else None
        if variable is None:
            found.append(term)
        elif variable not in seen:
            for definition in flow.definitions.get(variable, ()):
                if definition.value is not None:
                    found += _summands(definition.value, flow, seen | {variable})
    return found


def _data_behind(variate: Node, flow: Dataflow, source: Source) -> list[Variable]:
    """Return the data variable whose values a variate shows; indices and sizes do not count.

    In a sum, ``y - X * b``, a term that is a variable, or one of its elements, goes before those that are computed.
    """
    summed = [term for _, term in terms(variate)]
    plain = [one for one in summed if one.data != "binary" and read_variate(one, flow.scopes, lambda v: True)]
    values = [inner for one in plain or [variate] for inner in _values(one)]
    named = [v for v in map(flow.scopes.variable, values) if v is not None]
    found = [v for v in named if v.kind == "data"]
    if not any(v.kind in ("parameter", "transformed parameter") for v in flow.depends(*values)):
        computed = [v for v in named if v.kind in ("transformed data", "local", "loop")]
        found += [root for variable in computed for root in _sources(variable, flow, source)]
    elif base_variable(variate).data == "variable":
        return []
    found = list(dict.fromkeys(found))
    if len(found) > 1:
        _refuse_doubt(source, line(variate), f"`{quote(source, variate)}`", found)
    return found


def _refuse_doubt(source: Source, at: int, what: str, candidates: Sequence[Variable]) -> None:
    names = ", ".join(repr(candidate.name) for candidate in candidates)
    raise UnsupportedModelError(
        f"{source.origin(at)}: {what} has a density and is computed from {names}; which of them is the outcome is in "
        "doubt. Name it: observed=[...]."
    )


def _values(node: Node) -> list[Node]:
    """Return the variables of an expression that give its values, leaving out indices."""
    if node.data == "variable":
        return [node]
    children = nodes(node)
    if node.data == "indexed":
        children = children[:1]
    return [inner for child in children for inner in _values(child)]


def _sources(variable: Variable, flow: Dataflow, source: Source) -> list[Variable]:
    """Return the data variable that a transformed data variable shows; more than one is in doubt."""
    seen: set[Variable] = set()
    stack = [variable]
    roots: dict[Variable, None] = {}
    while stack:
        current = stack.pop()
        if current in seen:
            continue
        seen.add(current)
        if current.kind == "data":
            roots[current] = None
        for definition in flow.definitions.get(current, ()):
            if definition.value is not None:
                stack += [v for v in map(flow.scopes.variable, _values(definition.value)) if v is not None]
    candidates = [root for root in roots if root.rank > 0 or root.type == "real"]
    if len(candidates) > 1:
        _refuse_doubt(source, variable.line, repr(variable.name), candidates)
    return candidates
