"""The programs of `stan_models/` are split and simulated without help."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("lark")
from bread.backends.stan.program import analyse
from bread.backends.stan.source import Source
from bread.backends.stan.toolchain import find_toolchain

pytestmark = pytest.mark.stan
PROGRAMS = sorted((Path(__file__).parents[1] / "stan_models").glob("*.stan"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_is_automatic(path: Path) -> None:
    program = analyse(Source.from_file(path), observed=("y",), stanc=find_toolchain().run_stanc)
    assert program.is_automatic
