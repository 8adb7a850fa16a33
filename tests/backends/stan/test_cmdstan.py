"""The road of `cmdstanpy`: a CmdStanModel as the model, its sampler as the fit, its draws and CSV files as posterior.

Needs a CmdStan that `cmdstanpy` finds (``$CMDSTAN``); skipped without one.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bread
from bread.backends.stan.native.toolchain import find_toolchain
from bread.errors import InvalidArgumentError, MissingDependencyError
from tests.support.stan_conjugate import HIERARCHICAL, opened

cmdstanpy = pytest.importorskip("cmdstanpy")
pytestmark = [pytest.mark.stan, pytest.mark.slow]
DATA = {"error": [1.0, 1.5, 0.8], "y": [1.5, -0.2, 0.6]}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cmdstan") / "hierarchical.stan"
    path.write_text(HIERARCHICAL)
    return path


@pytest.fixture(scope="module")
def cmdstan_model(program: Path) -> Any:
    try:
        find_toolchain("CmdStan")
    except MissingDependencyError as error:
        pytest.skip(str(error))
    return cmdstanpy.CmdStanModel(stan_file=program)


def test_an_uncompiled_model_needs_no_cmdstan(program: Path) -> None:
    pytest.importorskip("httpstan")

    model = SimpleNamespace(stan_file=str(program), exe_file=None, stanc_options={})  # made with compile=False
    assert opened(model, DATA).info.identity.name == "hierarchical"


def test_its_sampler_fits(cmdstan_model: Any) -> None:
    model = opened(cmdstan_model, DATA)
    assert "cmdstanpy" in model.info.identity.versions
    fit = model.fit(seed=1, cores=1, progressbar=False)
    assert fit.source == "CmdStanModel.sample" and fit.draws["theta"].shape == (4, 1000, 3)
    # The embedded engine runs the same sampler: means agree within 5 standard errors of 400 effective draws.
    own = opened(str(cmdstan_model.stan_file), DATA).fit(seed=2, cores=1, progressbar=False)
    for name, draws in own.draws.items():
        difference = fit.draws[name].mean(axis=(0, 1)) - draws.mean(axis=(0, 1))
        assert (np.abs(difference) < 5 * draws.std(axis=(0, 1)) * np.sqrt(2 / 400)).all()


def test_its_draws_are_read(cmdstan_model: Any) -> None:
    sampled = cmdstan_model.sample(
        data=DATA, chains=2, parallel_chains=1, iter_sampling=50, seed=1, show_progress=False
    )
    model = opened(cmdstan_model, DATA)
    names = list(sampled.draws_pd(vars=["mu", "theta"]).columns)
    by_chain = sampled.draws()  # (draw, chain, column)
    for posterior in (sampled, sampled.runset.csv_files, tuple(map(Path, sampled.runset.csv_files))):
        draws = model.read_posterior(posterior).draws
        assert draws["theta"].shape == (2, 50, 3) and "mu" in names
        column = sampled.column_names.index("theta[2]")
        np.testing.assert_array_equal(draws["theta"][:, :, 1], by_chain[:, :, column].T)


@pytest.mark.parametrize("method", ["pathfinder", "laplace_sample", "variational"])
def test_references_are_fitted_to_its_approximations(cmdstan_model: Any, method: str) -> None:
    options = {"require_converged": False, "iter": 2000} if method == "variational" else {}
    result = getattr(cmdstan_model, method)(data=DATA, seed=1, **options)
    draws = opened(cmdstan_model, DATA).read_posterior(result).draws
    assert draws["theta"].shape == (1, 1000, 3) and np.ptp(draws["theta"]) > 0
    report = bread.check(
        cmdstan_model, data=DATA, path=result, simulations=3, chains=2, n_temperatures=(2, 64), draws=0, random_seed=1,
        cores=1, progressbar=False,
    )  # fmt: skip
    bound = bread.summary(report, kind="bounds")["jeffreys"]
    assert bound.iloc[-1] < bound.iloc[0]


def test_its_optimum_is_refused(cmdstan_model: Any) -> None:
    optimum = cmdstan_model.optimize(data=DATA, seed=1)
    with pytest.raises(InvalidArgumentError, match="CmdStanMLE is one point"):
        bread.check(cmdstan_model, data=DATA, path=optimum, progressbar=False)


def test_its_include_paths_count(cmdstan_model: Any, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "prior.stan").write_text("mu ~ normal(0.3, 1);\n")
    program = tmp_path / "parted.stan"
    program.write_text(HIERARCHICAL.replace("mu ~ normal(0.3, 1);", "#include prior.stan"))
    model = cmdstanpy.CmdStanModel(stan_file=program, stanc_options={"include-paths": [str(parts)]})
    notes = opened(model, DATA).info.identity.notes
    assert any("prior: 1, 11; likelihood: 10" in note for note in notes), notes  # line 1 is that of prior.stan


def test_check_with_its_draws(cmdstan_model: Any) -> None:
    sampled = cmdstan_model.sample(data=DATA, seed=2, show_progress=False)
    report = bread.check(
        cmdstan_model, data=DATA, posterior=sampled, simulations=3, chains=2, n_temperatures=(4, 8), draws=40,
        random_seed=1, cores=1, progressbar=False,
    )  # fmt: skip
    assert float(report["agreement"]["p_value_combined"]) > 1e-3
