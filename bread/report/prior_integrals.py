"""Group `prior_integrals` of the report: what priors integrate to."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr

from bread.running.state.prior_integral_results import PriorIntegrals
from bread.running.state.results import CheckResult


def prior_integrals_dataset(result: CheckResult) -> xr.Dataset | None:
    """Return the group `prior_integrals`; None where no density was integrated, or all were known to be normalised.

    Returns
    -------
    Dataset or None
        By variable: `log_integral`, what its density given its parents integrates to, as a logarithm in nats (0: it is
        normalised), with its `standard_error`, by bridge sampling against its own draws; `p_value` of "it is 0", not
        adjusted; `is_known`, where a formula says it; `is_named`, the constant is beyond error (p < 0.001 after
        Bonferroni's correction) and 0.02 nats: it was taken out of log weights along reference paths.
        `log_integral_by_parents` and `standard_error_by_parents` (variable, parents), at draws of the parents, NaN
        where there are fewer; `varies_p_value` of "all are the same" (Cochran's Q), NaN without parents; `varies`: they
        are not, so that the posterior is not the model's, a bug. `draws_p_value` of "the random draws follow the
        density"; `draws_differ`: they do not (p < 0.001 after correction for all variables), a bug. Attributes:
        `log_constant`, the sum of what is named; `n_evaluations`; `left_out`, JSON, reasons.
    """
    found = result.prior_integrals
    if found is None or not found.integrals:
        return None
    integrals = found.integrals
    most = max(len(one.by_parents) for one in integrals)
    by_parents, errors = np.full((2, len(integrals), most), np.nan)
    for row, one in enumerate(integrals):
        by_parents[row, : len(one.by_parents)] = [each.log_constant for each in one.by_parents]
        errors[row, : len(one.by_parents)] = [each.standard_error for each in one.by_parents]
    nats = {"units": "nats"}
    return xr.Dataset(
        {
            "log_integral": ("variable", np.array([one.log_integral for one in integrals]), nats),
            "standard_error": ("variable", np.array([one.standard_error for one in integrals]), nats),
            "p_value": ("variable", np.array([one.p_value for one in integrals])),
            "is_known": ("variable", np.array([one.is_known for one in integrals], dtype=bool)),
            "is_named": ("variable", np.array([found.is_named(one) for one in integrals], dtype=bool)),
            "log_integral_by_parents": (("variable", "parents"), by_parents, nats),
            "standard_error_by_parents": (("variable", "parents"), errors, nats),
            "varies_p_value": ("variable", np.array([one.varies_p_value for one in integrals])),
            "draws_p_value": ("variable", np.array([one.draws_p_value for one in integrals])),
            "draws_differ": ("variable", np.array([found.draws_differ(one) for one in integrals], dtype=bool)),
            "varies": ("variable", np.array([found.varies(one) for one in integrals], dtype=bool)),
        },
        coords={
            "variable": np.array([one.variable for one in integrals], dtype=np.str_),
            "parents": np.arange(most),
        },
        attrs={
            "log_constant": found.log_constant,
            "n_evaluations": int(found.n_evaluations),
            "left_out": json.dumps(found.left_out),
        },
    )


def prior_integral_notes(found: PriorIntegrals | None) -> list[str]:
    """Return a sentence on each prior that does not integrate to one, and on those that were not integrated."""
    if found is None:
        return []
    notes = []
    for one in found.integrals:
        if found.is_named(one) and not one.is_known:  # a known one has a note of its own
            notes.append(
                f"The density of {one.variable!r} integrates to exp({one.log_integral:.3f}), not to 1 (standard "
                f"error {one.standard_error:.2g} nats, p = {one.p_value:.1g}). That changes no posterior; it is taken "
                "off, so that log evidences along every path are those of a normalised prior."
            )
        elif found.varies(one):
            values = [each.log_constant for each in one.by_parents]
            notes.append(
                f"The density of {one.variable!r} integrates to exp({min(values):.3f}) to exp({max(values):.3f}), by "
                f"the values of what it depends on (p = {one.varies_p_value:.1g}): the posterior is not the model's."
            )
        elif found.draws_differ(one):
            notes.append(
                f"The random draws of {one.variable!r} do not follow its density (p = {one.draws_p_value:.1g}): one of "
                "them is not the model's."
            )
    if found.left_out:
        reasons = "; ".join(f"{what}: {why}" for what, why in found.left_out.items())
        notes.append(f"Whether these densities integrate to one was not tested: {reasons}")
    return notes
