"""Reports of verbs that have a table and a verdict, and nothing else that readers of a check look for."""

from __future__ import annotations

from typing import Any

from bread.errors import InvalidArgumentError
from bread.reading.data_annealing import is_data_annealing
from bread.reading.unbiased import is_unbiased


def require_check(report: Any, reader: str) -> None:
    """Refuse reports of `bread.data_annealing` and `bread.unbiased`.

    Raises
    ------
    InvalidArgumentError
        Names the reader, the verb and what reads the report.
    """
    verb = "data_annealing" if is_data_annealing(report) else "unbiased" if is_unbiased(report) else None
    if verb is not None:
        raise InvalidArgumentError(
            f"{reader} reads reports of bread.check, and this one is of bread.{verb}. Its numbers are in "
            "bread.verdict(report) and bread.summary(report)."
        )
