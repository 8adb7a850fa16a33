"""``jacobian += ls;`` in transformed parameters, spelled out as ``target += ls;`` in the model.

Stan counts such a term wherever it counts the Jacobians of declared types, as when it samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, end, name_of, nodes, source_text, start
from bread.backends.stan.split.rewriting import Edit, blank


def jacobian_edits(flow: Dataflow, source: Source, blocks: Mapping[str, Node]) -> Iterator[Edit]:
    """Yield edits that move Jacobians of parameters, in loops or not, to the beginning of the model block."""
    moved = ""
    for contribution in flow.contributions:
        node, loops = contribution.node, contribution.controls
        names = flow.reads(nodes(node)[1]) if contribution.kind == "jacobian" else None
        is_free = names is not None and all(v.kind in ("parameter", "transformed parameter", "loop") for v in names)
        if not is_free or any(loop.data != "for_range" for loop in loops) or "model_block" not in blocks:
            continue
        code = f"target += {source_text(source, nodes(node)[1])};"
        for loop in reversed(loops):
            low, high, _ = (source_text(source, one) for one in nodes(loop))
            code = f"for ({name_of(loop)} in ({low}):({high})) {{ {code} }}"
        moved += f" {code}"
        yield Edit(start(node), end(node), ";" + blank(source.text[start(node) : end(node)]))
    if moved:
        at = source.code.index("{", start(blocks["model_block"])) + 1
        yield Edit(at, at, moved)
