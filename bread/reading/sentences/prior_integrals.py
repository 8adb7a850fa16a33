"""What a report says of priors that do not integrate to one, and its sentences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from bread.reading.sentences.direct import bug
from bread.reading.sentences.lines import LETTERS, Answer, short
from bread.reading.sentences.words import NOTHING_MEANS_ANYTHING, SEEN_WITHOUT_ANNEALING


@dataclass(frozen=True)
class PriorIntegralFindings:
    """Priors that do not integrate to one.

    Attributes
    ----------
    named : tuple of (str, float, float, float)
        Variable, log of the integral of its density in nats, standard error and p-value, where it is the same whatever
        the variable depends on. One that a formula says has the standard error 0.
    varies : tuple of (str, float, float)
        Variable, smallest and largest log integral, where it is not: a bug.
    differ : tuple of str
        Variables whose random draws do not follow their density: a bug.
    p_value : float
        The smallest one of a bug, corrected for the number of variables that were tested; 1 without any.
    """

    named: tuple[tuple[str, float, float, float], ...] = ()
    varies: tuple[tuple[str, float, float], ...] = ()
    differ: tuple[str, ...] = ()
    p_value: float = 1.0

    @property
    def is_bug(self) -> bool:
        """Whether a density's integral depends on other parameters, or draws do not follow it."""
        return bool(self.varies or self.differ)


def read_prior_integrals(dataset: xr.Dataset) -> PriorIntegralFindings:
    """Return what the group `prior_integrals` says."""
    names = [str(name) for name in dataset["variable"].values]
    columns = zip(*(dataset[name].values for name in ("log_integral", "standard_error", "p_value")), strict=True)
    numbers = [tuple(float(value) for value in row) for row in columns]
    by_parents = dataset["log_integral_by_parents"].values
    p_values = dataset["varies_p_value"].values
    varies = np.flatnonzero(dataset["varies"].values)
    p_value = float(np.min(p_values[varies])) * int(np.isfinite(p_values).sum()) if len(varies) else 1.0
    differ = np.flatnonzero(dataset["draws_differ"].values)
    if len(differ):
        n_tested = int((~dataset["is_known"].values.astype(bool)).sum())
        p_value = min(p_value, float(dataset["draws_p_value"].values[differ].min()) * n_tested)
    return PriorIntegralFindings(
        tuple((names[i], numbers[i][0], numbers[i][1], numbers[i][2]) for i in np.flatnonzero(dataset["is_named"])),
        tuple((names[i], float(np.nanmin(by_parents[i])), float(np.nanmax(by_parents[i]))) for i in varies),
        tuple(names[i] for i in differ),
        min(p_value, 1.0),
    )


def smallest_p_value(dataset: xr.Dataset | None) -> float | None:
    """Return the p-value of "every prior integrates to the same whatever its parents are, and draws follow it".

    The smaller of the two questions', each after Bonferroni's correction for the variables that it was asked of, as the
    verdict takes them; None where nothing was tested. A constant other than one is no bug and not in it.
    """
    if dataset is None:
        return None
    is_tested = ~dataset["is_known"].values.astype(bool)
    questions = [dataset["draws_p_value"].values[is_tested], dataset["varies_p_value"].values]
    finite = [p_values[np.isfinite(p_values)] for p_values in questions]
    return min((min(1.0, len(each) * float(each.min())) for each in finite if len(each)), default=None)


def prior_integral_bug(found: PriorIntegralFindings, p_value: str) -> list[str]:
    """Return the sentences of a bug; ``p_value`` is written out."""
    if found.differ:
        others = f" (and of {len(found.differ) - 1} more)" if len(found.differ) > 1 else ""
        return [
            f"{SEEN_WITHOUT_ANNEALING}: the random draws of "
            f"{found.differ[0]}{others} do not follow the log density ({p_value} after correction for all that was "
            "tested).",
            "Look for a random function and a log density that differ, in a distribution of your own or of PyMC's.",
            NOTHING_MEANS_ANYTHING,
        ]
    name, low, high = found.varies[0]
    more = f" (and of {len(found.varies) - 1} more)" if len(found.varies) > 1 else ""
    return [
        f"{SEEN_WITHOUT_ANNEALING}: the density of {name}{more} integrates to "
        f"exp({low:.2g}) to exp({high:.2g}), by the values of what it depends on, and not to 1 ({p_value} after "
        "correction for all that was tested).",
        f"The posterior is then not that of the model that you wrote down: look for a term of the log density of "
        f"{name} that depends on its parents and is missing, or is there twice.",
        NOTHING_MEANS_ANYTHING,
    ]


def prior_integral_lines(found: PriorIntegralFindings, p_value: str) -> Answer:
    """Return the same as lines; ``details`` are left to the caller."""
    if found.differ:
        name = short(found.differ[0], LETTERS)
        return bug(
            f"random draws do not follow their density ({p_value})",
            f"random draws of {name} do not follow its log density",
            "look for a random function and a log density that differ, in a distribution of your own or of PyMC's",
        )
    name, low, high = found.varies[0]
    name = short(name, LETTERS)
    return bug(
        f"a prior does not integrate to one ({p_value})",
        f"the density of {name} integrates to exp({low:.2g}) to exp({high:.2g}), by its parents",
        f"look for a term of the log density of {name} that depends on its parents and is missing, or there twice",
    )


def named_constants(found: PriorIntegralFindings | None) -> str:
    """Return a sentence on priors whose constant was taken off; "" without any."""
    if found is None or not found.named:
        return ""
    each = ", ".join(
        f"{name} to exp({value:.3g})" + (f" +- {error:.1g} nats" if error else "")
        for name, value, error, _ in found.named
    )
    return (
        f"Priors that do not integrate to one: the density of {each}. That changes no posterior, and log evidences are "
        "given without it."
    )
