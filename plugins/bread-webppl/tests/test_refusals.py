"""WebPPL programs that are refused, and discrete laws and options that are taken."""

from __future__ import annotations

import pytest
import webppl_models as models

from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.errors import InvalidArgumentError, UnsupportedKernelError, UnsupportedModelError

pytestmark = pytest.mark.skipif(models.why_not() != "", reason=models.why_not() or "runs here")


def opened(model, **options):
    return open_model(model, OpenOptions(**options))


@pytest.mark.parametrize(("program", "message"), models.REFUSED.values(), ids=models.REFUSED)
def test_refused(program, message):
    with pytest.raises(UnsupportedModelError, match=message):
        opened(models.wrapped(program, {"y": models.Y}))


def test_discrete_draws_that_do_not_follow_their_score_are_refused():
    """A prior of 0.3 that is drawn as 0.35 would show nowhere: chains, simulations and proposals share it."""
    with pytest.raises(UnsupportedModelError, match=r"Draws of Bernoulli \(\{ p: 0.3 \}\) do not follow its score"):
        opened(models.coins(packages=[models.BIASED]))


def test_discrete_laws_of_webppl_are_taken():
    """Bounded, unbounded, rare values, vectors, mixtures and marginals of an inference by enumeration."""
    laws = (
        "Bernoulli({p: 0.999})",
        "Binomial({p: 0.7, n: 40})",
        "Poisson({mu: 150})",
        "Discrete({ps: [1, 2, 1e-5]})",
        "Categorical({ps: [1, 2, 3], vs: [4, 5, 9]})",
        "RandomInteger({n: 1})",
        "Multinomial({ps: [0.2, 0.3, 0.5], n: 4})",
        "MultivariateBernoulli({ps: Vector([0.2, 0.6])})",
        "Mixture({dists: [Poisson({mu: 2}), Poisson({mu: 9})], ps: [0.3, 0.7]})",
        "Infer({method: 'enumerate', model: function() { return flip(0.2) + flip(0.5); }})",
    )
    drawn = " ".join(f"var k{number} = sample({law});" for number, law in enumerate(laws))
    names = ", ".join(f"k{number}: k{number}" for number in range(len(laws)))
    program = models.program(f"var mu = gaussian(0, 1); {drawn} {models.OBSERVED}", f"{{mu: mu, {names}}}")
    layout = opened(models.wrapped(program, {"y": models.Y})).info.layout
    assert list(layout.discrete) == [False] + [True] * (len(laws) + 2 + 1)
    assert {len(layout.positions[f"k{number}"]) for number in range(len(laws))} == {1, 2, 3}


def test_numbers_for_booleans_are_refused():
    with pytest.raises(UnsupportedModelError, match="astype.bool"):
        opened(models.wrapped(models.COINS, {"y": models.SUCCESSES.astype(int)}))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kernel": "HMC"}, UnsupportedKernelError, "'MH'"),
        ({"engine": "blackjax"}, InvalidArgumentError, "engine="),
        ({"data": {}}, InvalidArgumentError, "data="),
        ({"hyperparameters": ("nu",)}, InvalidArgumentError, "'nu'"),
    ],
)
def test_options(options, error, message):
    with pytest.raises(error, match=message):
        opened(models.normal_mean(), **options)
