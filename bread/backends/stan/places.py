"""Places in generated C++, which its run-time messages name: put into the user's own files before it is compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bread.backends.stan.language import places
from bread.backends.stan.language.source import Source
from bread.backends.stan.native.build import ORIGINAL_PLACE, TEMPERED_PLACE
from bread.backends.stan.split.rewriting import Edit, map_column


def in_users_files(source: Source, edits: Sequence[Edit] = ()) -> Callable[[str], str]:
    """Return the function that puts the user's files, lines and columns into C++, for `build_library`.

    Columns of the tempered program are moved by what ``edits`` wrote into it; those of the original one are the user's.
    """

    def user_column(line: int, column: int) -> int:
        return map_column(edits, source.text, line, column)

    def replace(code: str) -> str:
        code = places.in_users_files(code, ORIGINAL_PLACE, source, escape=places.literal_body)
        return places.in_users_files(code, TEMPERED_PLACE, source, user_column=user_column, escape=places.literal_body)

    return replace
