"""A posterior of a factor model with one side's factors integrated out, so that every search runs on what is left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import SeedSequence

from bread.backends.base import FloatArray, Posterior
from bread.backends.support.gradients import end_gradients
from bread.errors import DensityError
from bread.fitting.search.without_kernels import WithoutKernels
from bread.fitting.search.work import FitWork, plain
from bread.paths.factors import Couplings, Given, gaussian_laws
from bread.paths.kinds import Path, ReferencePath


class IntegratedPosterior(WithoutKernels):
    """A posterior as a density of the drivers of some couplings, outer factors in their units, for fits.

    Parameters
    ----------
    posterior : Posterior
    couplings : Couplings
    """

    reason = "With factors integrated out there are no kernels."

    def __init__(self, posterior: Posterior, couplings: Couplings) -> None:
        self._posterior, self._couplings = posterior, couplings
        self._path = ReferencePath(plain(couplings.dim))

    def draw_base(self, path: Path, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw drivers from the prior, shape (len(seeds), n_drivers)."""
        return self._couplings.in_units(self._posterior.draw_base(path, seeds)[:, self._couplings.drivers])

    def log_ratio(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log density less that of the path's reference (nats), shape (n,)."""
        assert path.reference is not None
        with np.errstate(invalid="ignore", over="ignore"):
            w = self._couplings.from_units(states)
            own = self._posterior.log_density(self._path, self._at_origin(w)) - self._couplings.log_unit_volume(w)
            own += [_integral(gaussian_laws(self._couplings.form(one))) for one in w]
            return np.asarray(own - path.reference.log_density(states))

    def end_gradient(self, path: Path, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log density (nats) and gradient, shape (n_drivers,), at one state."""
        w = self._couplings.from_units(state)
        value, gradient = self._posterior.end_gradient(self._path, self._at_origin(w[None])[0])
        return self._completed(w, value, gradient)

    def end_gradients(self, path: Path, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the same at states, shapes (n,) and (n, n_drivers)."""
        rows = self._couplings.from_units(states)
        values, gradients = end_gradients(self._posterior, self._path, self._at_origin(rows))
        completed = [self._completed(*one) for one in zip(rows, values, gradients, strict=True)]
        return np.array([value for value, _ in completed]), np.array([gradient for _, gradient in completed])

    def _at_origin(self, states: FloatArray) -> FloatArray:
        whole = np.zeros((len(states), self._couplings.dim))
        whole[:, self._couplings.drivers] = states
        return whole

    def _completed(self, w: FloatArray, value: float, gradient: FloatArray) -> tuple[float, FloatArray]:
        """Return log density and gradient of w, given those of the posterior where the factors are zero."""
        if not np.isfinite(w).all():
            raise DensityError("A coordinate overflows. Take a smaller step.")
        couplings = self._couplings
        with np.errstate(over="ignore", invalid="ignore"):
            form = couplings.form(w)
            law = gaussian_laws(form)
            if not law.is_law.all():
                return -np.inf, np.zeros(len(w))
            by_matrix = law.factors.inverses() + law.mean[:, None] * law.mean
            by_w = couplings.pull(w, form, -0.5 * by_matrix, law.mean)
            value += _integral(law) - float(couplings.log_unit_volume(w))
        return value, couplings.push_units(w, gradient[couplings.drivers] + by_w)


def integrated_work(work: FitWork, couplings: Couplings) -> FitWork:
    """Return a fit of the same data set with the inner factors integrated out."""
    posterior = IntegratedPosterior(work.posterior, couplings)
    return FitWork(posterior, work.transformed[couplings.drivers], work.root, work.simulation)


def _integral(law: Given) -> float:
    """Return the log integral (nats) of ``exp(b'u - u'P u / 2)`` over all factors; minus infinity where it is none."""
    if not law.is_law.all():
        return -np.inf
    half = law.factors.transposed_times(law.mean)
    return float(0.5 * (half * half).sum() - law.factors.log_volumes.sum() + 0.5 * half.size * np.log(2.0 * np.pi))
