"""Mixtures adapted by importance sampling: near to curved, heavy-tailed and two-humped laws that are known exactly."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytest
from numpy.random import default_rng
from scipy import stats

from bread.backends.base import OpenOptions
from bread.backends.pymc.opened import open_model
from bread.errors import InvalidArgumentError
from bread.fitting.importance.adaptation import nearer, tempered, truncated
from bread.fitting.importance.adapted import GAIN, LARGEST_DIM, LOSS, adapted, adapted_near
from bread.fitting.search import found_references as found
from bread.fitting.search.found_references import Found
from bread.fitting.search.moving import move_reference
from bread.fitting.search.reference_fit import FitRequest, fit_reference
from bread.fitting.search.work import FitWork
from bread.paths.mixture import diagonal, gaussian

N_DRAWS = 20_000


class Target:
    """A law with a density, off by a constant, and exact draws: the posterior of a `FitWork`."""

    def __init__(self, log_density, draw, transformed=(False, False)):
        self.value, self.draw, self.transformed = log_density, draw, np.array(transformed)

    def log_density(self, path, states):
        return self.value(states) + 7.0

    def log_ratio(self, path, states):
        return self.log_density(path, states) - path.reference.log_density(states)

    def work(self, root=1):
        return FitWork(self, self.transformed, root, 0)

    def divergence(self, reference):
        """Jeffreys divergence (nats), each log ratio held within 10 nats, and its standard error, by exact draws."""
        own, exact = reference.sample(N_DRAWS, default_rng(2)), self.draw(N_DRAWS, default_rng(3))
        end, start = (
            np.clip(self.value(states) - reference.log_density(states), -10.0, 10.0) for states in (exact, own)
        )
        return end.mean() - start.mean(), np.sqrt((end.var() + start.var()) / N_DRAWS)


def curved(at=1.0, width=0.3):
    """A normal coordinate, and one that is about ``at`` minus its square."""

    def log_density(x):
        return stats.norm.logpdf(x[..., 0]) + stats.norm.logpdf(x[..., 1], at - x[..., 0] ** 2, width)

    def draw(n, rng):
        a = rng.standard_normal(n)
        return np.column_stack([a, at - a**2 + width * rng.standard_normal(n)])

    return Target(log_density, draw)


def humps(weight=0.3):
    """Two normal laws, 12 standard deviations apart."""

    def log_density(x):
        terms = [stats.norm.logpdf(x, centre).sum(axis=-1) for centre in (-4.0, 4.5)]
        return np.logaddexp(np.log(weight) + terms[0], np.log1p(-weight) + terms[1])

    def draw(n, rng):
        centre = np.where(rng.random(n) < weight, -4.0, 4.5)
        return centre[:, None] + rng.standard_normal((n, 2))

    return Target(log_density, draw)


def cauchy():
    """Cauchy coordinates of scales 1 and 3."""
    scale = np.array([1.0, 3.0])
    return Target(
        lambda x: stats.cauchy.logpdf(x, 0.0, scale).sum(axis=-1),
        lambda n, rng: scale * rng.standard_cauchy((n, 2)),
    )  # fmt: skip


class WithPrior(Target):
    """A law with a normal prior of standard deviation 5, many draws of which are made at once."""

    n_batches = 0

    def __init__(self, target):
        super().__init__(target.value, target.draw)

    def draw_prior_batch(self, n, seed):
        self.n_batches += 1
        return 5.0 * default_rng(seed).standard_normal((n, 2))

    def log_ratio(self, path, states):
        if path.reference is None:
            return self.value(states) - stats.norm.logpdf(states, 0.0, 5.0).sum(axis=-1)
        return super().log_ratio(path, states)


class Refusing(WithPrior):
    """The same without a prior path."""

    def log_ratio(self, path, states):
        if path.reference is None:
            raise InvalidArgumentError(f"The model has no prior path. The path is {path!r}.")
        return super().log_ratio(path, states)


WIDE = diagonal(np.zeros(2), np.array([2.0, 3.0]))


@pytest.mark.statistical
@pytest.mark.parametrize("root", [1, 2, 3])
def test_a_curved_law_is_met(root):
    """By 4 standard errors below 1 nat; the Gaussian with its moments is above 2."""
    target = curved()
    value, error = target.divergence(adapted(target.work(root), WIDE))
    assert 0.0 < value + 4.0 * error < 1.0
    draws = target.draw(N_DRAWS, default_rng(0))
    value, error = target.divergence(gaussian(draws.mean(axis=0), np.cov(draws.T)))
    assert value - 4.0 * error > 2.0, "control"


@pytest.mark.statistical
def test_both_humps_have_their_weights_where_the_start_reaches_both():
    """To 0.06, three standard errors of 500 effective draws. A start that reaches one does not find the other."""
    target = humps()
    found = adapted(target.work(), diagonal(np.zeros(2), np.full(2, 5.0)))
    assert (found.sample(N_DRAWS, default_rng(0))[:, 0] < 0.0).mean() == pytest.approx(0.3, abs=0.06)
    value, error = target.divergence(found)
    assert value + 4.0 * error < 0.3
    alone = adapted(target.work(), diagonal(np.full(2, 4.5), np.ones(2)))
    assert (alone.sample(N_DRAWS, default_rng(0))[:, 0] < 0.0).mean() < 0.01, "control"


@pytest.mark.statistical
def test_prior_draws_show_a_hump_that_the_start_does_not_reach():
    """Its weight to 0.06, three standard errors of 500 effective draws; a posterior without them is the control."""
    alone, missing = diagonal(np.full(2, 4.5), np.ones(2)), {}
    for kind in (WithPrior, Refusing):
        target = kind(humps())
        found = adapted(target.work(), alone)
        assert target.n_batches == 1
        missing[kind] = (found.sample(N_DRAWS, default_rng(0))[:, 0] < 0.0).mean()
    assert missing[WithPrior] == pytest.approx(0.3, abs=0.06)
    assert missing[Refusing] < 0.01, "control"


def test_nothing_of_the_prior_is_kept_where_none_of_its_draws_has_a_likelihood():
    target = WithPrior(curved())
    target.log_ratio = lambda path, states: (
        np.where(np.arange(len(states)) % 2, -np.inf, np.nan)
        if path.reference is None
        else Target.log_ratio(target, path, states)
    )
    np.testing.assert_array_equal(
        adapted(target.work(), WIDE).sample(9, default_rng(0)), adapted(curved().work(), WIDE).sample(9, default_rng(0))
    )


def test_heavy_tails_are_reached_and_light_ones_are_left_light():
    """500 scales out the reference is at most 6 nats short of two Cauchy laws; a normal law gets no heavy part."""
    target = cauchy()
    found = adapted(target.work(), WIDE)
    far = np.array([[500.0, 0.0], [0.0, -1500.0], [500.0, 1500.0]])
    short = target.value(far) - found.log_density(far)
    assert (np.abs(short) < 6.0).all()
    parts = tuple(replace(part, degrees=None) for part in found.components)
    light = replace(found, components=parts)
    assert (target.value(far) - light.log_density(far)).max() > 100.0, "control: the same laws, normal"
    normal = Target(lambda x: stats.norm.logpdf(x).sum(axis=-1), lambda n, rng: rng.standard_normal((n, 2)))
    assert adapted(normal.work(), WIDE).log_density(np.array([500.0, 500.0])) < -1000.0


def test_logarithms_of_scales_have_no_heavy_tails():
    target = cauchy()
    target.transformed = np.array([True, False])
    for part in adapted(target.work(), WIDE).components:
        assert part.degrees is None or np.isinf(part.degrees[0])
    target.transformed = np.array([True, True])
    assert all(part.degrees is None for part in adapted(target.work(), WIDE).components)


@pytest.mark.statistical
def test_it_is_adapted_to_other_data_from_where_it_is():
    """The curve is moved by 3 and half as thick again: the reference as it was is above 5 nats off."""
    first = adapted(curved().work(), WIDE)
    other = curved(at=-2.0, width=0.5)
    value, error = other.divergence(adapted_near(other.work(), first, 3.0))
    assert value + 4.0 * error < 1.0
    value, error = other.divergence(first)
    assert value - 4.0 * error > 5.0, "control"
    assert adapted_near(other.work(), first, 1e-3) is None


def test_the_same_seeds_give_the_same_bits_and_other_seeds_do_not():
    states = WIDE.sample(5, default_rng(0))
    first, again, other = (adapted(curved().work(root), WIDE).log_density(states) for root in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def better(target, start, best, chains, gain=GAIN):
    return nearer(target.work(), adapted(target.work(), start), best, chains, 400, gain)


def test_it_is_taken_only_where_it_is_nearer():
    target = curved()
    chains = [target.draw(400, default_rng(seed)) for seed in (4, 5)]
    best = adapted(target.work(), WIDE)
    assert better(target, WIDE, WIDE, chains) is not None
    assert better(target, WIDE, best, chains) is None
    assert better(target, WIDE, best, chains, gain=-1.0) is not None


@pytest.mark.statistical
def test_chains_that_saw_one_hump_do_not_speak_for_what_was_fitted_to_them():
    """By their draws the Gaussian of that hump is nearest; a mixture with both humps is taken in its place."""
    target = humps()
    one = diagonal(np.full(2, 4.5), np.ones(2))
    chains = [one.sample(400, default_rng(seed)) for seed in (4, 5)]
    found = better(target, diagonal(np.zeros(2), np.full(2, 5.0)), one, chains)
    assert found is not None and (found.sample(N_DRAWS, default_rng(0))[:, 0] < 0.0).mean() > 0.2
    ends = np.concatenate([states[200:] for states in chains])
    shown = []
    for law in (one, found):
        path = SimpleNamespace(reference=law)
        start, end = (target.log_ratio(path, states) for states in (law.sample(400, default_rng(6)), ends))
        shown.append(truncated(start, end))
    assert shown[1] + 0.5 > shown[0], "control: by draws of the chains alone the hump stays"


@pytest.mark.parametrize(
    ("family", "criterion", "gain"),
    [("conditional", 1.5, -LOSS), ("conditional", 0.9, GAIN), ("nested", 1.5, GAIN), ("mixture", 0.1, -LOSS),
     ("full", 1.5, GAIN), ("full", 0.1, None)],
)  # fmt: skip
def test_what_moves_badly_may_be_a_little_nearer(monkeypatch, family, criterion, gain):
    asked = []
    monkeypatch.setattr(found, "nearer", lambda *arguments: asked.append(arguments[-1]))
    target = curved()
    chains = [target.draw(400, default_rng(4))]
    law = Found({family: WIDE})
    assert not law.look_for_adapted(target.work(), chains, family, {"full": 9.0, family: criterion}, 9)
    assert asked == ([] if gain is None else [gain])


def test_nothing_is_adapted_in_many_coordinates_or_where_no_draw_has_a_density():
    many = LARGEST_DIM + 1
    normal = Target(lambda x: -0.5 * (x**2).sum(axis=-1), None, np.zeros(many, dtype=bool))
    assert adapted(normal.work(), diagonal(np.zeros(many), np.ones(many))) is None
    nowhere = Target(lambda x: np.full(x.shape[:-1], -np.inf), None)
    assert adapted(nowhere.work(), WIDE) is None


@pytest.mark.parametrize("spread", [0.1, 1.0, 30.0])
def test_weights_are_tempered_to_so_many_effective_draws(spread):
    level = spread * default_rng(0).standard_normal(1000)
    level[:10] = -np.inf
    weights = tempered(level, 200.0)
    effective = 1.0 / (weights**2).sum()
    assert weights.sum() == pytest.approx(1.0) and (weights[:10] == 0.0).all() and effective > 199.9
    full = np.exp(level - level.max())
    full /= full.sum()
    if spread < 2.0:
        np.testing.assert_allclose(weights, full)
    else:
        assert effective < 200.1 and 1.0 / (full**2).sum() < 20.0
    assert tempered(np.where(np.arange(1000) < 150, 0.0, -np.inf), 200.0) is None


def test_a_divergence_is_held_where_a_draw_is_far_off():
    """Of two normal laws 1 apart it is 1 nat, to 4 standard errors; one draw 1000 nats off moves it by 10 / n."""
    rng, n = default_rng(0), 4000
    start, end = -rng.standard_normal(n) - 0.5, 0.5 - rng.standard_normal(n)
    assert truncated(start, end) == pytest.approx(1.0, abs=4.0 * np.sqrt(2.0 / n))
    assert truncated(start) == pytest.approx(1.0, abs=0.2)
    far = start.copy()
    far[0] = -1000.0
    assert abs(truncated(far, end) - truncated(start, end)) < 12.0 / n
    assert end.mean() - far.mean() > 1.2, "control"
    assert truncated(np.full(5, -np.inf)) == truncated(np.array([0.0, np.nan])) == np.inf


@pytest.mark.statistical
def test_a_fit_takes_it_where_chains_show_no_gaussian_and_moves_it():
    """Rosenbrock's valley: by draws of both below 1 nat, moved to other data below 2, where the first is above 3."""

    def build(y):
        with pm.Model() as model:
            a, b = pm.Normal("a", 0.0, 1.0), pm.Normal("b", 0.0, 1.0)
            pm.Normal("y", b + a**2, 0.05, observed=np.array([y]))
        return open_model(model, OpenOptions())

    model = build(1.0)
    request = FitRequest(2, model.info.layout.may_be_scale, 200, is_shared=True)
    fit = fit_reference(model.condition(model.info.data.observed), request, root=1, simulation=0)
    assert fit.family == "adapted" and fit.criterion["adapted"] < 1.0
    assert fit.fallback is not None and fit.n_given_gradients == fit.move_gradients(10.0) > 1000
    other = build(2.0)
    posterior = other.condition(other.info.data.observed)
    kernel = None  # no chain runs
    moved = move_reference(posterior, fit, kernel, root=1, simulation=1)
    work = FitWork(posterior, request.transformed, 1, 2)
    assert work.own_divergence(moved.reference) < 2.0 < 3.0 < work.own_divergence(fit.reference)
