"""What is held by default where no free variable depends on another: all but standardised effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pm = pytest.importorskip("pymc")
pt = pytest.importorskip("pytensor.tensor")

from bread.backends.pymc.model.reading import default_hyperparameters  # noqa: E402

X = np.random.default_rng(0).normal(size=(10, 3))
CASES: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {}


def case(*held: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a likelihood whose variables named ``held`` are held by default."""

    def register(build: Callable[[], Any]) -> Callable[[], Any]:
        CASES[build.__name__] = build, held
        return build

    return register


def outcome(mean: Any, n: int, scale: Any = 1.0) -> None:
    pm.Normal("y", mean, scale, observed=np.ones(n))


@case("mu", "tau")
def non_centred_through_an_index() -> None:
    mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
    effect = pm.Deterministic("effect", mu + tau * pm.Normal("z", shape=4))
    outcome(effect[np.array([0, 1, 1, 2, 3])], 5)


@case("mu", "z")
def effect_around_another_mean() -> None:
    outcome(pm.Normal("mu") * pm.Normal("z", 1, 1, shape=4), 4)


@case("length", "height", "noise")
def gaussian_process() -> None:
    length, height = pm.Gamma("length", 2, 1), pm.HalfNormal("height", 1)
    process = pm.gp.Latent(cov_func=height**2 * pm.gp.cov.ExpQuad(1, length))
    outcome(process.prior("f", X=np.linspace(0, 1, 5)[:, None]), 5, pm.HalfNormal("noise", 1))


@case("tau", "local")
def horseshoe() -> None:
    tau, local = pm.HalfCauchy("tau", 1), pm.HalfCauchy("local", 1, shape=3)
    outcome(X @ (pm.StudentT("z", nu=4, mu=0, sigma=1, shape=3) * local * tau), 10)


@case("factor")
def correlated_effects() -> None:
    factor, _, _ = pm.LKJCholeskyCov("factor", n=3, eta=2, sd_dist=pm.HalfNormal.dist(1), compute_corr=True)
    outcome((factor @ pm.Normal("z", shape=(3, 5)))[0], 5)


@case("slopes", "noise")
def regression() -> None:
    outcome(X @ pm.Normal("slopes", shape=3), 10, pm.HalfNormal("noise", 1))


@case("ability", "discrimination", "difficulty")
def item_response() -> None:
    """Ability stands in a difference, which is the factor."""
    ability, discrimination = pm.Normal("ability", shape=5), pm.LogNormal("discrimination", shape=4)
    gap = ability[:, None] - pm.Normal("difficulty", shape=4)[None]
    pm.Bernoulli("y", logit_p=discrimination[None] * gap, observed=np.ones((5, 4)))


@case("u", "v")
def product_of_two() -> None:
    """Each is a factor of the other: nothing would be left to hold."""
    outcome(pm.Normal("u", shape=4) * pm.Normal("v", shape=4), 4)


@case("z", "scale")
def own_square() -> None:
    z = pm.Normal("z", shape=4)
    outcome(z * z * pm.HalfNormal("scale"), 4)


@case("scale", "z")
def denominator() -> None:
    outcome(pm.HalfNormal("scale") / pm.Normal("z", shape=4), 4)


@case("scale", "z")
def scanned() -> None:
    """The graph cannot be read."""
    scale, z = pm.HalfNormal("scale"), pm.Normal("z", shape=4)
    from pytensor import scan

    states = scan(
        lambda step, last: last + step, sequences=[scale * z], outputs_info=[pt.zeros(())], return_updates=False
    )
    outcome(states, 4)


@pytest.mark.parametrize("name", CASES)
def test_held_by_default(name: str) -> None:
    build, held = CASES[name]
    with pm.Model() as model:
        build()
    assert default_hyperparameters(model) == held
