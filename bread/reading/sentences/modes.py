"""What a report says of modes on the real data, and its sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from bread.reading.sentences.lines import LETTERS, short
from bread.reading.sentences.words import YOURS

NO_MODES = "Modes on the real data were not looked for"  # how the warning of a search that was left out begins
_NAMED = 3  # parameters that say where a mode is

_FAR = 0.5  # of the largest distance from the draws: the others are not named


@dataclass(frozen=True)
class Modes:
    """The search for modes, and the heaviest of those that draws miss.

    Attributes
    ----------
    n_missed : int
        Modes that the draws under test miss: 0 is "none found", never "there is none".
    n_annealed, n_prior : int
        Draws under test; draws that the search began with.
    where : tuple of (str, str)
        ("mu", "8.1"), ...: names and values that say where the heaviest missed mode is; empty without one.
    mass : float
        Share of the posterior that it holds at least.
    share_annealed, share_own, own_limit : float
        Shares of the draws under test and of the user's draws in it, and the upper limit of the latter; NaN without.
    own_draws : str
        Where the latter come from: "posterior=", "pm.sample".
    tested_draws : str
        Where draws under test come from that are not annealed, as under "localised"; "annealed" for those that are.
    has_prior : bool
        Whether the search began with prior draws; else with draws spread far around those under test.
    """

    n_missed: int
    n_annealed: int
    n_prior: int
    where: tuple[tuple[str, str], ...] = ()
    mass: float = math.nan
    share_annealed: float = math.nan
    share_own: float = math.nan
    own_limit: float = math.nan
    own_draws: str = ""
    tested_draws: str = "annealed"
    has_prior: bool = True

    @property
    def place(self) -> str:
        """Return "mu = 8.1, tau = 0.3"; "" without a missed mode."""
        return _in_words(self.where)

    @property
    def first_place(self) -> str:
        """Return the same of one parameter, with a short name."""
        return "".join(f"{short(name, LETTERS)} = {value}" for name, value in self.where[:1])

    @property
    def who(self) -> str:
        """Return "the certified draws", "your draws" or "the draws of pm.sample": those under test."""
        return self._named("the", "")

    @property
    def how_many(self) -> str:
        """Return the same with their number: "100 certified draws", "your 100 draws"."""
        return self._named("", f"{self.n_annealed} ")

    def _named(self, article: str, number: str) -> str:
        if self.tested_draws == YOURS:
            return f"your {number}draws"
        kind, source = ("certified ", "") if self.tested_draws == "annealed" else ("", f" of {self.tested_draws}")
        return f"{article} {number}{kind}draws{source}".strip()


def read_modes(group: xr.Dataset) -> Modes:
    """Return what the group `modes` says."""
    missed = np.flatnonzero(group["missed"].values)
    modes = Modes(
        len(missed),
        int(group.attrs["n_annealed_draws"]),
        int(group.attrs["n_prior_draws"]),
        own_draws=str(group.attrs["own_draws"]),
        tested_draws=str(group.attrs.get("tested_draws", "annealed")),
        has_prior=bool(group.attrs.get("has_prior_draws", 1)),
    )
    if not len(missed):
        return modes
    one = group.isel(mode=int(missed[0]))
    return replace(
        modes,
        where=_where(one),
        mass=float(one["mass_lower"]),
        share_annealed=float(one["share_annealed"]),
        share_own=float(one["share_own"]),
        own_limit=float(one["share_own_ci"].sel(ci_bound="upper")),
    )


def missed_mode(modes: Modes) -> list[str]:
    """Return what is to be said of a missed mode, the finding first."""
    if modes.share_annealed == 0.0:
        there = f"none of {modes.how_many} is there"
    else:
        there = f"only {percent_down(modes.share_annealed)} of {modes.how_many} are there"
    sentences = [
        f"On your data a mode at {modes.place} holds at least {percent_down(modes.mass)} of the mass and {there}."
    ]
    if modes.n_missed > 1:
        sentences.append(f"They miss {modes.n_missed - 1} more.")
    whose = "Your own draws" if modes.own_draws == YOURS else "The fit's draws"
    if modes.own_limit < modes.mass / 2:
        sentences.append(f"{whose} miss it too: they say nothing of that part of the posterior.")
    elif modes.share_own > 0:
        sentences.append(
            f"{percent_down(modes.share_own)} of {whose.lower()} are there: it is the certified draws that miss it, "
            "and the bound does not carry over to your data."
        )
    return sentences


def mode_todo(modes: Modes) -> str:
    """Return what to do about a missed mode, as one line."""
    if modes.own_limit >= modes.mass / 2 and modes.share_own > 0:
        return "weigh both places by a tempered sampler, or rule one of them out by its prior"
    return f"start chains at {modes.first_place}; if that mode is implausible, tighten its prior"


def modes_words(modes: Modes | None) -> str:
    """Return what came of the search for modes, as a part of a line."""
    if modes is None:
        return "modes not sought"
    return f"a mode at {modes.first_place} is missed" if modes.n_missed else "no missed mode found"


def mode_advice() -> str:
    """Return what to do about a missed mode."""
    return (
        "Start chains there and compare: where both places make sense, a tempered sampler or a model of one mode is "
        "needed; where one does not, its prior is too wide."
    )


def none_found(modes: Modes | None) -> str:
    """Return a sentence on a search that found nothing."""
    if modes is None or modes.n_missed:
        return ""
    begun = f"looking from {modes.n_prior} {'prior draws' if modes.has_prior else 'draws spread far around them'}"
    of = "" if modes.tested_draws == "annealed" else "of your own model "
    return f"No mode {of}that {modes.who} miss was found on your data ({begun}; a narrow one may go unseen)."


def place_of(mode: xr.Dataset) -> str:
    """Return the same as text: "mu = 8.1, tau = 0.3"."""
    return _in_words(_where(mode))


def _in_words(where: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in where)


def _where(mode: xr.Dataset) -> tuple[tuple[str, str], ...]:
    """Return where a mode is, by the parameters in which it is farthest from the certified draws."""
    place, names = mode["place"].values, mode["parameter"].values
    spread = np.maximum(mode["annealed_sd"].values, 1e-12 * (1.0 + np.abs(place)))
    away = np.nan_to_num(np.abs(place - mode["annealed_mean"].values) / spread, nan=0.0)
    order = np.argsort(-away, kind="stable")[:_NAMED]
    named = [index for index in order if away[index] >= _FAR * away[order[0]]]
    return tuple((str(names[index]), f"{place[index]:.2g}") for index in named)


def percent_down(share: float) -> str:
    """Return a share as a whole percentage, rounded down: "97%"; one decimal below 10%."""
    value = 100 * share
    return f"{math.floor(value + 1e-9)}%" if value >= 10 else f"{value:.1f}%"
