"""What a check is predicted to cost, of which the tests before annealing may spend a share."""

from types import SimpleNamespace

import numpy as np
import pytest

from bread.backends.base import Kernel
from bread.paths.kinds import PriorPath
from bread.running.exactness.phase import DirectPhase
from bread.running.state.results import SHARED
from tests.models.reference import NormalMean

PER_TRANSITION = 10.0  # evaluations
TUNE, KNOTS, CHAINS, MOST = 5, 2, 4, 1024


def predicted(path_cost):
    kernel = Kernel(np.array([0.0, 1.0]), {}, n_gradients=int(PER_TRANSITION * TUNE * KNOTS))
    result = SimpleNamespace(
        n_gradients={"tune": 700}, path=PriorPath(), path_costs={"prior": path_cost}, kernels={SHARED: kernel}
    )
    plan = SimpleNamespace(
        n_temperatures=None, max_temperatures=MOST, chains=CHAINS, tune=TUNE, budget=None, check_simulations=30.0
    )
    return DirectPhase(NormalMean(np.zeros(3)), plan, result, None).predicted_cost()


@pytest.mark.parametrize("path_cost", [0.0, 500.0, 8.0 * MOST * PER_TRANSITION, 1e18])
def test_no_more_is_predicted_than_the_largest_number_of_temperatures_costs(path_cost):
    """Paths race by what any T would cost: one that hardly gains from temperatures is predicted to need 10^16."""
    most = 2 * CHAINS * MOST * PER_TRANSITION
    assert predicted(path_cost) == 700 + 30.0 * min(path_cost, most)
