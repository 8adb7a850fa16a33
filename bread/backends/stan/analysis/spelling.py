"""Programs spelled out: calls of the program's own functions and lists of indices replaced by what they stand for.

What is spelled out is another text of the same density, for all data: `reduce_sum` and densities of the program's own
are replaced by the statements of their functions, vectorised sums over lists of indices by loops, tables of log
densities by their elements, intrinsic autoregressions by normal laws, laws of rows that are gathered from several
outcomes by those of the outcomes, segments by slices, laws of outcomes merged with missing values by those of either,
`append_row` by two assignments, laws of a diagonal by a branch of the loop over the other elements, `jacobian +=` by
`target +=`. Lines stay where they are. The program that is compiled is made of the new text, and proven at every start
to have the density of the user's own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from bread.backends.stan.analysis.appended import appended_edits
from bread.backends.stan.analysis.diagonals import diagonal_edits
from bread.backends.stan.analysis.gathered_rows import row_edits, rows_refusal
from bread.backends.stan.analysis.icar import icar_edits
from bread.backends.stan.analysis.index_lists import list_edits
from bread.backends.stan.analysis.inlining import inline_edits
from bread.backends.stan.analysis.jacobians import jacobian_edits
from bread.backends.stan.analysis.merged import merged_edits, merged_refusal
from bread.backends.stan.analysis.segments import segment_edits
from bread.backends.stan.analysis.tables import table_edits
from bread.backends.stan.language.dataflow import Dataflow, analyse_dataflow
from bread.backends.stan.language.refusals import Refusal
from bread.backends.stan.language.scopes import resolve
from bread.backends.stan.language.source import Source, Stanc
from bread.backends.stan.language.syntax import Node, parse
from bread.backends.stan.split.rewriting import apply_edits


def spelled_out(
    source: Source, flow: Dataflow, blocks: dict[str, Node], stanc: Stanc, kept: Collection[str] = ()
) -> Source | None:
    """Return the program spelled out; None where there is nothing to spell out, or Stan does not take it.

    Parameters
    ----------
    source : Source
        A program that stanc accepts.
    flow : Dataflow
        Of that program.
    blocks : dict of str to Node
        Its blocks, parsed.
    stanc : Stanc
    kept : collection of str
        Functions of the program's whose calls stay.
    """
    sliced = apply_edits(source.text, segment_edits(flow, source, blocks))
    if sliced != source.text:  # first: other edits take whole statements
        inner = replace(source, text=sliced)
        parsed = parse(inner)
        return spelled_out(inner, analyse_dataflow(parsed, resolve(parsed)), parsed, stanc, kept) or inner
    edits = [*list_edits(flow, source), *inline_edits(flow, source, kept), *table_edits(flow, source)]
    edits += [*icar_edits(flow, source, blocks), *row_edits(flow, source), *merged_edits(flow, source, blocks)]
    edits += [*appended_edits(flow, source), *diagonal_edits(flow, source, blocks)]
    edits += jacobian_edits(flow, source, blocks)
    if not edits:
        return None
    text = apply_edits(source.text, edits)
    return replace(source, text=text) if stanc(text, "--allow-undefined").returncode == 0 else None


def not_spelled(flow: Dataflow, source: Source, observed: Collection[str], named: bool) -> Refusal | None:
    """Return why a statement that can only be read spelled out is not; None where there is none.

    Parameters
    ----------
    flow : Dataflow
    source : Source
    observed : collection of str
        The outcomes, as far as they are known.
    named : bool
        Whether the user named them.
    """
    rows = rows_refusal(flow, source, observed if named else None)
    return rows or merged_refusal(flow, source, observed, named)
