"""What a PyMC model is, for checkpoints: equal for models that are built alike, different for all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cloudpickle
import numpy as np
import pytest

pytest.importorskip("pymc")
import pymc as pm

from bread.backends.pymc.model.fingerprint import fingerprint
from bread.digests import digest

pytestmark = pytest.mark.pymc

LONG = np.linspace(0.0, 1.0, 2000)  # a text of the graph would shorten it
OTHER = np.where(np.arange(2000) == 1000, 0.25, LONG)


def model(
    sd: float = 2.0, x: Any = LONG, y: Any = LONG, prior: Any = None, link: Callable[[Any], Any] = pm.math.exp,
    initval: float | None = None, potential: float | None = None, dims: str = "row", as_data: bool = False,
) -> Any:  # fmt: skip
    """Return a regression; each argument changes one thing."""
    with pm.Model(coords={dims: np.arange(len(LONG))}) as built:
        slope = (prior or pm.Normal)("slope", 0.0, sd, initval=initval)
        covariate = pm.Data("x", x, dims=dims) if as_data else x
        mean = pm.Deterministic("mean", link(slope * covariate))
        if potential is not None:
            pm.Potential("bound", potential * slope)
        pm.Normal("y", mean, 1.0, observed=y, dims=dims)
    return built


def of(built: Any) -> str:
    return digest(fingerprint(built))


@pytest.mark.parametrize(
    "change",
    [
        {"sd": 2.5}, {"x": OTHER}, {"prior": pm.Cauchy}, {"link": pm.math.sigmoid}, {"initval": 0.5},
        {"potential": 1.0}, {"dims": "unit"},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_what_changes_the_model_shows(change: dict[str, Any]) -> None:
    assert of(model(**change)) != of(model())


def test_models_that_are_built_alike_are_alike_and_data_are_compared_apart() -> None:
    assert of(model()) == of(model())
    assert of(model(y=OTHER)) == of(model())
    assert of(model(x=OTHER, as_data=True)) == of(model(as_data=True))
    assert of(cloudpickle.loads(cloudpickle.dumps(model()))) == of(model())


def custom(scale: float) -> Any:
    def draw(mu: Any, rng: Any = None, size: Any = None) -> Any:
        return rng.normal(mu, scale, size=size)

    def logp(value: Any, mu: Any) -> Any:
        return pm.logp(pm.Normal.dist(mu, scale), value)

    with pm.Model() as built:
        pm.CustomDist("y", pm.Normal("mu"), random=draw, logp=logp, observed=np.ones(3))
    return built


def test_functions_of_the_users_show() -> None:
    assert of(custom(1.0)) == of(custom(1.0))
    assert of(custom(1.0)) != of(custom(2.0))


def test_looking_changes_nothing() -> None:
    """Neither the model nor NumPy's random state."""
    built = model()
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    assert of(built) == of(built)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
