"""Draws that a user hands over for a Stan program: read before anything is compiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bread
from bread.backends.stan.describing import lengths
from bread.errors import InvalidArgumentError
from tests.support.stan_conjugate import toolchain

pytestmark = pytest.mark.stan

PROGRAM = """
data { int<lower=1> N; int K; array[N] real y; }
parameters {
  real mu; real<lower=0> sigma; vector[K + 1] b; matrix[K, 2 * K] w; array[N] simplex[size(y)] s; cov_matrix[K] S;
}
model {
  mu ~ normal(0, 1); sigma ~ normal(0, 1); b ~ normal(0, 1); to_vector(w) ~ normal(0, 1);
  S ~ wishart(5, identity_matrix(K)); for (n in 1:N) s[n] ~ dirichlet(rep_vector(1, N)); y ~ normal(mu + sum(b), sigma);
}
"""
DATA = {"N": 3, "K": 2, "y": [0.1, 0.2, 0.3]}
CHAINS, DRAWS = 2, 20
Draws = dict[str, np.ndarray]
SHAPES = {"mu": (), "sigma": (), "b": (3,), "w": (2, 4), "s": (3, 3), "S": (2, 2)}


class CompiledError(Exception):
    """Something was compiled."""


@pytest.fixture
def refuses_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(*_: Any, **__: Any) -> None:
        raise CompiledError

    toolchain()
    monkeypatch.setattr("bread.backends.stan.open.StanLibrary.of", compiled)


def draws() -> Draws:
    rng = np.random.default_rng(0)
    return {name: rng.random((CHAINS, DRAWS, *shape)) for name, shape in SHAPES.items()}


WRONG: dict[str, tuple[Callable[[Draws], Any], str]] = {
    "no parameter": (lambda d: {"m": d["mu"]}, "no variable of the model.*mu, sigma, b, w, s, S;.*'m'"),
    "a sum for a length": (lambda d: d | {"b": d["b"][..., :2]}, r"'b' of shape \(2, 20, 2\).*\(chain, draw, 3\)"),
    "a matrix transposed": (lambda d: d | {"w": np.swapaxes(d["w"], 2, 3)}, r"\(chain, draw, 2, 4\)"),
    "a length that Stan counts": (lambda d: d | {"s": d["s"][:, :, :2]}, r"'s' of.*\(chain, draw, 3, any\)"),
    "a square matrix": (lambda d: d | {"S": d["S"][..., 0]}, r"'S' of shape.*\(chain, draw, 2, 2\)"),
    "NaN": (lambda d: d | {"mu": d["mu"] * np.nan}, "'mu' that are no finite numbers, such as nan in chain 0, draw 0"),
    "other lengths": (lambda d: d | {"mu": [[1.0, 2.0], [3.0]]}, "'mu' that make no array"),
    "draws before chains": (lambda d: {k: np.swapaxes(v, 0, 1) for k, v in d.items()}, "first axis counts chains"),
    "a file of none": (lambda d: Path(__file__), "numbers in row .* below 1 names: no table of draws"),
    "a list of dicts": (lambda d: [d], "must be an InferenceData.*list"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.usefixtures("refuses_to_compile")
def test_wrong_draws_are_refused_before_anything_is_compiled(name: str) -> None:
    change, message = WRONG[name]
    with pytest.raises(InvalidArgumentError, match=message) as refused:
        bread.check(PROGRAM, data=DATA, posterior=change(draws()), progressbar=False, cores=1)
    assert "\n" not in str(refused.value)


@pytest.mark.usefixtures("refuses_to_compile")
def test_right_draws_are_not() -> None:
    with pytest.raises(CompiledError):
        bread.check(PROGRAM, data=DATA, posterior=draws(), progressbar=False, cores=1)


def test_lengths_are_told_where_no_function_is_called() -> None:
    data = {"N": 4, "K": np.int64(2), "x": [1, 2], "r": 1.5, "z": [[1], [2, 3]]}
    texts = [
        "N",
        "K + 1",
        "N - 1",
        "2 * (K + N)",
        "7",
        "size(x)",
        "x",
        "r",
        "M",
        "x[1]",
        "N / 2",
        "N % 2",
        "z",
        "-K",
        "",
    ]
    assert lengths(texts, data) == (4, 3, 3, 12, 7, *[None] * 10)
