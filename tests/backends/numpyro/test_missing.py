"""What is said where NumPyro is not installed, and of what is no model; needs no NumPyro."""

from __future__ import annotations

import sys

import pytest

import bread
import bread.numpyro
from bread.errors import InvalidArgumentError, MissingDependencyError


def test_a_missing_package_is_named_with_the_line_that_installs_it(monkeypatch):
    for name in ("jax", "numpyro"):
        monkeypatch.setitem(sys.modules, name, None)  # what an import of it then meets
    for name in [name for name in sys.modules if name.startswith("bread.backends.numpyro.") and "wrapper" not in name]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingDependencyError, match=r'NumPyro models need.*"bread-mcmc\[numpyro\]"'):
        bread.check(bread.numpyro.Model(print), progressbar=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None,), "function must be"),
        ((print, [1]), "args must be the tuple"),
        ((print, (), 3), "kwargs must be a dict"),
    ],
)
def test_what_is_no_model_is_refused(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        bread.numpyro.Model(*arguments)
