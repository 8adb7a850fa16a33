"""Compiled programs where their library is not: on a bare worker they are built again, once, from what they carry."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from numpy.random import SeedSequence

from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.backends.stan.native import recipe
from bread.backends.stan.native.build import build_library, translate
from bread.backends.stan.native.library import StanLibrary
from bread.backends.stan.native.recipe import Recipe
from bread.errors import BreadError
from tests.support.stan_engine_programs import CONJUGATE, toolchain

pytestmark = pytest.mark.stan

DATA = {"N": 2, "y": [0.4, 1.9], "count": [3, 5]}
STATES = np.array([[0.3, -0.2], [1.4, 0.9]])
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def code() -> str:
    return translate(CONJUGATE, toolchain(), filename="test.stan")


@pytest.fixture
def elsewhere(code: str) -> StanLibrary:
    """Return a library as it reaches another machine."""
    return pickle.loads(pickle.dumps(StanLibrary(Path("not") / "here.so", Recipe(code, toolchain().version))))


def test_a_library_that_is_not_here_is_built_from_its_recipe(elsewhere: StanLibrary) -> None:
    here = StanLibrary(build_library(CONJUGATE, toolchain(), filename="test.stan"))
    instance = pickle.loads(pickle.dumps(elsewhere.instance(DATA)))
    for found, wanted in zip(instance.terms(STATES), here.instance(DATA).terms(STATES), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert elsewhere.local_path() == here.path


def test_a_library_that_is_here_is_not_built(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = build_library(CONJUGATE, toolchain(), filename="test.stan")
    monkeypatch.setattr(recipe, "build_code", lambda *arguments: pytest.fail("compiled again"))
    assert StanLibrary(path, Recipe(code, "another")).local_path() == path


def test_another_version_of_stan_is_refused_by_both_names(elsewhere: StanLibrary) -> None:
    assert elsewhere.recipe is not None
    older = replace(elsewhere, recipe=replace(elsewhere.recipe, version="2.1.0"))
    with pytest.raises(
        BreadError, match=rf"Stan 2\.1\.0 translated.* has Stan {toolchain().version}.*Install the same"
    ):
        older.instance(DATA)


def test_without_a_recipe_the_missing_file_is_named() -> None:
    with pytest.raises(BreadError, match=r"here\.so.*Build it again"):
        StanLibrary(Path("not") / "here.so").instance(DATA)


@pytest.mark.slow
def test_an_open_model_answers_alike_on_a_worker_with_an_empty_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain()
    program, data = ROOT / "examples" / "eight_schools.stan", ROOT / "examples" / "eight_schools.json"
    built = open_model(str(program), OpenOptions(data=str(data), observed=("y",))).library.path.parent
    # The caller has a cache of its own: other tests use the user's cache at this moment, and would build it anew.
    cache = tmp_path / "of the caller"
    shutil.copytree(built, cache / built.name)
    monkeypatch.setenv("BREAD_CACHE", str(cache))
    model = open_model(str(program), OpenOptions(data=str(data), observed=("y",)))
    assert model.library.path.parent.parent == cache
    (tmp_path / "model").write_bytes(cloudpickle.dumps(model))
    script = f"""
import pickle
from pathlib import Path
import numpy as np
from numpy.random import SeedSequence
model = pickle.loads(Path({str(tmp_path / "model")!r}).read_bytes())
np.save({str(tmp_path / "states.npy")!r}, model.simulate(3, fixed=None, seed=SeedSequence(1)).states)
"""
    environment = {**os.environ, "BREAD_CACHE": str(tmp_path / "empty"), "PYTHONPATH": str(ROOT)}
    # the library of the caller is out of reach: another machine has another user cache
    out_of_reach = cache.rename(tmp_path / "out of reach")
    subprocess.run([sys.executable, "-c", script], env=environment, cwd=tmp_path, check=True)
    out_of_reach.rename(cache)
    wanted = model.simulate(3, fixed=None, seed=SeedSequence(1)).states
    np.testing.assert_array_equal(np.load(tmp_path / "states.npy"), wanted)
    assert list((tmp_path / "empty").rglob("model.so"))
