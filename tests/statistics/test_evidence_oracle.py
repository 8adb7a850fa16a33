"""Estimators of log evidence against pymbar, which physicists use: values and standard errors."""

from __future__ import annotations

import numpy as np
import pytest

from bread.statistics.evidence import evidence

pymbar = pytest.importorskip("pymbar")
TRUTH = -3.0


def weights(spread: float, sizes: tuple[int, int], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return forward and reverse log weights that obey Crooks' relation."""
    rng = np.random.default_rng(seed)
    lag = spread**2 / 2
    return rng.normal(TRUTH - lag, spread, sizes[0]), rng.normal(TRUTH + lag, spread, sizes[1])


@pytest.mark.parametrize(("spread", "sizes"), [(0.3, (50, 50)), (2.0, (300, 200)), (4.0, (40, 700))])
def test_values_and_errors_are_pymbars(spread: float, sizes: tuple[int, int]) -> None:
    """Physicists' work is minus a forward log weight, and free energy minus the log evidence."""
    forward, reverse = weights(spread, sizes, 7)
    bar = pymbar.bar(-forward, reverse)
    ours = evidence.bennett(forward, reverse)
    assert ours.value == pytest.approx(-bar["Delta_f"], abs=1e-6)  # pymbar stops there
    assert ours.standard_error == pytest.approx(bar["dDelta_f"], rel=1e-5)
    up, down = pymbar.exp(-forward), pymbar.exp(reverse)
    for ours, value, error in (
        (evidence.average_weight(forward), -up["Delta_f"], up["dDelta_f"]),
        (evidence.harmonic_weight(reverse), down["Delta_f"], down["dDelta_f"]),
    ):
        assert ours.value == pytest.approx(value, abs=1e-10)
        assert ours.standard_error == pytest.approx(error, rel=0.02)  # n in place of n - 1
    assert evidence.cumulant_forward(forward).value == pytest.approx(-pymbar.exp_gauss(-forward)["Delta_f"], rel=0.05)


def test_a_small_shift_is_told_apart() -> None:
    """Control: forward weights that are off by a thousandth of a nat give another value than pymbar's."""
    forward, reverse = weights(2.0, (300, 200), 7)
    bar = pymbar.bar(-forward, reverse)
    assert abs(evidence.bennett(forward + 1e-3, reverse).value + bar["Delta_f"]) > 1e-4
