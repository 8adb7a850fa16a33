"""Comparisons of bread.debug in words: the quantity's name stands where the function has x."""

import pytest

from bread.reading.other_verbs.comparison_words import in_words


@pytest.mark.parametrize(
    ("function", "quantity", "words"),
    [
        ("x", "mu", "mu"),
        ("x", "x", "x"),
        ("x^2", "z[0]", "z[0]^2"),
        ("x^2", "log density", "(log density)^2"),
        ("x < q10", "log density", "log density < q10"),
        ("|x| < q50", "mu", "|mu| < q50"),
        ("x y", "mu, z[0]", "mu * z[0]"),
        ("x y exchanged, 2 steps apart", "mu, log density", "mu * (log density) exchanged, 2 steps apart"),
        ("x and x^2 exchanged, 2 steps apart", "mu", "mu and mu^2 exchanged, 2 steps apart"),
        ("move of x^2 in 1 steps", "mu", "move of mu^2 in 1 steps"),
        ("rank of x: any change", "exchange", "rank of exchange: any change"),
        ("x^2", r"a\1", r"a\1^2"),
        ("x", "all coordinates", "all coordinates"),
        ("not a number", "x", "not a number of x"),
    ],
)
def test_the_quantity_stands_for_x(function, quantity, words):
    assert in_words(function, quantity) == words
