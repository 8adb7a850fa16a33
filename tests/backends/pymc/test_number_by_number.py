"""Interpreted functions: what PyTensor would run number by number gives the same numbers from NumPy."""

import cProfile

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import Mode

from bread.backends.pymc.density.compiling import interpret_function, interpreted

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


def calls(function):
    profile = cProfile.Profile()
    profile.runcall(function)
    return sum(entry.callcount for entry in profile.getstats())
