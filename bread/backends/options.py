"""What a backend is told when it opens a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bread.errors import InvalidArgumentError


@dataclass(frozen=True)
class OpenOptions:
    """What a backend is told when it opens a model: arguments of `bread.check`, as the user gave them.

    A backend refuses by name what means nothing to it (`refuse`).

    Attributes
    ----------
    kernel : object
        The kernel asked for; None for the backend's own choice.
    engine : str or None
        What is to run the chains.
    hyperparameters : tuple of str or None
        Free variables to hold or to localise; None for the backend's own choice.
    data : object
        The data of a model that does not hold its own: a dict, or the path of a file.
    observed : str, sequence of str or None
        Which of the data are outcomes.
    simulator : object
        What draws parameters and data jointly, in place of the model's own simulator.
    likelihood : int, sequence of int or None
        Lines of the model's text that are its likelihood.
    simulate_from : {"prior", "fitted", "localised"}
        Where data sets come from. "fitted": the simulator must be able to hold the hyperparameters. "localised":
        `Model.localise` follows, and only then need the hyperparameters have a law.
    any_kernel : bool
        Take kernels that are not known to be right, and run them as they are: `bread.debug` tests them.
    density_only : bool
        The density at given draws is all that is asked for: priors may be improper, and nothing need be simulated.
    """

    kernel: Any = None
    engine: str | None = None
    hyperparameters: tuple[str, ...] | None = None
    data: Any = None
    observed: str | Sequence[str] | None = None
    simulator: Any = None
    likelihood: int | Sequence[int] | None = None
    simulate_from: str = "prior"
    any_kernel: bool = False
    density_only: bool = False

    def refuse(self, names: Sequence[str], why: str) -> None:
        """Raise InvalidArgumentError for the first option among ``names`` that was given."""
        for name in names:
            if getattr(self, name) is not None:
                raise InvalidArgumentError(f"{name}= {why}. Leave it out.")
