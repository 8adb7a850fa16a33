"""The first look: level at right draws of hard laws, power at wrong ones, sizes with their errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator, default_rng
from numpy.typing import NDArray
from scipy.special import expit

from bread.errors import InvalidArgumentError
from bread.statistics.first_look.first_look import LEVEL, FirstLook, first_look

Array = NDArray[np.float64]
Law = tuple[Callable[[Generator], Array], Callable[[Array], Array], Callable[[Array], Array]]
SHAPE = (4, 250)
D = 10


def _gaussian(correlation: float) -> Law:
    covariance = np.full((D, D), correlation) + (1.0 - correlation) * np.eye(D)
    root, precision = np.linalg.cholesky(covariance), np.linalg.inv(covariance)
    return (
        lambda rng: rng.standard_normal((*SHAPE, D)) @ root.T,
        lambda x: -x @ precision,
        lambda x: -0.5 * np.einsum("ni,ij,nj->n", x, precision, x),
    )


def _log_gamma(shape: float) -> Law:
    """Of the logarithm of a gamma variable: a slow tail to one side, a steep one to the other."""
    return (
        lambda rng: np.log(rng.gamma(shape + 1.0, size=(*SHAPE, D))) + np.log(rng.uniform(size=(*SHAPE, D))) / shape,
        lambda x: shape - np.exp(x),
        lambda x: (shape * x - np.exp(x)).sum(axis=-1),
    )


def _autoregressive(x_of: Generator) -> Array:
    x, state = np.empty((*SHAPE, D)), x_of.standard_normal((SHAPE[0], D))
    for t in range(SHAPE[1]):
        state = 0.5 * state + np.sqrt(0.75) * x_of.standard_normal(state.shape)
        x[:, t] = state
    return x


def _funnel(rng: Generator) -> Array:
    v = 3.0 * rng.standard_normal((*SHAPE, 1))
    return np.concatenate([v, np.exp(0.5 * v) * rng.standard_normal((*SHAPE, D - 1))], axis=-1)


def _funnel_gradient(x: Array) -> Array:
    v, rest = x[..., :1], x[..., 1:]
    own = -v / 9.0 - (D - 1) / 2.0 + 0.5 * np.exp(-v) * (rest**2).sum(axis=-1, keepdims=True)
    return np.concatenate([own, -rest * np.exp(-v)], axis=-1)


def _funnel_density(x: Array) -> Array:
    v, rest = x[..., 0], x[..., 1:]
    return -v * v / 18.0 - 0.5 * (D - 1) * v - 0.5 * np.exp(-v) * (rest**2).sum(axis=-1)


def _box(x: Array) -> Array:
    return np.where((np.abs(x) < 1.0).all(axis=-1), 0.0, -np.inf)


LAWS: dict[str, Law] = {
    "correlated Gaussian": _gaussian(0.8),
    "autoregressive chains": (_autoregressive, *_gaussian(0.0)[1:]),
    "Student t, 3": (
        lambda rng: rng.standard_t(3.0, (*SHAPE, D)),
        lambda x: -4.0 * x / (3.0 + x * x),
        lambda x: -2.0 * np.log1p(x * x / 3.0).sum(axis=-1),
    ),
    "Cauchy": (
        lambda rng: rng.standard_cauchy((*SHAPE, D)),
        lambda x: -2.0 * x / (1.0 + x * x),
        lambda x: -np.log1p(x * x).sum(axis=-1),
    ),
    "log-gamma 2": _log_gamma(2.0),
    "log-gamma 0.05": _log_gamma(0.05),
    "logit of uniform": (
        lambda rng: rng.logistic(size=(*SHAPE, D)),
        lambda x: 1.0 - 2.0 * expit(x),
        lambda x: (x - 2.0 * np.logaddexp(0.0, x)).sum(axis=-1),
    ),
    "funnel": (_funnel, _funnel_gradient, _funnel_density),
    "uniform with open edges": (lambda rng: rng.uniform(-1.0, 1.0, (*SHAPE, D)), np.zeros_like, _box),
    "exponential with an open edge": (
        lambda rng: rng.exponential(size=(*SHAPE, D)),
        lambda x: -np.ones_like(x),
        lambda x: np.where((x > 0.0).all(axis=-1), -x.sum(axis=-1), -np.inf),
    ),
}


def _look(law: Law, x: Array, quantities: Array | None = None) -> FirstLook:
    return first_look(x, law[1](x), law[2], quantities)


@pytest.mark.statistical
@pytest.mark.parametrize("name", LAWS)
def test_right_draws_are_no_disagreement(name: str) -> None:
    # Ten sets at level 0.001 each: one below it has probability 0.01, and the seeds are fixed.
    law, rng = LAWS[name], default_rng(20261129)
    p_values = [_look(law, law[0](rng)).p_value for _ in range(10)]
    assert min(p_values) > LEVEL


@pytest.mark.statistical
def test_few_right_draws_without_a_tail_are_no_disagreement() -> None:
    """A hundred draws may have none beyond 1.5 standard deviations, and then the tail's identity seems to fail."""
    law, rng = _gaussian(0.0), default_rng(20261130)
    p_values = [_look(law, rng.standard_normal((2, 50, D))).p_value for _ in range(60)]
    assert np.isfinite(p_values).sum() > 30
    assert np.nanmin(p_values) > LEVEL  # one below it has probability 0.06 at most, and the seed is fixed


@pytest.mark.statistical
def test_pairs_that_the_draws_choose_count_as_all_that_they_choose_from() -> None:
    """Of 200 coordinates those most correlated by chance are tested: a quarter of the level is for all 39,800 pairs."""
    rng, n_below = default_rng(20261130), 0
    for _ in range(12):
        x = rng.standard_normal((*SHAPE, 200))
        look = first_look(x, -x, lambda states: -0.5 * (states**2).sum(axis=-1))
        n_below += min(p for p, (_, i, j) in zip(look.p_values, look.functions, strict=True) if i != j) < 0.1
    assert n_below <= 2  # 12 times 0.025 are expected at most; three or more have probability 0.003
    x[..., 1] = 0.7 * x[..., 0] + np.sqrt(0.51) * x[..., 1]  # the negative control: a correlation that the law lacks
    look = first_look(x, -x, lambda states: -0.5 * (states**2).sum(axis=-1))
    assert min(p for p, (_, i, j) in zip(look.p_values, look.functions, strict=True) if i != j) < LEVEL


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["uniform with open edges", "exponential with an open edge"])
def test_an_open_edge_fails_the_first_identity_alone(name: str) -> None:
    """The negative control: by a density that forgets its edges the same draws are wrong."""
    law = LAWS[name]
    x = law[0](default_rng(1))
    look = _look(law, x)
    assert look.p_value > LEVEL
    assert np.isnan(look.shift).any()  # what the gradient does not tell is not told
    slope = -1.0 if name.startswith("exponential") else 0.0
    assert first_look(x, law[1](x), lambda states: slope * states.sum(axis=-1)).p_value < LEVEL


def _changed(kind: str, rng: Generator) -> tuple[Law, Array]:
    law = _gaussian(0.0) if kind == "cut" else _gaussian(0.8)
    x = law[0](rng)
    if kind == "shift":
        x[..., 3] += 0.15
    elif kind == "narrow":
        x[..., 3] *= 0.9
    elif kind == "independent":
        x = rng.standard_normal(x.shape) / np.sqrt(np.diag(-law[1](np.eye(D))))
    elif kind == "cut":
        while (out := x[..., 3] > 1.645).any():
            x[out] = rng.standard_normal((int(out.sum()), D))
    return law, x


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["shift", "narrow", "independent", "cut"])
def test_wrong_draws_are_a_disagreement(kind: str) -> None:
    """A shift of 0.15 sd, an sd off by 10%, a mean-field law, a cut tail of 5%: of 1000 independent draws."""
    rng = default_rng(5)
    seen = 0
    for _ in range(10):
        law, x = _changed(kind, rng)
        seen += _look(law, x).p_value < LEVEL
    assert seen >= 8  # with power 0.95 of each, fewer has probability 0.01
    assert _look(law, law[0](rng)).p_value > LEVEL  # the negative control


@pytest.mark.statistical
def test_sizes_have_their_errors() -> None:
    law, rng = _gaussian(0.8), default_rng(11)
    shifts, ratios = [], []
    for _ in range(40):
        x = law[0](rng)
        x[..., 3] = 0.9 * x[..., 3] + 0.15
        look = _look(law, x, x[..., 3:4])
        shifts.append((look.shift[0] - 0.15 / 0.9) / look.shift_se[0])
        ratios.append((look.sd_ratio[0] - 0.9) / look.sd_ratio_se[0])
    for scores in (np.array(shifts), np.array(ratios)):
        assert abs(scores.mean()) < 3.0 / np.sqrt(40)  # three standard errors of a mean of unit normal scores
        assert np.mean(np.abs(scores) < 2.0) > 0.95 - 3.0 * np.sqrt(0.95 * 0.05 / 40)


@pytest.mark.statistical
def test_a_ratio_far_from_one_has_its_error_too() -> None:
    """The error is relative: of 40 sets whose sd is too small by a quarter, scores have standard deviation 1."""
    law, rng = _gaussian(0.0), default_rng(12)
    scores = []
    for _ in range(40):
        x = law[0](rng)
        x[..., 3] *= 0.75
        look = _look(law, x, x[..., 3:4])
        scores.append((look.sd_ratio[0] - 0.75) / look.sd_ratio_se[0])
    assert abs(np.std(scores) - 1.0) < 3.0 / np.sqrt(2 * 40)  # three standard errors of a standard deviation


def _regression() -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """Gradient and log density of a, b, log sd of 40 outcomes near 1 + 2 x, where x is far from 0."""
    rng = default_rng(3)
    covariate = rng.uniform(5.0, 6.0, 40)
    y = 1.0 + 2.0 * covariate + rng.standard_normal(40)

    def density(s: Array) -> Array:
        rest, u = y - s[..., :1] - s[..., 1:2] * covariate, s[..., 2]
        within = -40.0 * u - 0.5 * np.exp(-2.0 * u) * (rest**2).sum(-1)
        return np.asarray(within - (s[..., :2] ** 2).sum(-1) / 200.0 - u**2 / 2.0)

    def gradient(s: Array) -> Array:
        rest, u = y - s[..., :1] - s[..., 1:2] * covariate, s[..., 2]
        by_mean = np.exp(-2.0 * u)[..., None] * np.stack([rest.sum(-1), (rest * covariate).sum(-1)], axis=-1)
        by_u = -40.0 + np.exp(-2.0 * u) * (rest**2).sum(-1) - u
        return np.concatenate([by_mean - s[..., :2] / 100.0, by_u[..., None]], axis=-1)

    return gradient, density


def test_draws_that_are_far_off_have_no_size() -> None:
    """As those of mean-field ADVI: 13 of their own standard deviations too high in a, and called 24 too low before."""
    gradient, density = _regression()
    x = np.array([3.0, 1.64, 0.2]) + np.array([0.15, 0.027, 0.11]) * default_rng(3).standard_normal((*SHAPE, 3))
    found = first_look(x, gradient(x), density)
    assert found.p_value < LEVEL
    assert np.isnan(found.shift).all() and np.isnan(found.sd_ratio).all()


def test_narrow_draws_of_a_normal_law_have_their_sizes() -> None:
    """The control: mean-field draws of a correlated normal law, whose regressions hold wherever draws are."""
    law = _gaussian(0.8)
    narrow = np.diag(np.linalg.inv(0.8 + 0.2 * np.eye(D))) ** -0.5  # sd given all others; the marginal one is 1
    found = _look(law, narrow * default_rng(4).standard_normal((*SHAPE, D)))
    assert found.p_value < LEVEL
    assert (np.abs(found.sd_ratio - narrow) < 4.0 * found.sd_ratio_se).all() and (found.sd_ratio_se < 0.05).all()


def test_few_effective_draws_are_not_called_fine() -> None:
    law, rng = _gaussian(0.0), default_rng(2)
    x = np.repeat(law[0](rng)[:, :10], 25, axis=1)  # each draw 25 times
    assert np.isnan(_look(law, x).p_value)


def test_a_gradient_that_is_not_finite_leaves_its_coordinate_out() -> None:
    law, rng = _gaussian(0.0), default_rng(3)
    x = law[0](rng)
    gradient = law[1](x)
    gradient[0, 0, 2] = np.nan
    look = first_look(x, gradient, law[2])
    assert look.n_effective[2] == 0.0 and np.isnan(look.shift[2]) and np.isfinite(np.delete(look.shift, 2)).all()
    assert np.isfinite(look.p_value)


def test_copies_count_once() -> None:
    law, rng = _gaussian(0.8), default_rng(5)
    x = law[0](rng)
    x[..., 3] += 0.15
    share = first_look(x, law[1](x), law[2], distinct_share=0.25)
    assert share.shift_se[3] == pytest.approx(2.0 * _look(law, x).shift_se[3], rel=0.1)


def test_shapes_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="one shape"):
        first_look(np.zeros((4, 250, 2)), np.zeros((4, 250, 3)), lambda x: x[:, 0])
