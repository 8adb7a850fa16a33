"""Outcomes merged with missing values, which are parameters: the law of the whole, spelled out element by element.

brms writes ``mi()`` as ``vector[N] Yl = Y; Yl[Jmi] = Ymi;`` and one statement of ``Yl``; the user's guide as
``y[ii_obs] = y_obs; y[ii_mis] = y_mis;``. The elements at ``Jmi`` are terms of the prior of ``Ymi``, all others are
likelihood. That the indices name every element once is seen to by transformed data, for all data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from bread.backends.stan.analysis.gathered_rows import density_of
from bread.backends.stan.language.dataflow import Contribution, Dataflow, Definition
from bread.backends.stan.language.distributions import DISTRIBUTIONS
from bread.backends.stan.language.refusals import Refusal, quote
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, end, line, nodes, source_text, start, strip, token
from bread.backends.stan.language.syntax import distribution_of as law_of
from bread.backends.stan.language.variates import rank
from bread.backends.stan.split.rewriting import Edit, blank, functions_edit

_FORM = (
    "Accepted are `vector[N] x = x_data; x[J] = x_missing;` and `x[I] = x_observed; x[J] = x_missing;`, each once and "
    "in that order, before one statement `x ~ d(...)` of the whole, with a vector of parameters without bounds, "
    "indices that are data, and a law that reads neither x nor any outcome. Else write one statement for the observed "
    "values and one for the missing ones, or pass simulator=."
)
_FUNCTION = """
array[] int bread_observed(int n, array[] int missing, int left) {
  array[n] int observed = rep_array(1, n);
  for (j in 1:size(missing)) {
    if (observed[missing[j]] == 0) reject("bread: an index of missing values names element ", missing[j], " again");
    observed[missing[j]] = 0;
  }
  if (sum(observed) != left) reject("bread: elements of merged values that no index names");
  return observed;
}
"""


@dataclass(frozen=True)
class _Merged:
    """A container whose elements at ``missing_at`` are parameters, and the others data.

    ``observed_at`` holds the indices of the data; None where they have the same places as in the whole.
    """

    whole: Variable
    data: Variable
    missing: Variable
    missing_at: str
    observed_at: str | None


def merged_edits(flow: Dataflow, source: Source, blocks: dict[str, Node]) -> Iterator[Edit]:
    """Yield edits that spell out each law of outcomes that are merged with missing values."""
    declarations: dict[str, None] = {}
    for contribution in flow.contributions:
        merged = _merged(flow, source, contribution)
        if not isinstance(merged, _Merged):
            continue
        code = _spelled(flow, source, contribution, merged)
        if code is None:
            continue
        size = _text(source, merged.whole.dimensions[0])
        missing, left = merged.missing_at, f"{size} - size({merged.missing_at})"
        if merged.observed_at is not None:
            missing, left = f"append_array({merged.observed_at}, {missing})", "0"
        declarations[f" array[{size}] int {_mask(merged)} = bread_observed({size}, {missing}, {left});"] = None
        node = contribution.node
        yield Edit(start(node), end(node), code + blank(source.text[start(node) : end(node)]))
    if not declarations:
        return
    yield functions_edit(blocks, source.code, " ".join(_FUNCTION.split()))
    block = blocks.get("transformed_data_block")
    if block is not None:
        yield Edit(end(block) - 1, end(block) - 1, f"{''.join(declarations)} ")
    else:
        at = start(blocks["parameters_block"])
        yield Edit(at, at, f"transformed data {{{''.join(declarations)} }} ")


def merged_refusal(flow: Dataflow, source: Source, observed: Collection[str], named: bool) -> Refusal | None:
    """Return why a law of outcomes merged with missing values is not spelled out; None where there is none.

    ``named`` tells whether the user named the outcomes; those that are inferred from the program as it stands need not
    be all.
    """
    for contribution in flow.contributions:
        merged = _merged(flow, source, contribution)
        reason = _reason(flow, source, contribution, merged, observed, named) if isinstance(merged, _Merged) else merged
        if reason is not None:
            node = contribution.node
            return Refusal(quote(source, node), reason, _FORM, line(node), source.origin(line(node)))
    return None


def _reason(
    flow: Dataflow, source: Source, contribution: Contribution, merged: _Merged, observed: Collection[str], named: bool
) -> str | None:
    density = density_of(contribution)
    assert density is not None
    read = [v.name for v in flow.depends(*nodes(density)[1:]) if v.kind == "data" and v.name in observed]
    if read:
        names = ", ".join(repr(name) for name in sorted(read))
        return f"the law of the missing values {merged.missing.name!r} reads outcomes ({names})."
    if named and merged.data.name not in observed:
        return f"{merged.data.name!r} is an outcome, too, and is not named in observed=."
    if _spelled(flow, source, contribution, merged) is None:
        return "the law of merged values is none that bread splits by element."
    return None


def _mask(merged: _Merged) -> str:
    return f"bread_observed_{merged.whole.name}_{merged.whole.line}"


def _spelled(flow: Dataflow, source: Source, contribution: Contribution, merged: _Merged) -> str | None:
    density = density_of(contribution)
    assert density is not None
    law = law_of(density)
    known = DISTRIBUTIONS.get(law)
    if known is None or known.discrete or known.shape != "scalar" or known.vector_arguments:
        return None
    if f"{law}_lpdf" in flow.scopes.functions:
        return None
    given = nodes(density)[1:]
    if not {merged.whole, merged.data, merged.missing}.isdisjoint(flow.depends(*given)):
        return None
    size = _text(source, merged.whole.dimensions[0])
    before, of_missing, of_observed = [], [], []
    at = merged.observed_at or "bread_row"
    for i, argument in enumerate(given):
        text = _text(source, argument)
        if rank(argument, flow.scopes) == 0:
            of_missing.append(text)
            of_observed.append(text)
            continue
        before.append(f"vector[{size}] bread_given{i} = {text};")
        of_missing.append(f"bread_given{i}[{merged.missing_at}]")
        of_observed.append(f"bread_given{i}[{at}]")
    missing = f"target += {law}_lpdf({merged.missing.name} | {', '.join(of_missing)});"
    if merged.observed_at is not None:
        observed = f"target += {law}_lpdf({merged.data.name} | {', '.join(of_observed)});"
    else:
        observed = f"target += {law}_lpdf({merged.data.name}[bread_row] | {', '.join(of_observed)});"
        observed = f"for (bread_row in 1:{size}) {{ if ({_mask(merged)}[bread_row] == 1) {{ {observed} }} }}"
    return f"{{ {' '.join(before)} {missing} {observed} }}"


def _merged(flow: Dataflow, source: Source, contribution: Contribution) -> _Merged | str | None:
    """Read what the statement is about; a reason where data and parameters are merged in another form, else None."""
    density = density_of(contribution)
    if density is None:
        return None
    variate = strip(nodes(density)[0])
    base = nodes(variate)[0] if variate.data == "indexed" else variate
    whole = flow.scopes.variable(base) if base.data == "variable" else None
    if whole is None or whole.kind not in ("local", "transformed parameter") or whole.rank != 1:
        return None
    definitions = sorted(flow.definitions.get(whole, []), key=lambda one: start(one.node))
    copied = [_copied(flow, one) for one in definitions]
    kinds = {one[0].kind for one in copied if one is not None}
    if not {"data", "parameter"} <= kinds:
        return None
    if base is not variate:
        return f"gives a law to a part of {whole.name!r}, which merges outcomes and missing values."
    if contribution.block != "model_block" or len(definitions) != 2 or None in copied:
        return f"{whole.name!r} merges outcomes and missing values by other statements than the two that bread follows."
    first, second = definitions
    if first.controls != second.controls or contribution.controls[: len(first.controls)] != first.controls:
        return f"{whole.name!r} merges outcomes and missing values under conditions or in loops."
    if any(control.data != "if_" for control in first.controls) or start(second.node) > start(contribution.node):
        return f"{whole.name!r} merges outcomes and missing values in loops, or after its law."
    (data, at), (missing, missing_at) = (one for one in copied if one is not None)
    if data.kind != "data" and at is not None:  # disjoint places: in any order
        (data, at), (missing, missing_at) = (missing, missing_at), (data, at)
    if data.kind != "data" or missing.kind != "parameter" or missing_at is None:
        return f"{whole.name!r} merges outcomes and missing values by other statements than the two that bread follows."
    if missing.bounds or missing.type not in ("vector", "real") or missing.rank != 1:
        return f"the missing values {missing.name!r} are no vector without bounds."
    if whole.bounds or whole.type not in ("vector", "real"):
        return f"{whole.name!r}, which merges outcomes and missing values, has a constraint."
    if data.rank != 1 or data.plain == "int":
        return f"the outcomes {data.name!r} are no vector."
    if any(v.kind not in ("data", "transformed data") for v in flow.reads(*whole.dimensions)):
        return f"the size of {whole.name!r} is not known from the data."
    where = None if at is None else _text(source, at)
    return _Merged(whole, data, missing, _text(source, missing_at), where)


def _copied(flow: Dataflow, definition: Definition) -> tuple[Variable, Node | None] | None:
    """Read ``x = v`` or ``x[I] = v``: v, and I, an array of indices that the data give; None for any other."""
    value = None if definition.value is None else strip(definition.value)
    if value is None or value.data != "variable" or definition.increment:
        return None
    variable = flow.scopes.variable(value)
    if variable is None or variable.kind not in ("data", "parameter"):
        return None
    node = definition.node
    if node.data != "assignment":  # a declaration with its value
        return (variable, None) if definition.whole else None
    if token(node, "ASSIGN") is not None:
        return None
    left = strip(nodes(node)[0])
    if left.data == "variable":
        return variable, None
    if left.data != "indexed" or len(nodes(left)) != 2 or nodes(left)[1].data != "index_one":
        return None
    place = strip(nodes(nodes(left)[1])[0])
    index = flow.scopes.variable(place) if place.data == "variable" else None
    if index is None or index.rank != 1 or index.kind not in ("data", "transformed data"):
        return None
    return variable, place


def _text(source: Source, node: Node) -> str:
    return f"({source_text(source, node)})"
