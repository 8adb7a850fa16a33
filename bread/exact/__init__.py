"""Annealing on finite state spaces, computed exactly: the true J, B and V that samples only estimate.

States are few, so that kernels are matrices and expectations are sums:

    chain = bread.exact.barrier()
    result = bread.exact.anneal(chain, bread.paths.schedules.linear(1000))
    result.jeffreys, result.bound, result.total_variation      # 1.085, 1.184, 0.470
    bread.exact.path_error(chain, bread.paths.schedules.linear(1000))      # V is between 0.4742 and 0.4748
"""

from bread.exact.annealing import ExactAnnealing, anneal, marginals
from bread.exact.chain import FiniteChain
from bread.exact.path_error import ErrorLimits, path_error
from bread.exact.toys import barrier, easy_random, hard_random, random_grid
from bread.exact.transitions import (
    HeatBath,
    Lazy,
    MatrixTransition,
    MetropolisHastings,
    Transition,
    gibbs_on_grid,
    grid_neighbours,
    independent_draws,
)
from bread.exact.weights import WeightLaw, weight_law

__all__ = [
    "ErrorLimits",
    "ExactAnnealing",
    "FiniteChain",
    "HeatBath",
    "Lazy",
    "MatrixTransition",
    "MetropolisHastings",
    "Transition",
    "WeightLaw",
    "anneal",
    "barrier",
    "easy_random",
    "gibbs_on_grid",
    "grid_neighbours",
    "hard_random",
    "independent_draws",
    "marginals",
    "path_error",
    "random_grid",
    "weight_law",
]
