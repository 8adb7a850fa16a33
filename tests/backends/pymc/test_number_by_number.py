"""Interpreted functions: what PyTensor would run number by number gives the same numbers from NumPy."""

import cProfile

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode
from pytensor.tensor.random.basic import bernoulli, categorical
from pytensor.tensor.random.type import random_generator_type

from bread.backends.pymc.density.compiling import interpret_function, interpreted
from bread.backends.pymc.density.pytensor_fixes.number_by_number import COMPARISONS

pytestmark = pytest.mark.pymc

X = np.concatenate([np.linspace(-800.0, 800.0, 4001), [-np.inf, np.inf, np.nan, 0.0, -0.0, -1e-300, -1e-12]])
x, low, high, small = pt.dvector("x"), pt.dscalar("low"), pt.dscalar("high"), pt.bvector("small")
CASES = {
    "softplus": pt.softplus(x),
    "softplus of small integers": pt.softplus(small),
    "log of a logistic function": pt.log(pt.sigmoid(x)),
    "log1p(exp)": pt.log1p(pt.exp(x)),
    "log1mexp": pt.log1mexp(x),
    "log(1 - exp)": pt.log(1 - pt.exp(x)),
    "clip": pt.clip(x, low, high),
    "clip of small integers": pt.clip(small, low, high),
}
ARGUMENTS = (X, -1.5, 2.0, np.arange(-100, 100, dtype=np.int8))


LARGE = np.linspace(-9.0, -0.1, 200_000)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("limits", [(-1.5, 2.0), (2.0, -1.5)], ids=["in order", "the wrong way round"])
def test_numbers_are_those_of_pytensor(name, limits):
    inputs, arguments = [x, low, high, small], (X, *limits, ARGUMENTS[3])
    with interpreted():
        plain = pytensor.function(
            inputs, CASES[name], mode=Mode("vm", "fast_run").excluding("fusion"), on_unused_input="ignore"
        )
    ours = interpret_function(inputs, [CASES[name]])
    expected, found = plain(*arguments), ours(*arguments)[0]
    assert expected.dtype == found.dtype
    np.testing.assert_allclose(found, expected, rtol=4 * np.finfo(expected.dtype).eps, atol=0)


def test_no_number_is_looked_at_in_python():
    """A profile of calls has none of the functions that take one number each; PyTensor's own function has them."""
    with interpreted():
        plain = pytensor.function([x], CASES["softplus"], mode=Mode("vm", "fast_run").excluding("fusion"))
    assert calls(lambda: plain(LARGE)) > len(LARGE)
    for name in ("softplus", "log1mexp"):
        ours = interpret_function([x], [CASES[name]])
        assert calls(lambda ours=ours: ours(LARGE)) < 0.05 * len(LARGE)


SUCCESS = np.array([0.0, 1e-3, 0.3, 0.5, 0.97, 1.0])
probability, number, generator = pt.dvector("p"), pt.lscalar("n"), random_generator_type("rng")


def bernoulli_function(rewrites, *, has_size=True):
    size = (number, probability.shape[0]) if has_size else None
    drawn = bernoulli.make_node(generator, size, probability).outputs[1]
    return interpret_function([probability, number, generator], [drawn], rewrites=rewrites)


@pytest.mark.statistical
def test_bernoulli_draws_have_their_probabilities():
    """Each of six to 4 standard errors of 40,000 draws, and each pair uncorrelated; the seed gives the bits."""
    draw = bernoulli_function([COMPARISONS])
    (drawn,) = draw(SUCCESS, np.int64(40_000), np.random.default_rng(1))
    assert drawn.shape == (40_000, 6) and drawn.dtype == np.int64 and set(np.unique(drawn)) == {0, 1}
    error = np.sqrt(SUCCESS * (1.0 - SUCCESS) / 40_000)
    assert (np.abs(drawn.mean(axis=0) - SUCCESS) <= 4.0 * error).all()
    assert (np.abs(drawn.mean(axis=0) - SUCCESS[::-1]) > 4.0 * error).any(), "control"
    inner = np.corrcoef(drawn[:, 1:5].T)
    assert np.abs(inner - np.eye(4)).max() < 4.0 / np.sqrt(40_000)
    np.testing.assert_array_equal(draw(SUCCESS, np.int64(40_000), np.random.default_rng(1))[0], drawn)
    (alone,) = bernoulli_function([COMPARISONS], has_size=False)(SUCCESS, np.int64(0), np.random.default_rng(1))
    assert alone.shape == (6,) and alone[0] == 0 and alone[5] == 1


def test_bernoulli_draws_take_no_binomial_law():
    for rewrites, left in (([COMPARISONS], False), ([], True)):
        profile = cProfile.Profile()
        profile.runcall(bernoulli_function(rewrites), SUCCESS, np.int64(5), np.random.default_rng(1))
        assert any("_discrete_distns" in str(entry.code) for entry in profile.getstats()) == left


@pytest.mark.parametrize("wrong", [np.nan, -1e-9, 1.0 + 1e-9])
@pytest.mark.parametrize("rewrites", [[COMPARISONS], []], ids=["as comparisons", "as PyTensor draws"])
def test_what_is_no_probability_is_refused(wrong, rewrites):
    with pytest.raises((AssertionError, ValueError)):
        bernoulli_function(rewrites)(np.array([0.5, wrong]), np.int64(3), np.random.default_rng(1))


def plain_and_ours(inputs, graph):
    """The same graph as PyTensor interprets it, and as it is interpreted here."""
    with interpreted():
        plain = pytensor.function(inputs, graph, mode=Mode("vm", "fast_run").excluding("fusion"))
    ours = interpret_function(inputs, [graph])
    return plain, lambda *arguments: ours(*arguments)[0]


ROWS = np.random.default_rng(0).dirichlet([0.1, 0.5, 1.0, 3.0], size=(40, 3))


@pytest.mark.parametrize(
    ("size", "probabilities"),
    [
        (None, ROWS),
        ((3,), ROWS[0]),
        ((500, 40, 3), ROWS),
        ((500, 40, 1), ROWS[:, :1]),
        ((0, 40, 3), ROWS),
        ((700,), np.array([0.0, 0.3, 0.0, 0.7])),
        ((700,), np.array([0.3, 0.2, 0.1, 0.1])),  # less than 1: PyTensor draws one category more
        ((700,), np.array([1.0])),
        ((5, 2), np.array([[0.2, np.nan, 0.3], [0.1, 0.2, 0.7]])),
    ],
    ids=["no size", "rows", "many", "a length of one", "none", "zeros", "short of one", "one", "not a number"],
)
def test_categorical_draws_are_those_of_pytensor(size, probabilities):
    p = pt.as_tensor(np.zeros(probabilities.shape)).type("p")
    drawn = categorical.make_node(generator, size, p).outputs[1]
    plain, ours = plain_and_ours([p, generator], drawn)
    for seed in range(3):
        expected = plain(probabilities, np.random.default_rng(seed))
        found = ours(probabilities, np.random.default_rng(seed))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    if expected.size > 500 and np.ptp(expected):
        other = ours(np.roll(probabilities, 1, axis=-1), np.random.default_rng(2))
        assert (other != expected).any(), "control: other probabilities"


def test_categorical_draws_after_others_are_those_of_pytensor():
    p = pt.dmatrix("p")
    after, first = categorical.make_node(generator, (40,), p).outputs
    plain, ours = plain_and_ours([p, generator], first + 10 * categorical.make_node(after, (40,), p).outputs[1])
    drawn = ours(ROWS[:, 0], np.random.default_rng(5))
    np.testing.assert_array_equal(drawn, plain(ROWS[:, 0], np.random.default_rng(5)))
    assert (drawn // 10 != drawn % 10).any(), "control: the generator has moved on"


@pytest.mark.parametrize(("rows", "size"), [(1, (number,)), (7, (number,)), (7, (2, number)), (7, (7,))])
def test_a_size_that_does_not_suit_probabilities_is_refused(rows, size):
    p = pt.dmatrix("p")
    graph = categorical.make_node(generator, size, p).outputs[1] + 0 * number
    plain, ours = plain_and_ours([p, number, generator], graph)
    for function in (plain, ours):
        with pytest.raises((AssertionError, ValueError)):
            function(ROWS[:, 0], np.int64(rows), np.random.default_rng(1))
    fits = ours(ROWS[:rows, 0], np.int64(rows), np.random.default_rng(1))
    np.testing.assert_array_equal(fits, plain(ROWS[:rows, 0], np.int64(rows), np.random.default_rng(1)))


def test_no_categorical_draw_is_looked_for_in_python():
    p = pt.dmatrix("p")
    plain, ours = plain_and_ours([p, generator], categorical.make_node(generator, (200, 40), p).outputs[1])
    assert calls(lambda: plain(ROWS[:, 0], np.random.default_rng(1))) > 8000
    assert calls(lambda: ours(ROWS[:, 0], np.random.default_rng(1))) < 400


def calls(function):
    profile = cProfile.Profile()
    profile.runcall(function)
    return sum(entry.callcount for entry in profile.getstats())
