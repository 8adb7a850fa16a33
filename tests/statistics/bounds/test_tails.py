"""Tails of weights: whether a mean exists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bread.errors import InvalidArgumentError
from bread.statistics.bounds import bounds, tails
from tests.support.work import PROPERTY, gamma_work

STARTS = {
    "normal": (lambda rng, n: rng.normal(size=n), None),
    "exponential": (lambda rng, n: -rng.exponential(size=n), 0.0),
    "student t(3) squared": (lambda rng, n: -(rng.standard_t(3, size=n) ** 2), 2 / 3),
    "half-normal scale": (lambda rng, n: -1 / rng.normal(size=n) ** 2, 2.0),
    "half-Cauchy variance": (lambda rng, n: -(rng.standard_cauchy(size=n) ** 2), 2.0),
}


@pytest.mark.statistical
@pytest.mark.parametrize("kind", STARTS)
def test_tail_index_of_known_laws(kind):
    draw, exact = STARTS[kind]
    fits = [tails.tail_index(draw(np.random.default_rng(seed), 2000)) for seed in range(200)]
    shapes = np.array([fit.shape for fit in fits])
    if exact is None:
        assert -0.3 < shapes.mean() < 0.0  # 0 in the limit, reached slowly from below
        return
    # The mean of 200 within 0.07 (bias of a finite threshold; its standard error is 0.02 at k = 2).
    assert abs(shapes.mean() - exact) < 0.07
    assert np.mean([fit.standard_error for fit in fits]) == pytest.approx(shapes.std(), rel=0.25)


@pytest.mark.statistical
def test_a_mean_that_does_not_exist_is_noticed():
    light = tails.TailIndex(0.0, 0.25, 16)
    flagged = {}
    for kind, (draw, _) in STARTS.items():
        starts = [tails.tail_index(draw(np.random.default_rng(seed), 2000)) for seed in range(300)]
        flagged[kind] = np.mean([not tails.is_mean_reliable(start, light) for start in starts])
    assert flagged["half-normal scale"] > 0.99 and flagged["half-Cauchy variance"] > 0.99
    assert flagged["normal"] < 0.01 and flagged["exponential"] < 0.01
    assert flagged["student t(3) squared"] < 0.45  # a finite mean near the limit: doubted in about 30 %


@pytest.mark.slow
@pytest.mark.statistical
def test_log_weights_object_only_to_clearly_heavy_tails():
    start = tails.TailIndex(0.0, 0.1, 134)

    def doubted(draw, n_runs):
        weights = (draw(np.random.default_rng(seed)) for seed in range(n_runs))
        return np.mean([not tails.is_mean_reliable(start, tails.centred_tail_index(list(w))) for w in weights])

    assert doubted(lambda rng: rng.normal(size=(20, 4)), 1000) < 0.01
    assert doubted(lambda rng: gamma_work(rng, (20, 4))[0], 1000) < 0.01
    assert doubted(lambda rng: -1 / rng.normal(size=(20, 4)) ** 2, 200) > 0.2


def test_reliability_is_judged_from_raw_arrays():
    rng = np.random.default_rng(6)
    forward = rng.normal(size=(20, 4)) + 100 * rng.normal(size=(20, 1))  # levels differ: centred before pooling
    light = [500 + rng.normal(size=500), rng.normal(size=500) - 500]
    heavy = [values - 1 / rng.normal(size=500) ** 2 for values in light]
    assert bounds.jeffreys_is_reliable(light, forward)
    assert not bounds.jeffreys_is_reliable(heavy, forward)
    assert not bounds.jeffreys_is_reliable([np.array([0.0] * 99 + [-np.inf])], forward)
    assert bounds.jeffreys_is_reliable([], forward)


def test_tail_index_special_cases():
    assert tails.tail_index([0.0] * 99 + [-np.inf]).shape == np.inf
    assert tails.tail_index(np.zeros(100)).shape == -np.inf
    assert np.isnan(tails.tail_index(np.arange(10.0)).shape)
    assert np.isnan(tails.tail_index([0.0] * 98 + [-1.0, -2.0]).shape)
    with pytest.raises(InvalidArgumentError, match="1 of 2 are NaN"):
        tails.tail_index([0.0, np.nan])
    unknown = tails.tail_index([])
    assert tails.is_mean_reliable(unknown, unknown)


@PROPERTY
@given(st.integers(0, 10_000), st.floats(-100, 100), st.floats(0.01, 100))
def test_tail_index_ignores_location_and_scale(seed, shift, scale):
    x = -np.random.default_rng(seed).pareto(2.0, size=200)
    expected = tails.tail_index(x)
    assert tails.tail_index(shift + scale * x).shape == pytest.approx(expected.shape, abs=1e-5)
