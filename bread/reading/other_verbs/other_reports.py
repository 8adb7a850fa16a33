"""Reports of the verbs that neither pages, evidence nor the plots of a check are made of."""

from __future__ import annotations

from typing import Any

from bread.errors import InvalidArgumentError
from bread.report import compare, data_annealing, first_look, path_sampling, unbiased
from bread.report.compat import read_attributes, read_group

_VERBS = {
    compare.GROUP: "bread.compare",
    unbiased.GROUP: "bread.lab.unbiased",
    path_sampling.GROUP: "bread.lab.path_sampling",
    data_annealing.GROUP: "bread.lab.data_annealing",
    first_look.GROUP: "bread.look",
}


def refuse_other_reports(report: Any, what: str, wanted: str) -> None:
    """Raise InvalidArgumentError at a report of another verb than `bread.check` or `bread.debug`.

    Parameters
    ----------
    report : InferenceData or DataTree
    what : str
        What the report is called.
    wanted : str
        Reports that are taken.
    """
    is_check = "simulate_from" in read_attributes(report)  # which holds a first look, too
    for group, verb in _VERBS.items():
        if read_group(report, group) is not None and not (is_check and group == first_look.GROUP):
            raise InvalidArgumentError(
                f"{what} must be one of {wanted}, got one of {verb}. Read it by bread.verdict and bread.summary."
            )
