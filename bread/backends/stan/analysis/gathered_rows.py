"""Normal laws of rows that are gathered from several outcomes, spelled out as one law for each outcome.

brms writes residual correlations (``set_rescor(TRUE)``) as ``Y[n] = transpose([Y_a[n], Y_b[n]]);`` in transformed data
and ``target += multi_normal_cholesky_lpdf(Y | Mu, L);``. With z = L^-1 (Y[n] - Mu[n]), element k of a row is normal
with mean Mu[n, k] + sum_{j < k} L[k, j] z[j] and standard deviation L[k, k], given those before it: the density of the
rows is the product, without a constant. The elements are followed by their places in the gathered row, not by names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from bread.backends.stan.language.dataflow import Contribution, Dataflow
from bread.backends.stan.language.refusals import Refusal, quote
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import (
    Node,
    end,
    is_density,
    is_number,
    line,
    name_of,
    nodes,
    source_text,
    start,
    strip,
    terms,
    token,
)
from bread.backends.stan.language.syntax import distribution_of as law_of
from bread.backends.stan.split.rewriting import Edit, blank

_LAWS = {"multi_normal_cholesky": "{}", "multi_normal": "cholesky_decompose({})"}
_FORM = (
    "Gather them as `array[N] vector[K] Y; for (n in 1:N) Y[n] = transpose([a[n], b[n]]);` in transformed data, of K "
    "different data variables, and state one law of `Y`: `Y ~ multi_normal_cholesky(Mu, L)` or `multi_normal(Mu, S)`, "
    "where `Mu` is a variable (an array of vectors, or a vector). Else pass simulator=."
)


def row_edits(flow: Dataflow, source: Source) -> Iterator[Edit]:
    """Yield an edit for each statement about rows that are gathered from outcomes."""
    for contribution in flow.contributions:
        code = _code(flow, source, contribution)
        if isinstance(code, str) and code:
            node = contribution.node
            yield Edit(start(node), end(node), code + blank(source.text[start(node) : end(node)]))


def rows_refusal(flow: Dataflow, source: Source, observed: Collection[str] | None) -> Refusal | None:
    """Return why rows that are gathered from several outcomes are not spelled out; None where there are none.

    Where the outcomes are not known (None), every data variable may be one.
    """
    for contribution in flow.contributions:
        reason = _code(flow, source, contribution)
        read = [v for v in flow.closure(contribution.own) if observed is None or v.name in observed]
        if isinstance(reason, tuple) and len(read) > 1:
            node = contribution.node
            return Refusal(quote(source, node), reason[0], _FORM, line(node), source.origin(line(node)))
    return None


def density_of(contribution: Contribution) -> Node | None:
    """Return the one density that a statement adds, without truncation; None for any other statement."""
    node = contribution.node
    if contribution.kind == "tilde":
        return None if any(child.data == "truncation" for child in nodes(node)) else node
    if contribution.kind != "target":
        return None
    ((sign, term), *others) = terms(nodes(node)[1])
    return term if not others and sign > 0 and is_density(term) and nodes(term) else None


def _code(flow: Dataflow, source: Source, contribution: Contribution) -> str | tuple[str] | None:
    """Return the statements for one about gathered rows, or why it has none; None where it is about something else."""
    density = density_of(contribution)
    if density is None or contribution.block != "model_block":
        return None
    variate, *given = nodes(density)
    rows = flow.scopes.variable(strip(variate)) if strip(variate).data == "variable" else None
    if rows is None or rows.kind != "transformed data" or rows.plain != "vector" or len(rows.array_sizes) != 1:
        return None
    behind = [v for v in flow.closure([rows]) if v.kind == "data" and v.rank > 0 and v.plain != "int"]
    if len(behind) < 2:
        return None
    elements = _gathered(flow, source, rows)
    if elements is None:
        names = ", ".join(repr(v.name) for v in sorted(behind, key=lambda v: v.line))
        return (f"{rows.name!r} is gathered from {names} in a form that bread does not follow element by element.",)
    law = law_of(density)
    if law not in _LAWS or f"{law}_lpdf" in flow.scopes.functions or len(given) != 2:
        return (
            f"gives rows that are gathered from several data variables the law {law!r}, which bread does not draw.",
        )
    mean = flow.scopes.variable(strip(given[0])) if strip(given[0]).data == "variable" else None
    if mean is None or mean.plain != "vector" or len(mean.array_sizes) > 1:
        return (f"the mean of gathered rows, `{quote(source, given[0])}`, is not a variable of vectors.",)
    return _spelled(source, rows, elements, mean, _LAWS[law].format(source_text(source, given[1])))


def _spelled(source: Source, rows: Variable, elements: list[Variable], mean: Variable, factor: str) -> str:
    n, size = source_text(source, rows.array_sizes[0]), len(elements)
    pieces = [f"matrix[{size}, {size}] bread_factor = {factor};"]
    for k, element in enumerate(elements, 1):
        at = f"to_vector({mean.name}[:, {k}])" if mean.array_sizes else f"{mean.name}[{k}]"
        given = "".join(f" + bread_factor[{k}, {j}] * bread_z{j}" for j in range(1, k))
        taken = f"{element.name}[1:({n})]"
        pieces.append(f"target += normal_lpdf({taken} | {at}{given}, bread_factor[{k}, {k}]);")
        if k < size:
            error = f"(to_vector({taken}) - ({at}{given}))"
            pieces.append(f"vector[{n}] bread_z{k} = {error} / bread_factor[{k}, {k}];")
    return f"{{ {' '.join(pieces)} }}"


def _gathered(flow: Dataflow, source: Source, rows: Variable) -> list[Variable] | None:
    """Read the loop that gathers rows: the data variables, by their places in a row; None for any other form."""
    definitions = flow.definitions.get(rows, [])
    if len(definitions) != 1 or definitions[0].increment or definitions[0].value is None:
        return None
    definition = definitions[0]
    if definition.node.data != "assignment" or token(definition.node, "ASSIGN") is not None:
        return None
    left, value = (strip(one) for one in nodes(definition.node))
    if len(definition.controls) != 1 or definition.controls[0].data != "for_range":
        return None
    loop = definition.controls[0]
    low, high, _ = nodes(loop)
    if not is_number(low, 1) or source_text(source, high) != source_text(source, rows.array_sizes[0]):
        return None
    if not _is_at_counter(flow, left, rows, loop):
        return None
    is_call = value.data == "call" and name_of(value) == "transpose" and "transpose" not in flow.scopes.functions
    if not is_call and value.data != "transpose":
        return None
    literal = strip(nodes(value)[0])
    if literal.data != "row":
        return None
    found = []
    for element in (strip(one) for one in nodes(literal)):
        variable = flow.scopes.variable(nodes(element)[0]) if element.data == "indexed" else None
        if variable is None or variable.kind != "data" or variable.rank != 1 or variable.plain == "int":
            return None
        if not _is_at_counter(flow, element, variable, loop):
            return None
        found.append(variable)
    return found if len(set(found)) == len(found) >= 2 else None


def _is_at_counter(flow: Dataflow, node: Node, variable: Variable, loop: Node) -> bool:
    """Return whether ``node`` is ``variable[n]``, n the counter of ``loop``."""
    if node.data != "indexed" or len(nodes(node)) != 2 or nodes(node)[0].data != "variable":
        return False
    base, place = nodes(node)
    at = strip(nodes(place)[0]) if place.data == "index_one" else None
    counter = flow.scopes.variable(at) if at is not None and at.data == "variable" else None
    if flow.scopes.variable(base) is not variable or counter is None or counter.kind != "loop":
        return False
    return counter.name == name_of(loop)
