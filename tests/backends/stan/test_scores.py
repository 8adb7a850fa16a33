"""The program's log likelihood against its simulator's own, draw by draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bread.backends.stan import scores as module
from bread.backends.stan.scores import Scores, check_excess
from bread.backends.stan.simulation import JointDraws
from bread.errors import UnsupportedModelError

N = 100


def made(log_likelihood: np.ndarray, excess: np.ndarray) -> Scores:
    nothing = np.zeros((N, 1))
    return Scores(nothing, log_likelihood, excess, nothing[:, 0], nothing, [{}] * N, nothing[:, 0], JointDraws({}, {}))


@pytest.fixture(autouse=True)
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "rounding_noise", lambda instance, state: 0.0)


def condition(data: Any) -> Any:
    return None


@pytest.mark.parametrize("largest", [20.0, 1e12])
def test_one_huge_log_likelihood_does_not_hide_another_law(largest: float) -> None:
    """With one tolerance for all, of the largest size, 3 nats at every other draw were within 1e4 of one constant."""
    log_likelihood = np.linspace(-20.0, -5.0, N)
    log_likelihood[7] = -largest
    with pytest.raises(UnsupportedModelError, match="another law than its likelihood"):
        check_excess(made(log_likelihood, 3.0 * (np.arange(N) % 2)), condition)


def test_what_rounding_leaves_of_a_huge_one_is_no_other_law() -> None:
    log_likelihood = np.linspace(-20.0, -5.0, N)
    log_likelihood[7] = -1e12
    excess = np.full(N, 0.25)
    excess[7] += 0.5  # 5e-13 of its size
    (note,) = check_excess(made(log_likelihood, excess), condition)
    assert "a constant of 0.25 nats" in note
    assert check_excess(made(log_likelihood, excess - 0.25), condition) == ()
    excess[8] += 0.5
    with pytest.raises(UnsupportedModelError, match="another law"):
        check_excess(made(log_likelihood, excess), condition)
