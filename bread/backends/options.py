"""What a backend is told when it opens a model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bread.backends.support.posterior_draws import named_as, require_all
from bread.backends.values import Fit
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
    simulate_from : {"prior", "fitted", "posterior", "localised"}
        Where data sets come from. "fitted": the simulator must be able to hold the hyperparameters; "posterior":
        to hold all parameters (`Model.given_real_data` follows, and no prior need be drawn). "localised":
        `Model.localise` follows, and only then need the hyperparameters have a law.
    any_kernel : bool
        Take kernels that are not known to be right, and run them as they are: `bread.debug` tests them.
    draws : mapping of str to object
        The user's draws on the real data, by the argument that brings them. A backend that compiles reads them before
        (`look_at_draws`), so that draws of another model cost nothing; `Model.read_posterior` reads them again.
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
    draws: Mapping[str, Any] = field(default_factory=dict)

    def look_at_draws(self, read: Callable[[Any], Fit]) -> None:
        """Call ``read`` with the user's draws: it raises where they do not fit; what it warns of is said later."""
        for argument, draws in self.draws.items():
            with warnings.catch_warnings(action="ignore"), named_as(argument):
                found = read(draws)
                if argument == "path":
                    require_all(found)

    def refuse(self, names: Sequence[str], why: str) -> None:
        """Raise InvalidArgumentError for the first option among ``names`` that was given."""
        for name in names:
            if getattr(self, name) is not None:
                raise InvalidArgumentError(f"{name}= {why}. Leave it out.")
