"""Group `agreement` of the report: the user's own draws, or the fit's, against annealed draws on the real data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from bread.backends.base import Fit, FloatArray
from bread.report.bounds import CI_BOUND
from bread.report.certificate import error_limit
from bread.report.labels import component_labels
from bread.running.state.results import CheckResult
from bread.statistics.agreement import agreement
from bread.statistics.agreement.content import QUANTILES, IntervalContents, interval_contents
from bread.statistics.agreement.disagreement import Comparison, compare_draws
from bread.statistics.agreement.distribution_bound import distribution_bound
from bread.statistics.agreement.draws import are_constant, effective_draws_suffice
from bread.statistics.agreement.lower_bound import ToldApart
from bread.statistics.agreement.moments import compare_moments
from bread.statistics.agreement.power import Setting, detectable, detectable_probability

LEVEL = 0.95
ALPHA = 1.0 - LEVEL  # of `error_limit`: half for V, half for the band around the annealed draws
MOST_PAIRS = 45  # products of two parameters in the test of equality: all of them up to 10 parameters
ANYTHING = 1.0 - 1e-9  # an error that explains any difference: where V is not known
N_STEPS = 201  # of the distribution functions that are kept
SHARES = ("0.05", "0.5", "0.95", "0.05 to 0.95")


class Columns(NamedTuple):
    """Quantities in columns: the fit's (chain, draw, d) and the annealed (n, d), log density last if there is one.

    `distinct_share` is that of the fit.
    """

    names: tuple[str, ...]
    own: FloatArray
    annealed: FloatArray
    has_log_density: bool
    distinct_share: float = 1.0

    @property
    def n_parameters(self) -> int:
        """How many there are beside the log density."""
        return len(self.names) - self.has_log_density

    @property
    def n_continuous(self) -> int:
        """How many parameters are: no two of the annealed draws, which are independent, are equal."""
        ordered = np.sort(self.annealed[:, : self.n_parameters], axis=0)
        return int((np.diff(ordered, axis=0) > 0.0).all(axis=0).sum())

    @property
    def n_discrete(self) -> int:
        """How many parameters vary and are not continuous."""
        flat = self.own.reshape(-1, len(self.names))
        n_constant = int(are_constant(flat, self.annealed)[: self.n_parameters].sum())
        return self.n_parameters - self.n_continuous - n_constant


def agreement_dataset(
    result: CheckResult, annealed: dict[str, NDArray[Any]] | None, n_temperatures: int
) -> xr.Dataset | None:
    """Return the group `agreement`; None without a fit, without annealed draws, and for a localised model.

    Parameters
    ----------
    result : CheckResult
    annealed : dict of str to ndarray, each (n, ...), or None
        Annealed draws on the real data in the model's own coordinates.
    n_temperatures : int
        Whose V is the error of the annealed draws.

    Returns
    -------
    Dataset or None
        By `parameter` (names as ``az.summary`` writes them; the last is "log density"):

        * `interval_content` (.., quantile), `interval_content_ci` (.., ci_bound): share of annealed draws below the 5,
          50 and 95% quantile of the fit's draws (`fit_quantile`), with limits that hold for all at once;
          `central_content`, `central_content_ci`: the same between the 5% and the 95% quantile;
        * `content_p_value`, `content_p_value_beyond_error` (.., share): of the hypotheses that both have one law, and
          that no probability differs by more than the annealed draws' error; corrected for their number;
        * `fit_mean`, `fit_sd` of the fit's draws; `mean_shift`, `sd_ratio` with `_error`: in standard deviations of the
          annealed draws;
        * `cdf_difference`: largest difference D of the distribution functions; `error_limit`: D + DKW + V, how far at
          most any P(parameter <= x) of the fit is from the posterior's, V being an average over data sets;
        * `n_effective`, `n_effective_quantile` (.., quantile) of the fit's draws;
        * `step`, `fit_cdf`, `annealed_cdf` (.., step_number): both distribution functions, for the plot.

        By `tested` (parameters, log density, products of pairs): `p_value`, `p_value_beyond_error` of the test of
        equality, `difference`, adjusted for their number. `p_value_combined`, `p_value_beyond_error_combined`: of all
        families of tests. `detectable_shift`, `detectable_missing_mass` (of a continuous parameter: standard
        deviations; mass; NaN where all are discrete), `detectable_probability` (error of a P(parameter <= x), whatever
        the law) and `..._beyond_error`: what would have been seen in 9 of 10 comparisons, NaN where draws are too few.
        Where a classifier has looked: `taken_for_own` (draws), the share that it takes for the fit's, of the fit's and
        of the annealed draws; `told_apart_p_value`, `told_apart_p_value_beyond_error`; `total_variation_lower`: at
        least so much is some probability of the fit off, by a limit of the difference of these shares, less V's.
        Attributes: `status` ("too few draws", "agreement", "difference", "disagreement"), `source`, `n_chains`,
        `n_draws`, `n_discrete` (parameters), `left_out` (free variables that were not compared), `n_annealed`,
        `n_dropped` (annealed chains that ended nowhere), `error` (V's limit; 1 where it is
        not known), `sampling_error` (DKW), `level`.
    """
    fit = result.compared
    if fit is None or result.localisation is not None or annealed is None:
        return None
    annealed = annealed | result.observed_derived
    columns = _columns(result, fit, annealed)
    if columns is None:
        return None
    shared = error_limit(result, n_temperatures, 1.0 - ALPHA / 2.0)
    return comparison_dataset(
        columns,
        error=error_limit(result, n_temperatures, result.error_level),
        shared_error=shared,
        attributes={
            "source": fit.source,
            "left_out": ", ".join(_left_out(result, fit, annealed)),
            "n_dropped": int(result.n_draws_dropped),
            "n_zero": int(result.n_draws_zero),
        },
        told_apart=result.told_apart,
    )


def comparison_dataset(
    columns: Columns,
    *,
    error: float,
    shared_error: float,
    attributes: Mapping[str, str | int],
    told_apart: ToldApart | None = None,
) -> xr.Dataset:
    """Return the comparison of two sets of draws as a group like `agreement`.

    Parameters
    ----------
    columns : Columns
        Something in them must vary.
    error : float
        V's limit at the level that decides; NaN where it is not known.
    shared_error : float
        The same at level 1 - ALPHA / 2, for `error_limit`.
    attributes : mapping
        `source`, `n_dropped`, `n_zero`.
    told_apart : ToldApart or None
        What a classifier made of both.
    """
    error, shared = _known(error), _known(shared_error)
    contents, sizes = _contents(columns, error)
    test = _test(columns, error)
    comparison = compare_draws(
        contents.p_value,
        contents.p_value_beyond_error,
        test.p_value_combined,
        test.p_value_beyond_error_combined,
        sizes.quantiles,
        *(() if told_apart is None else (told_apart.p_value(0.0), told_apart.p_value(error))),
    )
    bound = distribution_bound(columns.own, columns.annealed, error=shared, alpha=ALPHA / 2.0)
    moments = compare_moments(columns.own, columns.annealed, sizes.whole, sizes.whole)
    flat = columns.own.reshape(-1, len(columns.names))
    by_parameter = {
        "fit_quantile": (("parameter", "quantile"), contents.quantile),
        "interval_content": (("parameter", "quantile"), contents.content),
        "interval_content_ci": (
            ("parameter", "quantile", "ci_bound"),
            np.stack([contents.lower, contents.upper], axis=-1),
        ),
        "central_content": ("parameter", contents.interval),
        "central_content_ci": (
            ("parameter", "ci_bound"),
            np.stack([contents.interval_lower, contents.interval_upper], axis=-1),
        ),
        "content_p_value": (("parameter", "share"), contents.p_value),
        "content_p_value_beyond_error": (("parameter", "share"), contents.p_value_beyond_error),
        **{name: ("parameter", values) for name, values in moments._asdict().items()},
        "fit_mean": ("parameter", flat.mean(axis=0)),
        "fit_sd": ("parameter", flat.std(axis=0)),
        "cdf_difference": ("parameter", bound.cdf_difference),
        "error_limit": ("parameter", bound.error_limit),
        "n_effective": ("parameter", sizes.whole),
        "n_effective_quantile": (("parameter", "quantile"), sizes.quantiles),
        **_distribution_functions(columns),
    }
    by_test = {
        "p_value": ("tested", np.asarray(test.p_value)),
        "p_value_beyond_error": ("tested", np.asarray(test.p_value_beyond_error)),
        "difference": ("tested", np.asarray(test.difference)),
    }
    return xr.Dataset(
        {
            **by_parameter,
            **by_test,
            "p_value_combined": ((), np.float64(comparison.p_value)),
            "p_value_beyond_error_combined": ((), np.float64(comparison.p_value_beyond_error)),
            **_power(columns, comparison, sizes, len(test.names), error),
            **({} if told_apart is None else _told_apart(told_apart, error, shared)),
        },
        coords={
            "parameter": np.array(columns.names, dtype=np.str_),
            "quantile": np.array(QUANTILES),
            "ci_bound": CI_BOUND,
            "share": np.array(SHARES, dtype=np.str_),
            "tested": np.array(test.names, dtype=np.str_),
            **({} if told_apart is None else {"draws": np.array(["own", "certified"])}),
        },
        attrs={
            "status": comparison.status,
            **attributes,
            "n_chains": int(columns.own.shape[0]),
            "n_draws": int(columns.own.shape[0] * columns.own.shape[1]),
            "n_discrete": columns.n_discrete,
            "n_annealed": len(columns.annealed),
            "error": 1.0 if error == ANYTHING else error,
            "sampling_error": bound.sampling_error,
            "level": LEVEL,
        },
    )


def _left_out(result: CheckResult, fit: Fit, annealed: dict[str, NDArray[Any]]) -> list[str]:
    """Return the free variables that one of the two has no draws of."""
    return [name for name in result.info.layout.positions if not (name in fit.draws and name in annealed)]


def _known(error: float) -> float:
    """Return an error that the tests can take."""
    return ANYTHING if np.isnan(error) else min(error, ANYTHING)


def _columns(result: CheckResult, fit: Fit, annealed: dict[str, NDArray[Any]]) -> Columns | None:
    """Return what is compared; None where nothing varies or there are fewer than two annealed draws."""
    names = [name for name in fit.draws if name in annealed]
    if not names or len(annealed[names[0]]) < 2:
        return None
    labels: list[str] = []
    own: list[FloatArray] = []
    theirs: list[FloatArray] = []
    for name in names:
        values = np.asarray(fit.draws[name], dtype=np.float64)
        dims = result.info.layout.parameters.get(name, ())
        labels += component_labels(name, values.shape[2:], dims, result.info.data.coords)
        own.append(values.reshape(*values.shape[:2], -1))
        theirs.append(np.asarray(annealed[name], dtype=np.float64).reshape(len(annealed[name]), -1))
    densities = result.fit_log_density, result.observed_log_density
    has_log_density = all(values is not None and np.isfinite(values).all() for values in densities)
    if has_log_density:
        labels.append(agreement.LOG_DENSITY)
        own.append(np.asarray(densities[0])[..., None])
        theirs.append(np.asarray(densities[1])[:, None])
    columns = Columns(
        tuple(labels), np.concatenate(own, axis=2), np.concatenate(theirs, axis=1), has_log_density, fit.distinct_share
    )
    if are_constant(columns.own.reshape(-1, len(labels)), columns.annealed).all():
        return None
    return columns


class _Sizes(NamedTuple):
    """Effective sizes of the fit's draws: of each quantity (d,), and of each quantile (d, 3)."""

    whole: FloatArray
    quantiles: FloatArray


def _contents(columns: Columns, error: float) -> tuple[IntervalContents, _Sizes]:
    """Return the interval contents and the effective sizes that their tests used."""
    share = columns.distinct_share
    whole = share * agreement.effective_sample_size(columns.own)
    own = [share * agreement.quantile_effective_size(columns.own, quantile) for quantile in QUANTILES]
    sizes = _Sizes(whole, np.minimum(whole[:, None], np.array(own).T))
    return interval_contents(columns.own, columns.annealed, sizes.quantiles, error=error, level=LEVEL), sizes


def _test(columns: Columns, error: float) -> agreement.Agreement:
    """Return the test of equality, also of the log density and of products of pairs."""
    n = columns.n_parameters
    log_density = (columns.own[..., -1], columns.annealed[:, -1]) if columns.has_log_density else None
    return agreement.agreement_test(
        {name: columns.own[..., i] for i, name in enumerate(columns.names[:n])},
        {name: columns.annealed[:, i] for i, name in enumerate(columns.names[:n])},
        log_density=log_density,
        most_pairs=MOST_PAIRS,
        error=error,
        distinct_share=columns.distinct_share,
    )


def _told_apart(found: ToldApart, error: float, shared: float) -> dict[str, Any]:
    """Return what a classifier made of both, and how much of it the annealed draws' error leaves."""
    return {
        "taken_for_own": ("draws", np.array([found.own, found.certified])),
        "told_apart_p_value": ((), np.float64(found.p_value(0.0))),
        "told_apart_p_value_beyond_error": ((), np.float64(found.p_value(error))),
        "total_variation_lower": ((), np.float64(max(0.0, found.lower_limit(ALPHA / 2.0) - shared))),
    }


def _power(
    columns: Columns, comparison: Comparison, sizes: _Sizes, n_tested: int, error: float
) -> dict[str, tuple[tuple[()], np.float64]]:
    """Return what would have been seen, as a difference and as one beyond the error."""
    names = "detectable_shift", "detectable_missing_mass", "detectable_probability"
    if comparison.status == "too few draws":
        return {f"{name}{end}": ((), np.float64(np.nan)) for name in names for end in ("", "_beyond_error")}
    fewest = effective_draws_suffice(sizes.quantiles).fewest
    found = {}
    for end, allowed in (("", 0.0), ("_beyond_error", error)):
        setting = Setting(len(columns.annealed), fewest, len(columns.names), n_tested, allowed)
        of_normal = detectable(setting) if columns.n_continuous else (np.nan, np.nan)
        for name, value in zip(names, (*of_normal, detectable_probability(setting)), strict=True):
            found[f"{name}{end}"] = ((), np.float64(value))
    return found


def _distribution_functions(columns: Columns) -> dict[str, tuple[tuple[str, str], FloatArray]]:
    """Return both distribution functions of each quantity at quantiles of all draws together."""
    levels = np.linspace(0.0, 1.0, N_STEPS)
    flat = columns.own.reshape(-1, len(columns.names))
    steps, own, theirs = (np.empty((len(columns.names), N_STEPS)) for _ in range(3))
    for row in range(len(columns.names)):
        ordered, compared = np.sort(flat[:, row]), np.sort(columns.annealed[:, row])
        halves = [np.quantile(values, levels, method="inverted_cdf") for values in (ordered, compared)]
        steps[row] = np.sort(np.concatenate(halves))[::2][:N_STEPS]
        own[row] = np.searchsorted(ordered, steps[row], side="right") / len(ordered)
        theirs[row] = np.searchsorted(compared, steps[row], side="right") / len(compared)
    dims = ("parameter", "step_number")
    return {"step": (dims, steps), "fit_cdf": (dims, own), "annealed_cdf": (dims, theirs)}
