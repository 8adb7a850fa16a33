"""Models of finitely many states and outcomes, whose V, B and evidence are known: `FiniteModel` samples, and computes.

``bread.check(FiniteModel(prior, likelihood, data, transition))`` samples chains; ``model.chain(data)`` is the same
annealing as a `bread.exact.FiniteChain`, so that every number of a report can be held against its exact value.
"""

from tests.models.finite.model import FiniteModel
from tests.models.finite.posterior import FinitePosterior

__all__ = ["FiniteModel", "FinitePosterior"]
