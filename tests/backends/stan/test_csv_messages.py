"""What `cmdstanpy` says while it reads CSV files: once, with the name of the file at fault. Needs no CmdStan."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bread.backends.stan import fitting

cmdstanpy = pytest.importorskip("cmdstanpy")
CONVERGE = "Some chains may have failed to converge.\n\tChain 2 had 7 divergent transitions (0.7%)"
DRAWS = np.random.default_rng(0).normal(size=40)


def reads(monkeypatch: pytest.MonkeyPatch, *messages: str) -> None:
    """Let cmdstanpy say these things of two chains of 20 draws."""

    def from_csv(path: list[str]) -> SimpleNamespace:
        for message in messages:
            logging.getLogger("cmdstanpy").warning(message)
        return SimpleNamespace(chains=2, stan_variable=lambda name: DRAWS)

    monkeypatch.setattr(cmdstanpy, "from_csv", from_csv)


def read() -> np.ndarray:
    return fitting.read_draws([Path("a-1.csv"), "a-2.csv"], {"mu": ()}, {"mu": ()}).draws["mu"]


def test_a_repeated_warning_is_said_once_with_its_file(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reads(monkeypatch, CONVERGE, CONVERGE, "The header is odd.", CONVERGE)
    with pytest.warns(UserWarning) as caught:
        np.testing.assert_array_equal(read(), DRAWS.reshape(2, 20))
    first, second = (str(one.message) for one in caught)
    assert "failed to converge. Chain 2 ('a-2.csv') had 7 divergent transitions" in first and "a-1" not in first
    assert second.endswith("posterior= ('a-1.csv', 'a-2.csv'): The header is odd.")
    assert not caplog.records  # nothing is printed beside the warning


def test_nothing_is_said_where_nothing_is_wrong_and_the_logger_is_left_as_it_was(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reads(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read()
    logging.getLogger("cmdstanpy").warning("afterwards")
    assert [record.message for record in caplog.records] == ["afterwards"]


HEADER = """# stan_version_major = 2
# stan_version_minor = 35
# stan_version_patch = 0
# model = handmade_model
# method = sample (Default)
#   sample
#     num_samples = 20
#     num_warmup = 1000 (Default)
#     save_warmup = false (Default)
#     thin = 1 (Default)
#     adapt
#       engaged = true (Default)
#     algorithm = hmc (Default)
#       hmc
#         engine = nuts (Default)
#           nuts
#             max_depth = 10 (Default)
#         metric = diag_e (Default)
lp__,accept_stat__,stepsize__,treedepth__,n_leapfrog__,divergent__,energy__,mu,theta.1,theta.2
# Adaptation terminated
# Step size = 0.5
# Diagonal elements of inverse mass matrix:
# 1, 1, 1
"""
TIMES = """#
#  Elapsed Time: 0.1 seconds (Warm-up)
#                0.1 seconds (Sampling)
#                0.2 seconds (Total)
#
"""


@pytest.mark.parametrize("n_divergent", [0, 5])
def test_files_as_cmdstan_writes_them(n_divergent: int, tmp_path: Path) -> None:
    """Read by cmdstanpy itself; with divergent transitions in the second file it says so of that file."""
    draws = np.random.default_rng(1).normal(size=(2, 20, 3)).round(6)
    files = [tmp_path / f"chain-{chain}.csv" for chain in (1, 2)]
    for chain, file in enumerate(files):
        rows = [
            f"-1,0.9,0.5,3,7,{int(chain == 1 and row >= 20 - n_divergent)},1,{','.join(map(str, values))}\n"
            for row, values in enumerate(draws[chain])
        ]
        file.write_text(HEADER + "".join(rows) + TIMES)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fitting.read_draws(files, {"mu": (), "theta": (2,)}, {"mu": (), "theta": ("k",)}).draws
    np.testing.assert_array_equal(found["mu"], draws[..., 0])
    np.testing.assert_array_equal(found["theta"], draws[..., 1:])
    said = [str(one.message) for one in caught]
    assert len(said) == (n_divergent > 0)
    assert all(f"Chain 2 ({str(files[1])!r}) had" in text and str(files[0]) not in text for text in said)
