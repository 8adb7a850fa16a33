"""The corpus of small Stan programs in `stan_corpus/`, and what must become of each.

Every program ``<name>.stan`` has data in ``<name>.json`` and a row in ``expected.json``. In a program, comments mark
the lines of the likelihood (``[likelihood]``) and the line that a refusal must name (``[refused]``).
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bread.backends.stan.analysis.analyse import analyse
from bread.backends.stan.analysis.program import Program
from bread.backends.stan.language.source import Source, StancOutput

FOLDER = Path(__file__).parent / "stan_corpus"


@dataclass(frozen=True)
class Case:
    """One program of the corpus.

    Attributes
    ----------
    rows : tuple of str
        What it is an example of: "2." of the split, "4." of the simulator.
    outcome : str
        "supported", "split refused", "simulator refused", or "observed refused" (the outcomes cannot be inferred).
    match : str
        Part of the refusal.
    observed_argument : list of str or None
        What the user passes as ``observed=``.
    observed : tuple of str
        Observed variables, given or inferred.
    likelihood_lines, both_lines : list of int
        Lines of statements that are likelihood, and that hold terms of the prior, too.
    refused_line : int or None
    hyperparameters : set of str or None
        None where the table does not say.
    drawn_together : tuple of str
        Parameters that are drawn as parts of another variable, so that they cannot be held at values.
    """

    name: str
    rows: tuple[str, ...]
    outcome: str
    match: str
    observed_argument: list[str] | None
    observed: tuple[str, ...]
    likelihood_lines: list[int]
    both_lines: list[int]
    refused_line: int | None
    hyperparameters: set[str] | None
    drawn_together: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.stan"

    @property
    def source(self) -> Source:
        return Source.from_file(self.path)

    @property
    def data(self) -> dict[str, Any]:
        values: dict[str, Any] = json.loads((FOLDER / f"{self.name}.json").read_text())
        return values


def load_corpus() -> list[Case]:
    """Read the table."""
    table = json.loads((FOLDER / "expected.json").read_text())
    return [
        Case(
            name=name,
            rows=tuple(row["rows"]),
            outcome=row["outcome"],
            match=row["match"],
            observed_argument=row["observed_argument"],
            observed=tuple(row["observed"]),
            likelihood_lines=row["likelihood_lines"],
            both_lines=row["both_lines"],
            refused_line=row["refused_line"],
            hyperparameters=None if row["hyperparameters"] is None else set(row["hyperparameters"]),
            drawn_together=tuple(row.get("drawn_together", ())),
        )
        for name, row in table.items()
    ]


CORPUS = load_corpus()
SUPPORTED = [case for case in CORPUS if case.outcome == "supported"]


@cache
def stanc_path() -> Path:
    """Return the stanc that httpstan brings, or skip."""
    spec = importlib.util.find_spec("httpstan")
    if spec is None or spec.origin is None:
        pytest.skip("needs httpstan's stanc")
    return Path(spec.origin).parent / "stanc"


def stanc(text: str, *options: str) -> StancOutput:
    """Run httpstan's stanc on a program text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.stan"
        path.write_text(text, encoding="utf-8")
        command = [str(stanc_path()), *options, "--name=bread_m_", str(path)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    return StancOutput(run.returncode, run.stdout, run.stderr)


@cache
def analysed(name: str) -> Program:
    """Return the analysis of a program of the corpus, made once."""
    case = next(case for case in CORPUS if case.name == name)
    return analyse(case.source, observed=case.observed_argument, data=case.data, stanc=stanc)


def analyse_text(text: str, observed: list[str] | None = None, likelihood: list[int] | None = None) -> Program:
    """Analyse a program given as text."""
    return analyse(Source.from_text(text), observed=observed, likelihood_lines=likelihood, stanc=stanc)
