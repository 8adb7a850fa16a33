"""What a search for modes on the real data found, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass

from bread.backends.base import FloatArray
from bread.running.missed_modes.label_switching import Exchange
from bread.statistics.real_data.modes import Share, WeighedMode


@dataclass(frozen=True)
class FoundMode:
    """A mode of the posterior on the real data.

    Attributes
    ----------
    state : ndarray, shape (dim,)
    log_density : float
        Joint log density (nats) there, in unconstrained coordinates.
    weighed : WeighedMode
    own : Share or None
        Of the draws of the fit, or of the user's own, in the same region.
    """

    state: FloatArray
    log_density: float
    weighed: WeighedMode
    own: Share | None


@dataclass(frozen=True)
class ModeResults:
    """A search for modes.

    Attributes
    ----------
    modes : tuple of FoundMode
        Those that are missed first, then by evidence.
    log_denominator : float
        Log evidence (nats) of what the draws under test hold.
    n_annealed, n_prior, n_optimised : int
        Draws under test, prior draws at which the density was looked at, optimisations.
    n_gradients, n_evaluations : int
        What was spent.
    exchanges : tuple of Exchange
        Labels that may be exchanged; copies count as one mode.
    has_prior : bool
        Whether the prior could be drawn; else the search began with draws spread far around those under test.
    source : str
        Where draws under test that are not annealed come from, such as "posterior="; "" for annealed ones.
    """

    modes: tuple[FoundMode, ...]
    log_denominator: float
    n_annealed: int
    n_prior: int
    n_optimised: int
    n_gradients: int
    n_evaluations: int
    exchanges: tuple[Exchange, ...]
    has_prior: bool = True
    source: str = ""
