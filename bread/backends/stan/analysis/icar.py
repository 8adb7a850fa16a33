"""Intrinsic autoregressions with a soft sum to zero, spelled out as the proper normal law that both statements make.

``target += -0.5 * dot_self(phi[node1] - phi[node2]); sum(phi) ~ normal(0, 0.001 * N);`` adds a quadratic form of
``phi``: that of a normal law around 0 whose precision is the Laplacian of the graph and, in the direction of the sum,
the precision of the sum. It is proper exactly where the graph is connected, which transformed data see to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bread.backends.stan.language.dataflow import Contribution, Dataflow
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import (
    Node,
    end,
    is_density,
    is_number,
    name_of,
    nodes,
    number,
    source_text,
    start,
    strip,
    terms,
    token,
)
from bread.backends.stan.language.syntax import distribution_of as law_of
from bread.backends.stan.split.rewriting import Edit, blank, functions_edit

_FUNCTIONS = """
matrix bread_icar(int n, array[] int first, array[] int second, real sd) {
  array[n] int group = linspaced_int_array(n, 1, n);
  matrix[n, n] precision = rep_matrix(1 / square(sd), n, n);
  for (e in 1:size(first)) {
    int i = first[e];
    int j = second[e];
    int old = group[i];
    precision[i, i] += 1;
    precision[j, j] += 1;
    precision[i, j] -= 1;
    precision[j, i] -= 1;
    for (k in 1:n) if (group[k] == old) group[k] = group[j];
  }
  if (min(group) != max(group))
    reject("bread: the graph of an ICAR prior is not connected: the prior leaves the difference between its parts ",
           "free, and is improper; give each part a sum of its own");
  return cholesky_decompose(inverse_spd(precision));
}
"""


@dataclass(frozen=True)
class _Pairwise:
    """A term ``-0.5 * dot_self(phi[first] - phi[second])``."""

    contribution: Contribution
    variable: Variable
    first: str
    second: str


def icar_edits(flow: Dataflow, source: Source, blocks: dict[str, Node]) -> Iterator[Edit]:
    """Yield edits that make one normal law of a pairwise term and the law of a sum, for each variable that has both."""
    found = [one for contribution in flow.contributions if (one := _pairwise(flow, source, contribution)) is not None]
    data = ""
    for one in found:
        sums = [(c, sd) for c in flow.contributions if (sd := _sum(flow, source, c, one.variable)) is not None]
        if len(sums) != 1 or sum(other.variable is one.variable for other in found) != 1:
            continue
        ((contribution, sd),) = sums
        name, size = one.variable.name, f"num_elements({one.variable.name})"
        declared = one.variable.dimensions[0]
        n = source.code[start(declared) : end(declared)]
        zeros = f"rep_vector(0, {n})"
        factor, constant = f"bread_icar_{name}", f"bread_icar_at_0_{name}"
        data += (
            f" matrix[{n}, {n}] {factor} = bread_icar({n}, {one.first}, {one.second}, {sd});"
            f" real {constant} = normal_lpdf(0 | 0, {sd}) - multi_normal_cholesky_lpdf({zeros} | {zeros}, {factor});"
        )
        law = f"multi_normal_cholesky_lpdf({name} | rep_vector(0, {size}), {factor})"
        yield _instead(source, one.contribution.node, f"{{ target += {law}; target += {constant}; }}")
        yield _instead(source, contribution.node, ";")
    if not data:
        return
    yield functions_edit(blocks, source.code, " ".join(_FUNCTIONS.split()))
    block = blocks.get("transformed_data_block")
    if block is not None:
        yield Edit(end(block) - 1, end(block) - 1, f"{data} ")
    else:
        at = start(blocks["parameters_block"])
        yield Edit(at, at, f"transformed data {{{data} }} ")


def _instead(source: Source, node: Node, code: str) -> Edit:
    return Edit(start(node), end(node), code + blank(source.text[start(node) : end(node)]))


def _pairwise(flow: Dataflow, source: Source, contribution: Contribution) -> _Pairwise | None:
    if contribution.kind != "target" or contribution.controls or contribution.block != "model_block":
        return None
    ((sign, term), *others) = terms(nodes(contribution.node)[1])
    if others or term.data != "binary" or token(term, "TIMES") != "*":
        return None
    left, right = nodes(term)
    ((factor, half), *more) = terms(left)
    right = strip(right)
    is_form = not more and sign * factor < 0 and number(half) == 0.5 and right.data == "call"
    if not is_form or name_of(right) != "dot_self" or name_of(right) in flow.scopes.functions:
        return None
    ends = terms(nodes(right)[0])
    if len(ends) != 2 or ends[0][0] * ends[1][0] != -1:
        return None
    read = [_taken(flow, source, one) for _, one in ends]
    if read[0] is None or read[1] is None or read[0][0] is not read[1][0]:
        return None
    return _Pairwise(contribution, read[0][0], read[0][1], read[1][1])


def _taken(flow: Dataflow, source: Source, node: Node) -> tuple[Variable, str] | None:
    """Read ``phi[node1]``: a vector of parameters without bounds, and an array of indices that the data give."""
    if node.data != "indexed" or len(nodes(node)) != 2 or nodes(node)[0].data != "variable":
        return None
    variable, place = flow.scopes.variable(nodes(node)[0]), nodes(node)[1]
    inner = strip(nodes(place)[0]) if place.data == "index_one" else place
    index = flow.scopes.variable(inner) if inner.data == "variable" else None
    if variable is None or variable.kind != "parameter" or variable.type != "vector" or variable.array_sizes:
        return None
    if variable.bounds or index is None or index.rank != 1 or index.kind not in ("data", "transformed data"):
        return None
    return variable, source.code[start(inner) : end(inner)]


def _sum(flow: Dataflow, source: Source, contribution: Contribution, variable: Variable) -> str | None:
    """Return the standard deviation of ``sum(phi) ~ normal(0, sd)``, by a statement of either form; else None."""
    node = contribution.node
    if contribution.controls or contribution.block != "model_block":
        return None
    density = node
    if contribution.kind == "target":
        ((sign, density), *others) = terms(nodes(node)[1])
        if others or sign < 0 or not is_density(density):
            return None
    elif contribution.kind != "tilde" or any(child.data == "truncation" for child in nodes(node)):
        return None
    if law_of(density) != "normal" or len(nodes(density)) != 3:
        return None
    variate, mean, sd = (strip(one) for one in nodes(density))
    inner = strip(nodes(variate)[0]) if variate.data == "call" and name_of(variate) == "sum" else variate
    if inner is variate or inner.data != "variable" or flow.scopes.variable(inner) is not variable:
        return None
    if not is_number(mean, 0) or any(v.kind not in ("data", "transformed data") for v in flow.reads(sd)):
        return None
    return f"({source_text(source, sd)})"
