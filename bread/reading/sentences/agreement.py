"""What a report says about the user's own draws, or the fit's: facts, sentences, and a table, worst first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bread.reading.sentences.words import YOURS, p_words
from bread.report.compat import read_group
from bread.statistics.agreement.agreement import LOG_DENSITY
from bread.statistics.agreement.disagreement import LEVEL, N_FAMILIES
from bread.statistics.agreement.draws import MINIMUM_EFFECTIVE
from bread.statistics.agreement.power import ONE_SD

NEARLY = 0.05  # p-values up to here that are no difference are given with the level that they miss
_CENTRAL = "0.05 to 0.95"


@dataclass(frozen=True)
class DrawsFound:
    """The comparison of the user's draws, or the fit's, with certified draws on the real data.

    Attributes
    ----------
    status : {"too few draws", "agreement", "difference", "disagreement"}
        See `bread.statistics.agreement.disagreement.Comparison`.
    source : str
        "posterior=" for the user's own.
    n_chains, n_annealed, n_dropped, n_zero : int
        The fit's chains; certified draws; annealed chains that ended nowhere; those that met a ratio of zero.
    p_value, p_value_beyond_error : float
        Of "one law", and of "no probability differs by more than the certified draws' error".
    lowest, highest : float
        Share of certified draws that the 90% intervals hold, over parameters.
    worst : str
        What differs most: "your 90% interval of tau holds 0.61 of {them}".
    worst_name : str
        Of what: "tau".
    fewest, fewest_name : float, str
        The smallest effective size of the fit's draws, and whose.
    shift, missing_mass, probability : float
        What would have been seen in 9 of 10 comparisons: of a continuous parameter; of any, a probability that is off.
    n_discrete : int
        Discrete parameters, of which a shift says nothing.
    left_out : str
        Names of free variables that were not compared.
    error_limit, error_limit_name : float, str
        How far at most a probability P(x <= c) of these draws is off, and of which parameter.
    at_least : float
        How far at least some probability is; 0 where a classifier tells nothing apart, or has not looked.
    """

    status: str
    source: str
    n_chains: int
    n_annealed: int
    n_dropped: int
    n_zero: int
    p_value: float
    p_value_beyond_error: float
    lowest: float
    highest: float
    worst: str
    worst_name: str
    fewest: float
    fewest_name: str
    shift: float
    missing_mass: float
    probability: float = float("nan")
    n_discrete: int = 0
    left_out: str = ""
    error_limit: float = float("nan")
    error_limit_name: str = ""
    at_least: float = 0.0

    @property
    def is_yours(self) -> bool:
        """Whether the user gave the draws."""
        return self.source == YOURS

    @property
    def sees_one_sd(self) -> bool:
        """Whether a shift of one standard deviation would have been seen, or what is as large of a discrete one."""
        probability = self.probability if self.n_discrete else float("nan")
        return not (self.shift > 1.0 or probability > ONE_SD)

    @property
    def differ(self) -> bool:
        """Whether a difference was seen, of whatever size."""
        return self.status in ("difference", "disagreement")

    def whose(self, what: str) -> str:
        """Return "Your draws", or "The draws of pm.sample (its defaults, 4 chains)"."""
        return (
            f"Your {what}" if self.is_yours else f"The {what} of {self.source} (its defaults, {_chains(self.n_chains)})"
        )


def read_draws(agreement: xr.Dataset) -> DrawsFound:
    """Return the facts of the group `agreement`."""
    attributes = agreement.attrs
    is_yours = str(attributes["source"]) == YOURS
    is_parameter = agreement["parameter"].values != LOG_DENSITY
    central = agreement["central_content"].values[is_parameter]
    known = np.isfinite(central)
    sizes = agreement["n_effective_quantile"].values.min(axis=1)
    fewest = int(np.argmin(sizes))
    worst, worst_name = _worst(agreement, "your" if is_yours else "their")
    limits = np.full(len(is_parameter), -np.inf)
    if "error_limit" in agreement:
        limits = np.where(is_parameter, np.nan_to_num(agreement["error_limit"].values, nan=-np.inf), -np.inf)
    widest = int(np.argmax(limits))
    return DrawsFound(
        status=str(attributes["status"]),
        source=str(attributes["source"]),
        n_chains=int(attributes["n_chains"]),
        n_annealed=int(attributes["n_annealed"]),
        n_dropped=int(attributes["n_dropped"]),
        n_zero=int(attributes["n_zero"]),
        p_value=float(agreement["p_value_combined"]),
        p_value_beyond_error=float(agreement["p_value_beyond_error_combined"]),
        lowest=float(central[known].min()) if known.any() else float("nan"),
        highest=float(central[known].max()) if known.any() else float("nan"),
        worst=worst,
        worst_name=worst_name,
        fewest=float(sizes[fewest]),
        fewest_name=str(agreement["parameter"].values[fewest]),
        shift=float(agreement["detectable_shift"]),
        missing_mass=float(agreement["detectable_missing_mass"]),
        probability=float(agreement.get("detectable_probability", np.nan)),
        n_discrete=int(attributes.get("n_discrete", 0)),
        left_out=str(attributes.get("left_out", "")),
        error_limit=float(limits[widest]) if np.isfinite(limits[widest]) else float("nan"),
        error_limit_name=str(agreement["parameter"].values[widest]),
        at_least=float(agreement.get("total_variation_lower", 0.0)),
    )


def _worst(agreement: xr.Dataset, whose: str) -> tuple[str, str]:
    """Return what differs most as a clause with "{them}" for the certified draws, and of which parameter.

    An interval or a quantile, if one shows a difference itself: that is what people report. Else what the test of
    equality saw.
    """
    beyond = "_beyond_error" if agreement.attrs["status"] == "disagreement" else ""
    p_values = agreement[f"content_p_value{beyond}"].transpose("parameter", "share")
    shows = p_values.min("share").values <= LEVEL / N_FAMILIES
    is_parameter = agreement["parameter"].values != LOG_DENSITY
    candidates = shows & is_parameter if (shows & is_parameter).any() else shows
    if not candidates.any():
        told, equal = agreement.get(f"told_apart_p_value{beyond}", np.inf), agreement[f"p_value{beyond}"].min()
        if float(told) < float(equal):
            own, theirs = agreement["taken_for_own"].values
            return f"classed as {whose}s: {own:.2f} of {whose} draws, {theirs:.2f} of {{them}}", ""
        tested = agreement.isel(tested=int(np.argmin(agreement[f"p_value{beyond}"].values)))
        name = _named(tested["tested"])
        difference = f"{float(tested['difference']):.2f}"
        what = f"the distribution function of {name} differs by up to {difference} between {whose} draws and {{them}}"
        return what, name
    row = next(row for row in worst_first(agreement) if candidates[row])
    here, p_values = agreement.isel(parameter=row), p_values.isel(parameter=row)
    name = _named(here["parameter"])
    if float(p_values.sel(share=_CENTRAL)) <= LEVEL / N_FAMILIES:
        held = f"{float(here['central_content']):.2f}"
        return f"{whose} 90% interval of {name} holds {held} of {{them}}", name
    share = int(np.argmin(p_values.values[:3]))
    quantile = ("5% quantile", "median", "95% quantile")[share]
    below = float(here["interval_content"].values[share])
    return f"{below:.2f} of {{them}} lie below {whose} {quantile} of {name}", name


def _named(name: xr.DataArray) -> str:
    return f"the {LOG_DENSITY}" if str(name.values) == LOG_DENSITY else str(name.values)


def intervals_hold(found: DrawsFound) -> str:
    """Say what share of certified draws the 90% intervals hold."""
    whose = f"Your 90% intervals ({_chains(found.n_chains)})" if found.is_yours else found.whose("90% intervals")
    low, high = f"{found.lowest:.2f}", f"{found.highest:.2f}"
    held = low if low == high else f"between {low} and {high}"
    return f"{whose} hold {held} of the certified draws ({found.n_annealed} on your data)."


def power(found: DrawsFound) -> str:
    """Say what would have been seen."""
    level = f" at the level {LEVEL}" if found.p_value <= NEARLY else ""
    agrees = f"No difference was seen{level} ({p_words(found.p_value)})"
    seen = _seen(found)
    return (
        f"{agrees}: {seen} would have been, 9 times in 10." if seen else f"{agrees}; a large one might not have been."
    )


def _seen(found: DrawsFound) -> str:
    kind = "continuous parameter" if found.n_discrete else "parameter"
    seen = []
    if np.isfinite(found.shift):
        seen.append(f"a shift of one {kind} by {up(found.shift)} posterior standard deviations")
    if np.isfinite(found.missing_mass):
        seen.append(f"a missing {100 * up_number(found.missing_mass):.0f}% of the mass at one end of it")
    if found.n_discrete and found.probability < 1.0:
        one = "one" if seen else "parameter"
        seen.append(f"a probability of a discrete {one} that is off by {up(found.probability)}")
    return " or ".join(seen)


def too_few(found: DrawsFound) -> str:
    """Say that the draws were not compared."""
    return (
        f"{found.whose('draws')} were not compared with the certified ones: {found.fewest:.0f} effective draws of "
        f"{found.fewest_name} are too few, {MINIMUM_EFFECTIVE:.0f} are needed."
    )


def sees_little(found: DrawsFound) -> str:
    """Say that a large difference would have gone unseen."""
    seen = _seen(found) or "no difference"
    return (
        f"{found.whose('draws')} were compared with {found.n_annealed} certified ones, which are too few for them: "
        f"{seen} would have been seen, 9 times in 10, and one standard deviation is too much to go unseen."
    )


def more_draws() -> str:
    """Say what to do about it."""
    return (
        "Run your sampler longer, or reparametrise until its chains agree, and pass all of its draws; without "
        "posterior= the verdict is about certified draws alone."
    )


def how_wrong(found: DrawsFound) -> str:
    """Return by how much at least, and at most; "" where at least is nothing.

    The probability of some event, which may be about all parameters at once; and of a half-line, each parameter by
    itself. No draws, however many, can tell that no event whatever is off by more than some number.
    """
    at_least = np.floor(100.0 * found.at_least) / 100.0
    if not at_least > 0.0:
        return ""
    most = f", at most {up(found.error_limit)} in any P(x <= c) ({found.error_limit_name})"
    return f"wrong by at least {at_least:.2f} in some event{most if found.error_limit < 1.0 else ''}"


def disagrees(found: DrawsFound, near: str) -> list[str]:
    """Say that the draws are not the posterior's, and what to do; ``near``: "are within 0.04 of it"."""
    worst = found.worst.replace("{them}", f"certified draws that {near}")
    size = how_wrong(found)
    return [
        f"{found.whose('draws')} are not the posterior's: {worst} ({p_words(found.p_value_beyond_error)}).",
        *([f"They are {size}."] if size else []),
        "Run longer, or reparametrise.",
    ]


def differs(found: DrawsFound, error: str) -> list[str]:
    """Say that the draws differ by no more than the certified draws' own error, ``error``, may explain."""
    return [
        f"{_differ(found)}. The certified draws' own error, up to {error}, may be why: this check cannot tell which of "
        "the two is nearer to the posterior.",
        "Ask for a smaller max_error=.",
    ]


def differs_somehow(found: DrawsFound) -> str:
    """Say that the draws differ, where nothing is certified."""
    return f"{_differ(found)}. One of the two is wrong, and the bound does not tell which."


def _differ(found: DrawsFound) -> str:
    worst = found.worst.replace("{them}", "those")
    return f"{found.whose('draws')} differ from the certified draws on your data: {worst} ({p_words(found.p_value)})"


def dropped(found: DrawsFound) -> str:
    """Say how many annealed chains failed; those of weight zero are counted elsewhere."""
    n_failed = found.n_dropped - found.n_zero
    if not n_failed:
        return ""
    n_all = found.n_dropped + found.n_annealed
    return f"{n_failed} of {n_all} annealed chains on your data failed: they are no draws."


def agreement_table(report: Any) -> pd.DataFrame | None:
    """Return the comparison by parameter, worst first; None where there is none.

    Returns
    -------
    DataFrame or None
        Index ``parameter``. ``content``, ``lower``, ``upper``: share of certified draws in the fit's 90% interval, with
        limits; ``mean_shift``, ``sd_ratio``; ``error_limit``: how far at most a probability of the fit's draws is off;
        ``n_effective``; ``p_value``.
    """
    agreement = read_group(report, "agreement")
    if agreement is None:
        return None
    order = worst_first(agreement)
    limits = agreement["central_content_ci"].transpose("parameter", "ci_bound").values
    frame = pd.DataFrame(
        {
            "content": agreement["central_content"].values,
            "lower": limits[:, 0],
            "upper": limits[:, 1],
            "mean_shift": agreement["mean_shift"].values,
            "sd_ratio": agreement["sd_ratio"].values,
            "error_limit": agreement["error_limit"].values,
            "n_effective": agreement["n_effective"].values,
            "p_value": agreement["content_p_value"].min("share").values,
        },
        index=pd.Index(agreement["parameter"].values, name="parameter"),
    )
    return frame.iloc[order]


def worst_first(agreement: xr.Dataset) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return rows of parameters by their smallest content p-value, then by their largest difference."""
    p_values = np.nan_to_num(agreement["content_p_value"].min("share").values, nan=1.0)
    return np.lexsort((-agreement["cdf_difference"].values, p_values))


def _chains(n_chains: int) -> str:
    return f"{n_chains} chain{'' if n_chains == 1 else 's'}"


def up_number(value: float) -> float:
    """Return a number with two decimals, rounded up."""
    return float(np.ceil(100.0 * value - 1e-9) / 100.0)


def up(value: float) -> str:
    """Return the same as text."""
    return f"{up_number(value):.2f}"
