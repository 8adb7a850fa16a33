"""What a report found, as plain numbers: the facts that verdict and sentences are made from."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from bread.backends.base import Failure
from bread.reading.sentences.agreement import DrawsFound, read_draws
from bread.reading.sentences.carriers import CarriersFound, read_carriers
from bread.reading.sentences.direct import DirectFindings, Makers, Unguarded, read_direct, read_unguarded
from bread.reading.sentences.first_look import LookFound, read_look
from bread.reading.sentences.fit import FitFindings, read_fit
from bread.reading.sentences.fit_quality import FitQuality, read_fit_quality
from bread.reading.sentences.gap import gap_location
from bread.reading.sentences.modes import NO_MODES, Modes, read_modes
from bread.reading.sentences.own_draws import GivenDraws
from bread.reading.sentences.prior_integrals import PriorIntegralFindings, read_prior_integrals
from bread.reading.sentences.quantities import QuantitiesFound, read_quantities, worse_draws
from bread.reading.sentences.unfinished import PhaseSeconds, read_phase_seconds
from bread.reading.sentences.words import YOURS
from bread.reading.sentences.zero_weights import ZeroWeights, read_zero_weights
from bread.report.compat import read_attributes, read_group
from bread.statistics.bounds.goal import Goal
from bread.statistics.real_data.sequential import SHAPE_LEVEL

_NAN = float("nan")
FEWEST_SIMULATIONS = 10  # below, nothing converges
EXACT_SIMULATIONS = ("prior", "localised")  # values of simulate_from under which everything is exact
AT_DRAWS = ("fitted", "posterior")  # those under which data are simulated at draws of a fit
BUG_LEVEL = 0.01 / 3  # of each of three exact tests: 0.01 together; as much again where quantities were added


@dataclass(frozen=True)
class Findings:
    """Numbers of a report at its final T; NaN (or None) where the report lacks them.

    Attributes
    ----------
    decides : {"V", "B"}
        Which bound decides: V, the error of a probability; or B in nats, where a target was given and B has a mean.
    estimate, lower, upper : float
        That bound with its limits.
    limit : float
        What its upper end must not exceed.
    error, error_lower, error_upper : float
        V with its limits, one-sided at ``error_level``.
    error_limit_exact : float
        Limit of V that takes no population of data sets for granted.
    jeffreys, is_reliable : float, bool
        Estimate of B, and whether it has a finite mean.
    previous, previous_temperatures : float
        The bound that decides at the largest T below (search simulations), to see whether it still falls.
    n_zero, n_failed, n_forward : int
        Forward chains that met a ratio of zero; chains in either direction that failed; forward chains in all.
    held, localised : tuple of str
        Parameters held at draws of the fit while simulating; those that have a fit as their law.
    effect : float
        Real minus simulated data, nats, at the T where it is largest; positive = real data harder.
    consistency_p_value, consistency_is_final, consistency_measure : float, bool, str
        Whether the real data are as easy to sample; whether enough simulations say so; by what they differ most.
    forms_p_value : float
        Of the test that both forms of V have one mean.
    fit : FitFindings or None
        Whether the real data look like the model's; None where that was not tested.
    direct : DirectFindings or None
        Tests of exact draws: simulator against density, kernel against density.
    makers : Makers
        Whose kernel and simulator they were.
    unguarded : Unguarded
        What these could not test.
    prior_integrals : PriorIntegralFindings or None
        Priors that do not integrate to one.
    fit_quality : FitQuality or None
        Diagnostics of the fit on the real data.
    first_look : LookFound or None
        Those draws against the gradient of the density at them.
    draws : DrawsFound or None
        The comparison of the user's own draws, or the fit's, with annealed draws on the real data; that of added
        quantities where it differs more.
    not_compared : tuple of str
        Why draws that the user gave let nothing converge, and what to do; empty where they were compared well, or none
        were given.
    quantities : QuantitiesFound or None
        Quantities that were added after the check.
    modes : Modes or None
        The search for modes on the real data; None without one.
    no_modes : str
        Why there was none, as a sentence; "" where that is not known.
    may_propose : bool
        Whether the path begins at a reference from which the kernel could also propose draws and did not.
    has_proposed : bool
        Whether it did though nobody had named such a kernel.
    is_dense : bool
        Whether it had a dense metric though nobody had named a kernel.
    zero_weights : ZeroWeights or None
        Chains on the real data whose weight is zero.
    carriers : CarriersFound or None
        The few simulated data sets that hold most of the bound that decides; None where they are not few.
    phase_seconds : PhaseSeconds
        Wall time of each phase.
    """

    simulate_from: str
    kernel: str
    backend: str
    log_ratio_name: str
    is_interrupted: bool
    is_confirmed: bool
    n_temperatures: int
    n_simulations: int
    max_temperatures: int | None = None
    may_propose: bool = False
    has_proposed: bool = False
    is_dense: bool = False
    held: tuple[str, ...] = ()
    localised: tuple[str, ...] = ()
    decides: str = "V"
    estimate: float = _NAN
    lower: float = _NAN
    upper: float = _NAN
    limit: float = _NAN
    error: float = _NAN
    error_lower: float = _NAN
    error_upper: float = _NAN
    error_limit_exact: float = _NAN
    error_level: float = _NAN
    is_reliable: bool = False
    jeffreys: float = _NAN
    previous: float = _NAN
    previous_temperatures: float = _NAN
    n_zero: int = 0
    n_failed: int = 0
    n_forward: int = 0
    gap_beta: float = _NAN
    consistency_p_value: float = _NAN
    consistency_is_final: bool = True
    consistency_measure: str = ""
    effect: float = _NAN
    alarm_p_value: float = _NAN
    forms_p_value: float = _NAN
    rank_p_value: float = _NAN
    rank_function: str = ""
    fit: FitFindings | None = None
    direct: DirectFindings | None = None
    makers: Makers = field(default_factory=Makers)
    unguarded: Unguarded = field(default_factory=Unguarded)
    prior_integrals: PriorIntegralFindings | None = None
    fit_quality: FitQuality | None = None
    first_look: LookFound | None = None
    draws: DrawsFound | None = None
    not_compared: tuple[str, ...] = ()
    quantities: QuantitiesFound | None = None
    modes: Modes | None = None
    no_modes: str = ""
    zero_weights: ZeroWeights | None = None
    carriers: CarriersFound | None = None
    phase_seconds: PhaseSeconds = field(default_factory=PhaseSeconds)

    @property
    def quantity_p_value(self) -> float:
        """Of the ranks of added quantities; NaN where there are none."""
        return _NAN if self.quantities is None else self.quantities.p_value

    @property
    def is_fit_doubtful(self) -> bool:
        """Whether data sets were simulated at draws of a fit that did not converge."""
        fit = self.fit_quality
        return self.simulate_from in AT_DRAWS and fit is not None and fit.is_doubtful

    @property
    def chains_contradict(self) -> bool:
        """Whether an exact test of the chains failed; exact where the draws that data were simulated at are."""
        tests = (self.alarm_p_value, self.forms_p_value, self.rank_p_value, self.quantity_p_value)
        return any(p_value <= BUG_LEVEL for p_value in tests)

    @property
    def contradicts_draws(self) -> bool:
        """Whether such a test says that the draws which data were simulated at are not the posterior's."""
        return self._tells_of_draws and not self.tests_disagree

    @property
    def tests_disagree(self) -> bool:
        """Whether such a test says so, and certified draws agree with them: what simulates data may be at fault."""
        return self._tells_of_draws and self.draws is not None and self.draws.status == "agreement"

    @property
    def _tells_of_draws(self) -> bool:
        return self.simulate_from == "posterior" and self.chains_contradict and not self.is_fit_doubtful

    @property
    def is_unlike(self) -> bool:
        """Whether the real data do not anneal like simulated ones, with enough simulations to say so."""
        return self.consistency_is_final and self.consistency_p_value <= SHAPE_LEVEL

    @property
    def has_own_draws(self) -> bool:
        """Whether draws on the real data are the user's, not those of a fit that bread made."""
        return self.fit_quality is None or self.fit_quality.source == YOURS

    @property
    def is_reached(self) -> bool:
        """Whether the upper end of the bound that decides is at most its limit."""
        return self.upper <= self.limit

    @property
    def is_certified(self) -> bool:
        """Whether enough fresh simulations, all finished, of a fit that is not doubtful, reached it."""
        is_whole = self.is_confirmed and not (self.is_interrupted or self.n_failed or self.is_fit_doubtful)
        return is_whole and self.n_simulations >= FEWEST_SIMULATIONS and self.is_reached

    @property
    def lacks_own_draws(self) -> bool:
        """Whether draws that the user gave are all that stands between the check and "converged"."""
        return self.is_certified and bool(self.not_compared)

    @property
    def lacks_prior(self) -> bool:
        """Whether a parameter where its prior does not expect it is what stands there: the bound is no answer then."""
        return self.is_certified and self.fit is not None and self.fit.of_prior is not None

    @property
    def misses_mode(self) -> bool:
        """Whether the annealed draws miss a mode on the real data."""
        return self.modes is not None and self.modes.n_missed > 0

    @property
    def rate_of_fall(self) -> float:
        """A in bound ~ T^-a between the last two T; 1/2 for V of a perfect sampler, 1 for B; NaN if one T was run."""
        steps = math.log(self.n_temperatures / self.previous_temperatures) if self.previous_temperatures > 0 else _NAN
        if not (self.previous > 0 and self.estimate > 0 and steps > 0):
            return _NAN
        return math.log(self.previous / self.estimate) / steps


def read_findings(report: Any) -> Findings:
    """Return the facts of a report, of either kind, complete or interrupted."""
    attributes = read_attributes(report)
    settings = json.loads(str(attributes.get("settings", "{}")))
    may_propose = (
        attributes.get("path") == "reference"
        and settings.get("kernel") is None
        and attributes.get("inference_library") in ("pymc", "stan")
    )
    does_propose = "independence" in str(attributes.get("kernel", ""))
    is_dense = "dense metric" in str(attributes.get("kernel", ""))
    simulate_from, names = str(attributes.get("simulate_from", "prior")), tuple(settings.get("hyperparameters") or ())
    warnings = json.loads(str(attributes.get("warnings", "[]")))
    facts: dict[str, Any] = {
        "simulate_from": simulate_from,
        "kernel": str(attributes.get("kernel", "")),
        "backend": str(attributes.get("inference_library", "")),
        "log_ratio_name": str(attributes.get("log_ratio_name", "log ratio")),
        "held": names if simulate_from == "fitted" else (),
        "localised": names if simulate_from == "localised" else (),
        "no_modes": next((one for one in warnings if one.startswith(NO_MODES)), ""),
        "is_interrupted": bool(attributes.get("is_interrupted", 0)),
        "is_confirmed": 0 < int(attributes.get("n_confirming", 0)) == int(attributes.get("n_confirmed", 0)),
        "n_temperatures": int(attributes.get("n_temperatures", 0)),
        "n_simulations": 0,
        "makers": Makers.of(attributes),
        "fit_quality": read_fit_quality(attributes),
        "first_look": read_look(report),
        "zero_weights": read_zero_weights(attributes),
        "unguarded": read_unguarded(attributes),
        "phase_seconds": read_phase_seconds(read_group(report, "cost"), settings),
        "max_temperatures": None if settings.get("n_temperatures") else settings.get("max_temperatures"),
        "may_propose": may_propose and not does_propose,
        "has_proposed": may_propose and does_propose,
        "is_dense": settings.get("kernel") is None and is_dense,
    }
    bounds, certificate = read_group(report, "bounds"), read_group(report, "certificate")
    n_temperatures = facts["n_temperatures"]
    if bounds is not None and certificate is not None and n_temperatures in bounds["n_temperatures"].values:
        facts |= _bounds(bounds, certificate, n_temperatures, attributes)
        facts |= _failures(report, bounds, n_temperatures)
        facts["carriers"] = read_carriers(report, n_temperatures, facts["decides"])
    for name, read in (
        ("annealing_path", _path),
        ("consistency", _consistency),
        ("alarm", _alarm),
        ("fit", lambda group: {"fit": read_fit(group, () if simulate_from == "prior" else names)}),
        ("direct_tests", lambda dataset: {"direct": read_direct(dataset)}),
        ("prior_integrals", lambda dataset: {"prior_integrals": read_prior_integrals(dataset)}),
        ("agreement", lambda agreement: {"draws": read_draws(agreement)}),
        ("modes", lambda modes: {"modes": read_modes(modes)}),
    ):
        dataset = read_group(report, name)
        if dataset is not None:
            facts |= read(dataset)
    facts["quantities"] = read_quantities(report)
    if settings.get("posterior"):
        given = GivenDraws(_n_annealed(report), simulate_from == "localised", settings.get("draws"), warnings)
        facts["not_compared"] = given.not_compared(facts.get("draws"))
    facts["draws"] = worse_draws(facts.get("draws"), facts["quantities"])
    return Findings(**facts)


def _n_annealed(report: Any) -> int:
    """Return the number of annealed draws on the real data."""
    draws = read_group(report, "posterior")
    return 0 if draws is None else draws.sizes["chain"] * draws.sizes["draw"]


def _bounds(
    bounds: xr.Dataset, certificate: xr.Dataset, n_temperatures: int, attributes: dict[str, Any]
) -> dict[str, Any]:
    """Return V, B, and the one of them that decides."""
    here, errors = bounds.sel(n_temperatures=n_temperatures), certificate.sel(n_temperatures=n_temperatures)
    is_reliable = bool(here["jeffreys_reliable"])
    error_lower, error_upper = (float(value) for value in errors["error_ci"].values)
    decides, limit = Goal(float(attributes["max_error"]), attributes.get("target")).decides(is_reliable)
    source, name = (bounds, "jeffreys") if decides == "B" else (certificate, "error")
    lower, upper = (float(value) for value in source[f"{name}_ci"].sel(n_temperatures=n_temperatures).values)
    earlier = [int(n) for n in source["n_temperatures"].values if n < n_temperatures]
    below = [n for n in earlier if np.isfinite(float(source[name].sel(n_temperatures=n)))]
    return {
        "decides": decides,
        "estimate": float(source[name].sel(n_temperatures=n_temperatures)),
        "lower": lower,
        "upper": upper,
        "limit": limit,
        "error": float(errors["error"]),
        "error_lower": error_lower,
        "error_upper": error_upper,
        "error_limit_exact": float(errors["error_limit_exact"]),
        "error_level": float(certificate.attrs.get("level", _NAN)),
        "is_reliable": is_reliable,
        "jeffreys": float(here["jeffreys"]),
        "n_simulations": int(here["n_simulations"]),
        "previous": float(source[name].sel(n_temperatures=below[-1])) if below else _NAN,
        "previous_temperatures": float(below[-1]) if below else _NAN,
    }


def _failures(report: Any, bounds: xr.Dataset, n_temperatures: int) -> dict[str, Any]:
    """Count failures among the simulations that gave the bound."""
    used = bounds["used"].sel(n_temperatures=n_temperatures).values.astype(bool)
    counts = {"n_zero": 0, "n_failed": 0, "n_forward": 0}
    for direction in ("forward", "reverse"):
        runs = read_group(report, direction)
        if runs is None:
            continue
        failure = runs["failure"].sel(n_temperatures=n_temperatures).values[used]
        counts["n_failed"] += int(np.count_nonzero(failure > Failure.ZERO_RATIO))
        if direction == "forward":
            counts["n_zero"] = int(np.count_nonzero(failure == Failure.ZERO_RATIO))
            counts["n_forward"] = int(failure.size)
    return counts


def _path(path: xr.Dataset) -> dict[str, Any]:
    log_ratio = path["log_ratio"]
    betas = path["inverse_temperature"].values
    return {
        "gap_beta": gap_location(
            betas, log_ratio.sel(direction="forward").values, log_ratio.sel(direction="reverse").values
        )
    }


def _consistency(consistency: xr.Dataset) -> dict[str, Any]:
    effect = consistency["effect"].values
    largest = effect[int(np.nanargmax(np.abs(effect)))] if np.isfinite(effect).any() else _NAN
    measures, by_measure = consistency["measure"].values, consistency["p_value_by_measure"].values
    return {
        "consistency_p_value": float(consistency["shape_p_value"]),
        "consistency_is_final": bool(consistency["is_final"]),
        "consistency_measure": str(measures[int(np.argmin(by_measure))]) if len(measures) else "",
        "effect": float(largest),
    }


def _alarm(alarm: xr.Dataset) -> dict[str, Any]:
    p_values = alarm["weighted_rank_p_value"].values
    known = np.isfinite(p_values).any()
    return {
        "alarm_p_value": float(alarm["p_value"]),
        "forms_p_value": float(alarm["forms_p_value"]),
        "rank_p_value": float(alarm["weighted_rank_p_value_combined"]),
        "rank_function": str(alarm["function"].values[int(np.nanargmin(p_values))]) if known else "",
    }
