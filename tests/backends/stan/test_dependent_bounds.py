"""Localised programs with a bound that depends on a parameter: where it leaves no room, nothing ends.

A GARCH model's ``real<lower=0, upper=1 - alpha> beta`` has no values where alpha rounds to 1. The program's maps are
written out here, so that nothing is compiled.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit

from bread.backends.base import FloatArray
from bread.backends.stan.localising import localise
from bread.backends.stan.native.path_arguments import TWO_BOUNDS, Law
from bread.backends.stan.normalising import compare_priors
from bread.backends.stan.simulation import JointDraws
from bread.errors import DensityError, UnsupportedModelError
from bread.paths.mixture import diagonal

PRIOR_DRAWS = 40


class Garch:
    """``alpha`` in (0, 1) and ``beta`` in (low * alpha, high - alpha), by their unconstrained coordinates."""

    coordinates, dim = ("alpha", "beta"), 2

    def __init__(self, low: float, high: float, missing: float = 0.0) -> None:
        self.low, self.high, self.missing = low, high, missing
        reference = diagonal(np.zeros(2), np.full(2, 1.5))
        self.law = Law(np.array([0, 1]), reference, np.array([TWO_BOUNDS, TWO_BOUNDS]))

    def shape(self, name: str) -> tuple[int, ...]:
        return ()

    def gap(self, states: FloatArray) -> FloatArray:
        alpha = expit(states[:, 0])
        return np.asarray((self.high - alpha) - self.low * alpha)

    def constrain(self, states: FloatArray, group: str = "parameters") -> dict[str, FloatArray]:
        alpha, gap = expit(states[:, 0]), self.gap(states)
        if (gap <= 0.0).any():
            raise DensityError("lub_constrain: lb is 0, but must be less than 0.000000")
        return {"alpha": alpha, "beta": self.low * alpha + gap * expit(states[:, 1])}

    def unconstrain(self, values: dict[str, FloatArray]) -> FloatArray:
        states = np.stack([logit(values["alpha"]), np.zeros(len(values["alpha"]))], axis=1)
        states[:, 1] = logit((values["beta"] - self.low * values["alpha"]) / self.gap(states))
        return states

    def constrained_prior(self, states: FloatArray) -> FloatArray:
        """Return the density of the localised program: that of the law taken out, and the logs of its gaps."""
        return -np.log(self.gap(states)) - self.missing * states[:, 1]


def draws(instance: Garch, states: FloatArray) -> Any:
    joint = JointDraws(
        instance.constrain(states), {}, log_prior=np.zeros(len(states)), cut=np.zeros((len(states), 0))
    )  # fmt: skip
    return SimpleNamespace(instance=instance, draw_parameters=lambda n, seed: (states, joint))


def some_states(instance: Garch) -> FloatArray:
    states = np.random.default_rng(0).normal(0.0, 1.5, (400, 2))
    states[:3, 1] = -12.0, 12.0, -30.0  # beta next to its bounds
    return states[instance.gap(states) > 0.05][:PRIOR_DRAWS]


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.5, 1.0), (1.0, 0.9)])
def test_a_localised_prior_is_compared_where_a_bound_leaves_others_no_room(low: float, high: float) -> None:
    garch = Garch(low, high)
    found = compare_priors(draws(garch, some_states(garch)), ())
    assert found.log_integral == pytest.approx(0.0, abs=1e-9) and len(found.notes) == 1
    assert f"at each of {PRIOR_DRAWS} draws" in found.notes[0]


def test_another_density_is_still_told_apart() -> None:
    garch = Garch(0.0, 1.0, missing=1e-3)
    with pytest.raises(UnsupportedModelError, match="another law than its prior"):
        compare_priors(draws(garch, some_states(garch)), ())


def test_transforms_are_proved_where_the_program_has_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the first point tried alpha is 0.57, and there is no room between alpha and 0.9 - alpha."""
    garch = Garch(1.0, 0.9)
    module = "bread.backends.stan.localising"
    kinds = {"alpha": TWO_BOUNDS, "beta": TWO_BOUNDS}
    monkeypatch.setattr(f"{module}.require_localisable", lambda *_: ("", kinds))
    library = SimpleNamespace(instance=lambda data, law: garch)
    monkeypatch.setattr(f"{module}.StanLibrary", SimpleNamespace(of=lambda *_, **__: library))
    monkeypatch.setattr(f"{module}.find_toolchain", lambda: None)
    monkeypatch.setattr(f"{module}.in_users_files", lambda *_: ())
    program: Any = SimpleNamespace(held=(), source=None, edits=())
    stated: Any = SimpleNamespace(simulator=None, edged=np.zeros((2, 2), dtype=bool))
    positions = {"alpha": np.array([0]), "beta": np.array([1])}
    made: Any = garch
    localised = localise(program, {}, made, stated, positions, ("alpha", "beta"), garch.law.reference)
    assert localised.law.jacobians.tolist() == [TWO_BOUNDS, TWO_BOUNDS]
    garch.high = -1.0  # no room anywhere
    with pytest.raises(UnsupportedModelError, match="have no values at 100 points: lub_constrain"):
        localise(program, {}, made, stated, positions, ("alpha", "beta"), garch.law.reference)
