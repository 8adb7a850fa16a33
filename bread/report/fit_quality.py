"""What the fit on the real data is worth: attributes of the report."""

from __future__ import annotations

from bread.backends.base import Fit
from bread.running.pilots.fitted_hyperparameters import mixing_of
from bread.running.state.results import CheckResult


def fit_attributes(result: CheckResult) -> dict[str, str | int | float]:
    """Return source and diagnostics of the fit, worst over free variables; empty without a fit.

    `fit_source`; `fit_r_hat` (rank-normalised, split: ArviZ's to rounding, without its second of imports) and
    `fit_n_effective` (the smaller one of location and scale: within some percent of ArviZ's)
    with the parameter they belong to; `fit_n_divergences` where they were counted; `fit_distinct_share` where draws
    are copies of others (`bread.statistics.agreement.repeats`), by which `fit_n_effective` is multiplied already;
    `fit_log_evidence` and `fit_log_evidence_error` where its draws were bridged (`bread.running.check.bridge`), nats.
    """
    fit = result.fit or result.partial
    if fit is None:
        return {}
    attributes = quality_attributes(fit)
    if result.bridge is not None:
        attributes["fit_log_evidence"] = result.bridge.log_constant
        attributes["fit_log_evidence_error"] = result.bridge.standard_error
    return attributes


def quality_attributes(fit: Fit) -> dict[str, str | int | float]:
    """Return those of a fit itself; see `fit_attributes`."""
    found = mixing_of(fit)
    attributes: dict[str, str | int | float] = {
        "fit_source": fit.source,
        "fit_r_hat": found.r_hat,
        "fit_r_hat_parameter": found.r_hat_name,
        "fit_n_effective": found.n_effective,
        "fit_n_effective_parameter": found.n_effective_name,
    }
    if fit.distinct_share < 1.0:
        attributes["fit_distinct_share"] = float(fit.distinct_share)
    if fit.n_divergences is not None:
        attributes["fit_n_divergences"] = int(fit.n_divergences)
    return attributes
