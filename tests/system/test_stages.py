"""A check shows five stages, whatever its phases are; each of these belongs to one of them."""

from __future__ import annotations

from typing import Any

import pytest

import bread
from bread.jobs.progress import STAGE_OF, STAGES
from bread.report.compat import require_group
from tests.support.reference_models import CONJUGATE

MODEL = CONJUGATE["hierarchical_hmc"]
SMALL: dict[str, Any] = {
    "n_temperatures": (4, 8), "simulations": 10, "chains": 2, "draws": 100, "random_seed": 1, "cores": 1,
}  # fmt: skip


def names(lines: list[str]) -> list[str]:
    return [line[:30].strip() for line in lines]


def test_a_check_leaves_at_most_five_lines_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    report = bread.check(MODEL, **SMALL)
    written = capsys.readouterr().err.splitlines()
    lines = [line for line in written if not line.startswith("The fit's draws: ")]  # what the first look found
    shown = names(lines)
    assert len(lines) >= len(written) - 1
    assert shown == [stage for stage in STAGES if stage in shown] and shown[-3:] == list(STAGES[-3:])
    assert "(below" in lines[-2] and "(below" not in lines[-1]
    phases = {str(name) for name in require_group(report, "cost")["phase"].values}
    assert {"confirm", "draws", "consistency"} <= phases <= set(STAGE_OF)


def test_a_comparison_leaves_a_line_for_each_model(capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"n_temperatures": (4, 8), "simulations": 4, "tune": 10, "cores": 1, "random_seed": 1}
    bread.compare({"one": MODEL, "other": MODEL}, **settings)
    assert names(capsys.readouterr().err.splitlines())[-2:] == ["one", "other"]
