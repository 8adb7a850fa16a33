"""Models of Bambi, which builds PyMC models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pymc")
bambi = pytest.importorskip("bambi")
pytestmark = [
    pytest.mark.pymc,
    pytest.mark.filterwarnings("ignore:.*str. dtypes"),
]  # Bambi asks pandas for 'object' columns

import bread  # noqa: E402
from bread.backends import open_model  # noqa: E402
from bread.backends.base import OpenOptions  # noqa: E402
from bread.paths.kinds import PriorPath  # noqa: E402


def regression(priors: dict[str, Any] | None = None) -> Any:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=15), "group": np.repeat(["a", "b", "c"], 5)})
    frame["y"] = 1.0 + 0.5 * frame["x"] + 0.3 * rng.normal(size=15)
    return bambi.Model("y ~ x + (1 | group)", frame, priors=priors)


@pytest.mark.parametrize("is_built", [False, True])
def test_a_model_is_read_before_or_after_it_was_built(is_built: bool) -> None:
    model = regression()
    if is_built:
        model.build()
    opened = open_model(model, OpenOptions())
    built = open_model(model.backend.model, OpenOptions())
    assert opened.info.data.observed["y"].tolist() == model.data["y"].tolist()
    assert [value.name for value in model.backend.model.free_RVs] == [
        "sigma",
        "Intercept",
        "x",
        "1|group_sigma",
        "1|group_offset",
    ]
    states = built.simulate(1, fixed=None, seed=np.random.SeedSequence(1)).states
    data = dict(built.info.data.observed)
    assert opened.condition(data).log_density(PriorPath(), states) == built.condition(data).log_density(
        PriorPath(), states
    )


def test_a_prior_that_cannot_be_drawn_from_is_refused_by_its_name() -> None:
    flat = regression({"Intercept": bambi.Prior("Flat")})
    with pytest.raises(bread.BreadError, match="'Intercept'"):
        open_model(flat, OpenOptions())


def test_check_answers() -> None:
    report = bread.check(
        regression(),
        simulate_from="prior",
        simulations=2,
        n_temperatures=[4],
        cores=1,
        random_seed=1,
        progressbar=False,
    )
    assert bread.verdict(report).status == "inconclusive"
    assert report.attrs["simulate_from"] == "prior"
