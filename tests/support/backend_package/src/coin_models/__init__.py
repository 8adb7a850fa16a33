"""Coins: a kind of model that bread itself does not read."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Coins:
    """Heads in so many tosses of some coins, each with a Beta(2, 3) chance of heads."""

    heads: tuple[int, ...]
    tosses: tuple[int, ...]


class Odd:
    """What the backend reads, and then opens as something that is no model."""
