"""Which family of references is the nearest, by draws of pilot chains."""

from __future__ import annotations

import numpy as np

from bread.backends.base import FloatArray
from bread.fitting.gaussian.families import FAMILIES
from bread.fitting.importance.adapted import LARGEST_DIM
from bread.fitting.search.found_families import NESTED
from bread.fitting.search.found_references import Choice, FitRequest, Found
from bread.fitting.search.searches import BELIED, CHECKED
from bread.fitting.search.work import FitWork, Part
from bread.paths.mixture import FittedReference

FOUND_MARGIN = 0.5  # nats by which a fit to draws must be better: a reference that is found is found again, cheaply
SEVERAL_MARGIN = 10.0  # the same for a fit to draws of several modes, which moves with a data set but loses modes
SETTLED = 4.0  # times as far as a reference that is found: no fit to twice as many draws will be as near


def select_family(
    work: FitWork, request: FitRequest, chains: list[FloatArray], found: dict[str, FittedReference]
) -> Choice:
    """Return the family of the smallest criterion, and the criterion of each."""
    train = np.concatenate([states[: len(states) // 2] for states in chains])
    fitted = {name: fit(train, work.transformed) for name, fit in FAMILIES.items()}
    criterion = {
        name: work.criterion(candidate, chains, request.n_selection_draws, Part.CRITERION, number)
        for number, (name, candidate) in enumerate((fitted | found).items())
        if candidate is not None
    }

    def margin(name: str) -> float:
        reference = found.get(name)
        if reference is None:
            return 0.0
        return SEVERAL_MARGIN if reference.is_several and request.is_shared else FOUND_MARGIN

    family = min(criterion, key=lambda name: criterion[name] - margin(name))
    return family if np.isfinite(criterion[family]) else "diagonal", criterion


def settled(work: FitWork, request: FitRequest, chains: list[FloatArray], found: Found) -> Choice | None:
    """Return the choice among families where draws of more chains cannot change it; else None.

    That is where a law given some coordinates is several times as near as any fit to draws: one to twice as many has
    half the error at best. In few coordinates mixtures may be adapted to draws, and chains are cheap. A law that was
    found before any chain ran must be nearer, and be given several coordinates, as more may be needed than one.
    """
    laws = [family for family, one in found.references.items() if one.is_given]
    if work.dim <= LARGEST_DIM or not laws or (found.is_looked and laws == [NESTED]):
        return None
    family, criterion = select_family(work, request, chains, found.references)
    of_draws = min(criterion.get(name, np.inf) for name in FAMILIES)
    is_settled = family in found.single and criterion[family] < min(
        CHECKED if found.is_looked else BELIED, of_draws / SETTLED
    )
    return (family, criterion) if is_settled else None
