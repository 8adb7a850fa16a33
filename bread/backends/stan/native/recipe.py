"""Libraries of Stan programs where they are not: on another machine, or after the cache was emptied."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from bread.backends.stan.native.build import build_code
from bread.backends.stan.native.toolchain import find_toolchain
from bread.errors import BreadError


@dataclass(frozen=True)
class Recipe:
    """What a library is compiled from.

    Attributes
    ----------
    code : str
        C++, from `bread.backends.stan.native.build.translate`.
    version : str
        Of the Stan that translated it; headers of another do not fit.
    """

    code: str
    version: str

    def build(self) -> Path:
        """Compile the program here, once for all processes of this machine; return the library.

        Raises
        ------
        BreadError
            Stan is not here in the same version, or there is no compiler.
        """
        return _built(self)


@functools.lru_cache(maxsize=8)
def _built(recipe: Recipe) -> Path:
    toolchain = find_toolchain()
    if toolchain.version != recipe.version:
        raise BreadError(
            f"A program that Stan {recipe.version} translated cannot be compiled here: this machine has Stan "
            f"{toolchain.version} ({toolchain.source}). Install the same version on every machine."
        )
    return build_code(recipe.code, toolchain)
