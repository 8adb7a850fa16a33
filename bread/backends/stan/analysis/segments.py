"""`segment`, `head`, `tail` left of a density, spelled out as slices: ``segment(y, i, n)`` is ``y[i:(i + n - 1)]``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import (
    Node,
    end,
    is_density,
    name_of,
    nodes,
    source_text,
    start,
    strip,
    walk,
)
from bread.backends.stan.split.rewriting import Edit, blank

_SLICES = {
    "segment": "{0}[({1}):(({1}) + ({2}) - 1)]",
    "head": "{0}[1:({1})]",
    "tail": "{0}[(size({0}) - ({1}) + 1):size({0})]",
}
_BLOCKS = ("transformed_parameters_block", "model_block", "functions_block")


def segment_edits(flow: Dataflow, source: Source, blocks: Mapping[str, Node]) -> Iterator[Edit]:
    """Yield an edit for each segment of a variable that gets a density."""
    for inner in (one for name in _BLOCKS if name in blocks for one in walk(blocks[name])):
        call = strip(nodes(inner)[0]) if inner.data == "tilde" or (is_density(inner) and nodes(inner)) else inner
        if call is inner or call.data != "call" or name_of(call) not in _SLICES:
            continue
        if name_of(call) in flow.scopes.functions or strip(nodes(call)[0]).data not in ("variable", "indexed"):
            continue
        code = _SLICES[name_of(call)].format(*(source_text(source, one) for one in nodes(call)))
        yield Edit(start(call), end(call), code + blank(source.text[start(call) : end(call)]))
