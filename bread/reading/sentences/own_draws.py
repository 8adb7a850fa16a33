"""Draws that the user gave and that were not compared, or hardly: why, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bread.reading.sentences import agreement as own
from bread.reading.sentences.agreement import DrawsFound

LACKS_COMPARISON = "The report lacks 'agreement'"  # how the warning of a comparison that failed begins
_NOT = "Your draws were not compared with certified ones"
_ALONE = "without posterior= the verdict is about certified draws alone"


@dataclass(frozen=True)
class GivenDraws:
    """What the user gave and asked for, and what was there to compare.

    Attributes
    ----------
    n_annealed : int
        Certified draws on the real data.
    is_localised : bool
        Whether they are of another model than the user's.
    asked : int or None
        The number of them that was asked for.
    warnings : sequence of str
        Those of the report.
    """

    n_annealed: int
    is_localised: bool
    asked: int | None
    warnings: Sequence[str]

    def not_compared(self, draws: DrawsFound | None) -> tuple[str, ...]:
        """Return why these draws let nothing converge, and what to do; nothing where they were compared well."""
        if draws is None:
            return self._without_comparison()
        if draws.status == "too few draws":
            return own.too_few(draws), own.more_draws()
        if draws.left_out:
            return f"{_NOT} in all variables: {draws.left_out} left out.", f"Pass them too; {_ALONE}."
        if draws.status == "agreement" and not draws.sees_one_sd:
            return own.sees_little(draws), f"Ask for more certified ones (draws=), and pass more of yours; {_ALONE}."
        return ()

    def _without_comparison(self) -> tuple[str, ...]:
        if self.is_localised:
            return (
                f"{_NOT}: those are of the localised model, another posterior than yours.",
                f'simulate_from="fitted" or "prior" compares them, where priors are proper; {_ALONE}.',
            )
        if self.asked == 0:
            return f"{_NOT}: draws=0 asked for none.", f"Leave draws= out; {_ALONE}."
        failed = next((one for one in self.warnings if one.startswith(LACKS_COMPARISON)), "")
        if failed:
            return (
                f"{_NOT}, which failed: {failed.removeprefix(LACKS_COMPARISON + ': ').rstrip('.')}.",
                f"Mend that; {_ALONE}.",
            )
        if self.n_annealed >= 2:
            return f"{_NOT}: nothing in them varies, or they share no variable.", f"Look at them; {_ALONE}."
        return (
            f"{_NOT}: {self.n_annealed or 'none'} of the chains annealed on your data ended in a draw.",
            "Look at the density on your data (`failure` in the group observed_forward).",
        )
