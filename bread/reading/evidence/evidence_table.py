"""Every estimator of the log evidence as tables: on simulated data sets, and on the real data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm

from bread.reading.evidence.evidence_chains import FloatArray, ObservedChains, SimulatedChains
from bread.seeds import Purpose, seed_sequence
from bread.statistics.bounds.bounds import log_evidence_upper_many
from bread.statistics.evidence import evidence as estimators
from bread.statistics.evidence.evidence import Estimate
from bread.statistics.evidence.evidence_posterior import histogram_posterior

_NAN = float("nan")


class _Row(NamedTuple):
    direction: str
    role: str
    note: str


BRIDGE = "bridge sampling"
ROWS = {
    "forward AIS": _Row("forward", "recommended", "log of the mean weight; its limits hold what is said of them"),
    "mean log weight": _Row("forward", "lower bound", "below the log evidence on average, at any number of chains"),
    "cumulant, forward": _Row("forward", "estimate", "right where log weights are Gaussian"),
    "likelihood weighting": _Row("forward", "warning", "never use it: draws from the path's base alone"),
    "harmonic mean": _Row("forward", "warning", "never use it: its variance is infinite as a rule"),
    BRIDGE: _Row("fit", "estimate", "from your draws, or the fit's: right where they are"),
    "reverse AIS": _Row("reverse", "upper bound", "above the log evidence on average"),
    "mean reverse log weight": _Row("reverse", "upper bound", "above the log evidence on average"),
    "cumulant, reverse": _Row("reverse", "estimate", "right where log weights are Gaussian"),
    "cumulant, combined": _Row("both", "estimate", "right to the third cumulant"),
    "BAR": _Row("both", "estimate", "the best where reverse chains start from exact draws"),
    "histogram": _Row("both", "estimate", "the mean of its posterior"),
    "thermodynamic, forward": _Row("forward", "estimate", "biased as far as chains lag behind"),
    "thermodynamic, reverse": _Row("reverse", "estimate", "biased as far as chains lag behind"),
    "sandwich, upper": _Row("both", "upper bound", "one reverse weight among forward ones; above on average"),
}


def simulated_table(chains: SimulatedChains | None) -> pd.DataFrame:
    """Return log evidences (nats): one row a simulated data set, one column an estimator of `ROWS`.

    Empty without simulated data sets. ``BAR, standard error`` and ``histogram, sd`` take the reverse chains of a data
    set for independent, which share its exact draw.
    """
    index = pd.Index([] if chains is None else chains.simulation, name="simulation", dtype=np.int64)
    if chains is None:
        return pd.DataFrame(columns=[name for name in ROWS if name != BRIDGE], index=index, dtype=np.float64)
    upper = log_evidence_upper_many(chains.forward, chains.reverse)
    rows = []
    for place in range(len(chains.simulation)):
        up, down = chains.forward[place], chains.reverse[place]
        up_ratio, down_ratio = chains.forward_log_ratio[place], chains.reverse_log_ratio[place]
        rng = np.random.default_rng(seed_sequence(0, Purpose.EVIDENCE, int(chains.simulation[place])))
        posterior = histogram_posterior(up, down, rng, n_draws=500)
        bar = estimators.bennett(up, down)
        found = {
            "forward AIS": estimators.average_weight(up).value,
            "mean log weight": estimators.mean_log_weight(up).value,
            "cumulant, forward": estimators.cumulant_forward(up).value,
            "likelihood weighting": _weighting(up_ratio[:, 0]).value,
            "harmonic mean": _harmonic(up_ratio[:, -1]).value,
            "reverse AIS": estimators.harmonic_weight(down).value,
            "mean reverse log weight": estimators.mean_log_weight(down).value,
            "cumulant, reverse": estimators.cumulant_reverse(down).value,
            "cumulant, combined": estimators.cumulant_combined(up, down).value,
            "BAR": bar.value,
            "histogram": posterior.mean,
            "thermodynamic, forward": estimators.thermodynamic_integral(chains.betas, up_ratio).value,
            "thermodynamic, reverse": estimators.thermodynamic_integral(chains.betas, down_ratio).value,
            "sandwich, upper": float(upper[place]),
            "BAR, standard error": bar.standard_error,
            "histogram, sd": posterior.standard_deviation,
        }
        rows.append(found)
    return pd.DataFrame(rows, index=index)


def estimator_table(
    chains: ObservedChains, simulated: pd.DataFrame, limits: tuple[float, float], level: float, bridge: Estimate
) -> pd.DataFrame:
    """Return a row for every estimator; see `bread.evidence`.

    Parameters
    ----------
    chains : ObservedChains
    simulated : DataFrame
        `simulated_table`.
    limits : tuple of float
        Of the recommended estimate.
    level : float
    bridge : Estimate
        From the fit's draws; NaN without.
    """
    real = {**_on_real_data(chains), BRIDGE: bridge}
    rows = []
    for name, row in ROWS.items():
        value, error = real.get(name, Estimate(_NAN, _NAN))
        reach = float(norm.ppf((1.0 + level) / 2.0)) * error
        lower, upper = limits if row.role == "recommended" else (value - reach, value + reach)
        difference, spread = _against_bar(simulated, name)
        rows.append(
            {
                "log_evidence": value,
                "standard_error": error,
                "lower": lower,
                "upper": upper,
                "direction": row.direction,
                "role": row.role,
                "simulated_error": difference,
                "simulated_sd": spread,
                "note": row.note,
            }
        )
    return pd.DataFrame(rows, index=pd.Index(ROWS, name="estimator"))


def _on_real_data(chains: ObservedChains) -> dict[str, Estimate]:
    found = {
        "forward AIS": estimators.average_weight(chains.log_weight),
        "mean log weight": estimators.mean_log_weight(chains.log_weight),
        "cumulant, forward": estimators.cumulant_forward(chains.log_weight),
    }
    base, end = chains.log_ratio[:, 0], chains.log_ratio[:, 1]
    found["likelihood weighting"] = _weighting(base[~np.isnan(base)])
    found["harmonic mean"] = _harmonic(end[np.isfinite(end)])
    return found


def _weighting(log_ratio: FloatArray) -> Estimate:
    is_known = len(log_ratio) > 0 and not np.isnan(log_ratio).any() and not np.isposinf(log_ratio).any()
    return estimators.average_weight(log_ratio) if is_known else Estimate(_NAN, _NAN)


def _harmonic(log_ratio: FloatArray) -> Estimate:
    is_known = len(log_ratio) > 0 and bool(np.isfinite(log_ratio).all())
    return estimators.harmonic_weight(log_ratio) if is_known else Estimate(_NAN, _NAN)


def _against_bar(simulated: pd.DataFrame, name: str) -> tuple[float, float]:
    """Return mean and standard deviation, over simulated data sets, of an estimator minus BAR."""
    if not len(simulated) or name not in simulated:
        return _NAN, _NAN
    values = simulated[name].to_numpy(dtype=np.float64)
    difference = values - simulated["BAR"].to_numpy(dtype=np.float64)
    if not np.isfinite(difference).all():
        return (float("-inf") if np.isneginf(difference).any() else _NAN), _NAN
    return float(difference.mean()), float(difference.std(ddof=1)) if len(difference) > 1 else _NAN
