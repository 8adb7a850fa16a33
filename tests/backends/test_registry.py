"""The registry: whose model it is, a backend of another package, and options that nobody drops silently."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import bread
from bread.backends import model_in_context, open_model
from bread.backends.base import OpenOptions
from bread.errors import InvalidArgumentError
from tests.models.reference import BetaBinomial, NormalMean

PACKAGE = Path(__file__).parents[1] / "support" / "backend_package"
QUICK = {"simulations": 3, "n_temperatures": 4, "chains": 1, "draws": 0, "tune": 20, "simulate_from": "prior"}
SILENT = {"path": "prior", "cores": 1, "random_seed": 5, "progressbar": False}
SCRIPT = f"""
import json, sys
import arviz, bread
from coin_models import Coins
report = bread.check(Coins((3, 1), (4, 3)), **{QUICK | SILENT!r})
json.dump(str(bread.verdict(report)), sys.stdout)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder into which pip has installed a package with a backend."""
    folder = tmp_path_factory.mktemp("site")
    build = ["--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", "--quiet", *build, "--target", str(folder), str(PACKAGE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the installed package importable for one test."""
    monkeypatch.syspath_prepend(str(site))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "coin_models"]:
        del sys.modules[name]


def test_a_backend_of_an_installed_package_is_used(site: Path) -> None:
    """In a fresh interpreter, with nothing of the test run's own state."""
    root = str(Path(bread.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), root]), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    same = bread.check(BetaBinomial(np.array([3, 1]), np.array([4, 3]), alpha=2.0, beta=3.0), **QUICK, **SILENT)
    assert json.loads(done.stdout) == str(bread.verdict(same))


def test_without_the_package_nobody_reads_its_models() -> None:
    """Negative control of the test above."""
    with pytest.raises(InvalidArgumentError, match="'SimpleNamespace'.*which no backend of bread reads"):
        open_model(SimpleNamespace(heads=(3, 1)), OpenOptions())


@pytest.mark.usefixtures("installed")
def test_options_reach_the_other_backend() -> None:
    from coin_models import Coins

    with pytest.raises(InvalidArgumentError, match="engine= means nothing to coins"):
        open_model(Coins((3,), (4,)), OpenOptions(engine="fast"))


@pytest.mark.usefixtures("installed")
def test_a_backend_that_cannot_be_loaded_is_named_and_troubles_nobody_else() -> None:
    from coin_models import Coins

    assert isinstance(open_model(Coins((3,), (4,)), OpenOptions()), BetaBinomial)  # "broken" is asked before "coin"
    with pytest.raises(InvalidArgumentError, match="'broken' of the package 'coin-models' could not be asked: ModuleN"):
        open_model(object(), OpenOptions())


@pytest.mark.usefixtures("installed")
def test_a_backend_that_opens_no_model_is_named() -> None:
    from coin_models import Odd

    with pytest.raises(TypeError, match=r"'coin' of the package 'coin-models' returned .*'object'.*lacks .*simulate"):
        open_model(Odd(), OpenOptions())


@pytest.mark.parametrize("name", ["kernel", "engine", "data", "observed", "simulator", "likelihood"])
def test_an_open_model_refuses_what_it_cannot_take(name: str) -> None:
    model = NormalMean(np.array([0.3, 1.2]))
    with pytest.raises(InvalidArgumentError, match=rf"^{name}= is for a model that bread opens.*NormalMean.*Leave it"):
        bread.check(model, **{name: 0}, progressbar=False)  # also a value that counts as false
    assert open_model(model, OpenOptions(hyperparameters=("mu",), simulate_from="fitted")) is model


def test_no_model_at_all() -> None:
    with pytest.raises(InvalidArgumentError, match="No model: pass one"):
        model_in_context(None)
    model = object()
    assert model_in_context(model) is model
