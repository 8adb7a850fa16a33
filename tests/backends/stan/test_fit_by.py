"""Who fits the real data: the user's CmdStanModel if it is compiled, else the embedded engine."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bread.errors import InvalidArgumentError
from tests.support.stan_conjugate import NORMAL_MEAN, opened, toolchain

pytestmark = pytest.mark.stan
DATA = {"N": 3, "y": [0.5, -1.0, 0.2]}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.stan"  # the name of a program by its text: it is compiled once for both
    path.write_text(NORMAL_MEAN)
    return path


def test_a_compiled_model_fits_by_its_own_sampler(program: Path) -> None:
    asked: dict[str, Any] = {}

    def sample(**options: Any) -> Any:
        asked.update(options)
        draws = np.arange(20.0)
        return SimpleNamespace(chains=2, stan_variable=lambda name: draws)

    model = opened(
        SimpleNamespace(stan_file=str(program), exe_file=str(program.with_suffix("")), stanc_options={}, sample=sample),
        DATA,
    )
    fit = model.fit(seed=3, cores=1, progressbar=False)
    assert fit.source == "CmdStanModel.sample" and fit.draws["mu"].tolist() == [
        list(range(10)),
        list(range(10, 20)),
    ]
    assert asked["seed"] == 3 and asked["data"]["y"] == DATA["y"]


def test_a_path_or_an_uncompiled_model_without_cmdstan_is_fitted_by_the_embedded_engine(program: Path) -> None:
    assert opened(str(program), DATA).user_model is None
    model = SimpleNamespace(stan_file=str(program), exe_file=None, stanc_options={}, sample=None)
    if toolchain().source != "CmdStan":
        assert opened(model, DATA).user_model is None


def test_draws_of_approximations_are_one_chain(program: Path) -> None:
    model = opened(str(program), DATA)
    draws = np.arange(20.0)

    def variational(name: str, *, mean: bool | None = None) -> Any:
        return draws if mean is False else 9.5  # as CmdStanVB, which returns means unless asked

    for result in (
        SimpleNamespace(stan_variable=lambda name: draws),  # as CmdStanPathfinder and CmdStanLaplace
        SimpleNamespace(stan_variable=variational, variational_sample=draws[:, None]),
    ):
        assert model.read_posterior(result).draws["mu"].tolist() == [draws.tolist()]


def test_an_optimum_is_no_draws(program: Path) -> None:
    point = SimpleNamespace(stan_variable=lambda name: 0.3, optimized_params_np=np.array([0.3]))
    with pytest.raises(InvalidArgumentError, match="one point, not draws"):
        opened(str(program), DATA).read_posterior(point)
