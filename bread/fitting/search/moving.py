"""The reference of one data set given to another of the same model: moved, found again, or fitted anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bread.backends.base import FloatArray, Kernel, Posterior
from bread.errors import DensityError
from bread.fitting.conditional.one_driver import middle_and_spread
from bread.fitting.search import searches
from bread.fitting.search.found_families import Start, family_of
from bread.fitting.search.found_references import SHORT_CHAINS, SHORT_SELECTION_DRAWS, FitRequest
from bread.fitting.search.reference_fit import ReferenceFit, fit_reference
from bread.fitting.search.searches import BELIED, WORSE
from bread.fitting.search.work import FitWork
from bread.paths.mixture import FittedReference, MixtureReference

LOST_STEPS = 100  # of each chain of a fit of its own, where what is found elsewhere is not
WIDTH_DRAWS = 2000  # of a reference, always the same, for its widths


def move_reference(
    posterior: Posterior, shared: ReferenceFit, kernel: Kernel, *, root: int, simulation: int
) -> ReferenceFit:
    """Move a reference to another data set of the same model: a short chain from the mean of each component.

    The chain runs at beta = 1 with the shared frozen kernel; its mean becomes the component's, its variances are
    mixed with the shared ones, correlations stay. A component that its chain leaves keeps its place. What optimisation
    found is not moved but found again, what was adapted by importance sampling is adapted again; where a law given one
    coordinate, or some, is not found, a reference is fitted to short chains on the data set itself.
    """
    work = FitWork(posterior, shared.transformed, root, simulation)
    reference, family, moved = shared.reference, family_of(shared.family), None
    if family is not None:
        known = shared.criterion.get(shared.family, 0.0)
        limit = max(BELIED, WORSE * known) if np.isfinite(known) else BELIED
        moved = family.near(work, Start(drivers=shared.drivers, limit=limit, kernel=kernel, like=reference))
    if moved is None and reference.is_given:
        moved = _fit_of_its_own(work, kernel)
    if moved is None:
        fitted = shared.fallback or reference
        assert isinstance(fitted, MixtureReference)  # what is found has a fallback
        moved = searches.move(work, fitted, kernel)
    return replace(shared, reference=moved, n_gradients=work.n_gradients, n_evaluations=work.n_evaluations)


def widths(reference: FittedReference) -> FloatArray:
    """Return about the standard deviation of each coordinate under a reference, shape (dim,), always the same."""
    return middle_and_spread(reference.sample(WIDTH_DRAWS, np.random.default_rng(0)))[1]


def relative_widths(moved: FittedReference, shared: FittedReference) -> FloatArray | None:
    """Return how wide each coordinate is under one reference, as a multiple of its width under another, shape (dim,).

    None for several modes, whose distances say nothing of the widths of each.
    """
    if moved.is_several or shared.is_several:
        return None
    one, other = widths(moved), widths(shared)
    is_known = (one > 0.0) & (other > 0.0) & np.isfinite(one) & np.isfinite(other)
    return np.where(is_known, one, 1.0) / np.where(is_known, other, 1.0)


def _fit_of_its_own(work: FitWork, kernel: Kernel) -> FittedReference | None:
    """Return a reference fitted to short chains; None where they cannot run."""
    request = FitRequest(
        work.dim, work.transformed, LOST_STEPS, n_chains=SHORT_CHAINS, n_selection_draws=SHORT_SELECTION_DRAWS,
        like=kernel,
    )  # fmt: skip
    try:
        fit = fit_reference(work.posterior, request, root=work.root, simulation=work.simulation)
    except DensityError:
        return None
    work.n_gradients += fit.n_gradients
    work.n_evaluations += fit.n_evaluations
    return fit.reference
