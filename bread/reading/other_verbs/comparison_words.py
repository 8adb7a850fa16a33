"""What a comparison of `bread.debug` compares, in words: "mu^2" where function and quantity are x^2 and mu."""

from __future__ import annotations

import re

_X = re.compile(r"\bx\b")
_PRODUCT = re.compile(r"\bx y\b")


def in_words(function: str, quantity: str) -> str:
    """Return a function of a quantity in words: the quantity's name where the function has x.

    Parameters
    ----------
    function : str
        "x", "x^2", "x < q10", "x y" (of two quantities with a comma between), "move of x^2 in 1 steps", ...; or words
        without x: "not a number".
    quantity : str
        "mu", "mu, tau", "log density", "all coordinates", ...

    Returns
    -------
    str
        "mu", "mu^2", "mu < q10", "mu * tau", "move of mu^2 in 1 steps", "(log density)^2", "not a number of mu".
    """
    names = quantity.split(", ")
    if _PRODUCT.search(function) and len(names) == 2:
        return _PRODUCT.sub(lambda match: " * ".join(map(_in_brackets, names)), function)
    if _X.search(function):
        return _X.sub(lambda match: quantity if _stands_alone(match) else _in_brackets(quantity), function)
    return f"{function} of {quantity}"


def _in_brackets(quantity: str) -> str:
    return f"({quantity})" if " " in quantity else quantity


def _stands_alone(match: re.Match[str]) -> bool:
    """Return whether no power follows, which would be read as one of the last word."""
    return not match.string.startswith("^", match.end())
