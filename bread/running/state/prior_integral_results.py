"""What the integrals of priors came to, and what follows for log weights."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.stats import chi2, norm

from bread.backends.base import AnnealRun
from bread.paths.kinds import Path
from bread.statistics.exactness.normalisation import Normalisation

LEVEL = 0.001  # after Bonferroni's correction over all variables, as for the other tests of exact draws
SMALLEST = 0.02  # nats: less is neither named nor a bug, whatever its p-value
_ROUNDING = 1e-9  # nats: an error of zero is never taken at its word


@dataclass(frozen=True)
class PriorIntegral:
    """The log integral of one node's density given its parents.

    Attributes
    ----------
    variable : str
    by_parents : tuple of Normalisation
        At each state of the parents; one where there are none.
    is_known : bool
        Whether the backend knows it: nothing was integrated.
    """

    variable: str
    by_parents: tuple[Normalisation, ...]
    is_known: bool = False

    @property
    def log_integral(self) -> float:
        """Return the mean over parents, weighted by precision, in nats; 0 for a normalised density."""
        values = [one.log_constant for one in self.by_parents]
        return float(np.average(values, weights=1.0 / self._errors() ** 2))

    @property
    def standard_error(self) -> float:
        """Return the standard error of that mean, in nats."""
        return 0.0 if self.is_known else float((1.0 / self._errors() ** 2).sum() ** -0.5)

    @property
    def p_value(self) -> float:
        """Return the two-sided p-value of "it is 0", by the normal law; not adjusted."""
        if self.is_known:
            return float(self.log_integral == 0.0)
        return float(2.0 * norm.sf(abs(self.log_integral) / self.standard_error))

    @property
    def varies_p_value(self) -> float:
        """Return the p-value of "it is the same whatever the parents are" (Cochran's Q); NaN without parents."""
        if len(self.by_parents) < 2:
            return float("nan")
        values = np.array([one.log_constant for one in self.by_parents])
        q = (((values - self.log_integral) / self._errors()) ** 2).sum()
        return float(chi2.sf(q, len(values) - 1))

    @property
    def draws_p_value(self) -> float:
        """Return the p-value of "the random draws follow the density", after Bonferroni's correction over parents."""
        return min(1.0, len(self.by_parents) * min(one.p_value for one in self.by_parents))

    @property
    def spread(self) -> float:
        """Return the largest difference between parents, in nats."""
        values = [one.log_constant for one in self.by_parents]
        return float(max(values) - min(values))

    def _errors(self) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return np.array([max(one.standard_error, _ROUNDING) for one in self.by_parents])


@dataclass(frozen=True)
class PriorIntegrals:
    """Those of all nodes that were looked at.

    Attributes
    ----------
    integrals : tuple of PriorIntegral
    left_out : dict of str to str
        Reasons, by node.
    n_evaluations : int
        Of densities of single nodes.
    """

    integrals: tuple[PriorIntegral, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    n_evaluations: int = 0

    def draws_differ(self, one: PriorIntegral) -> bool:
        """Return whether random draws follow another law than the density: then the integral means nothing."""
        n_tested = sum(not each.is_known for each in self.integrals)
        return not one.is_known and one.draws_p_value * n_tested < LEVEL

    def varies(self, one: PriorIntegral) -> bool:
        """Return whether an integral depends on the parents: then the posterior itself is not the model's."""
        if self.draws_differ(one):
            return False
        n_tested = sum(len(each.by_parents) > 1 for each in self.integrals)
        return one.spread > SMALLEST and one.varies_p_value * n_tested < LEVEL

    def is_named(self, one: PriorIntegral) -> bool:
        """Return whether an integral is a constant other than 1, beyond its error and a size that matters."""
        if self.varies(one) or self.draws_differ(one):
            return False
        n_tested = max(1, sum(not each.is_known for each in self.integrals))
        return abs(one.log_integral) > SMALLEST and one.p_value * n_tested < LEVEL

    @property
    def log_constant(self) -> float:
        """Return the sum of the constants that are named, in nats."""
        return float(sum(one.log_integral for one in self.integrals if self.is_named(one)))


def without_constant(run: AnnealRun, path: Path, found: PriorIntegrals | None) -> AnnealRun:
    """Return a run with the prior's constant taken out where it does not cancel: along paths from a reference.

    Along the prior path both ends have it.
    """
    constant = 0.0 if found is None else found.log_constant
    if path.reference is None or constant == 0.0:
        return run
    return replace(run, log_weight=run.log_weight - constant, log_ratio=run.log_ratio - constant)
