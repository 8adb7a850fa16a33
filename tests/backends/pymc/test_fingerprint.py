"""What a PyMC model is, for checkpoints: equal for models that are built alike, different for all others."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import cloudpickle
import numpy as np
import pytest

pytest.importorskip("pymc")
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.compile.ops import wrap_py
from pytensor.graph.op import Op

from bread.backends.pymc.model.fingerprint import fingerprint
from bread.digests import Digests, digest

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


SHIFT = [0.0]


def shifted(value: Any) -> Any:
    return value + SHIFT[0]


class Loud(pm.distributions.transforms.LogTransform):  # type: ignore[misc]
    name, power = "loud", 1.0


class BlackBox(Op):  # type: ignore[misc]
    """As in PyMC's example of a likelihood that is no graph: it has no ``__props__``."""

    itypes, otypes = (pt.dvector,), (pt.dscalar,)

    def __init__(self, log_likelihood: Callable[..., Any]) -> None:
        self.log_likelihood = log_likelihood

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = np.array(self.log_likelihood(*inputs))


def of_law(**functions: Any) -> str:
    with pm.Model() as built:
        pm.CustomDist("y", pm.Normal("mu"), observed=np.ones(3), **functions)
    return of(built)


def of_operation(operation: Any) -> str:
    with pm.Model() as built:
        pm.Potential("p", operation(pt.stack([pm.Normal("mu"), 0.0])).sum())
    return of(built)


def of_transform(transform: Any) -> str:
    with pm.Model() as built:
        pm.HalfNormal("s", transform=transform)
    return of(built)


def drawn(mu: Any, scale: float = 1.0, rng: Any = None, size: Any = None) -> Any:
    return rng.normal(mu, scale, size=size)


def wrapped(n: float) -> Any:
    return wrap_py(itypes=[pt.dvector], otypes=[pt.dvector])(lambda x: x + n)


def through(power: float) -> Any:
    transform = Loud()
    transform.power = power
    return transform


ALIKE_BUT_FOR_CODE: dict[str, Callable[[float], str]] = {
    "log density alone": lambda n: of_law(random=drawn, logp=lambda value, mu: -((value - mu) ** 2) * n),
    "partial": lambda n: of_law(random=partial(drawn, scale=n), logp=lambda value, mu: -((value - mu) ** 2)),
    "symbolic": lambda n: of_law(dist=lambda mu, size: pm.Normal.dist(mu, n, size=size)),
    "operation without properties": lambda n: of_operation(BlackBox(lambda theta: theta.sum() * n)),
    "wrapped function": lambda n: of_operation(wrapped(n)),
    "bounds of a transform": lambda n: of_transform(pm.distributions.transforms.Interval(0.0, n)),
    "bounds by a function": lambda n: of_transform(pm.distributions.transforms.Interval(bounds_fn=lambda *_: (0.0, n))),
    "state of a transform": lambda n: of_transform(through(n)),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("case", ALIKE_BUT_FOR_CODE)
def test_code_in_a_model_shows(case: str) -> None:
    build = ALIKE_BUT_FOR_CODE[case]
    assert build(2.0) == build(2.0)
    assert build(2.0) != build(3.0)


def test_a_global_of_a_function_in_a_model_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    def build() -> str:
        return of_law(random=drawn, logp=lambda value, mu: -(shifted(value - mu) ** 2))

    before = build()
    assert build() == before
    monkeypatch.setattr(sys.modules[__name__], "SHIFT", [1.0])
    assert build() != before


def test_a_model_that_code_refers_to_counts_with_its_data() -> None:
    def using(built: Any) -> str:
        found = Digests()
        digested = found.of(lambda: built)
        assert not found.unknown
        return digested

    assert using(model()) == using(model()) != using(model(sd=2.5))
    assert using(model(y=OTHER)) != using(model()) and using(model(x=OTHER, as_data=True)) != using(model(as_data=True))
    compiled = Digests()
    compiled.of([pytensor.function([], pt.as_tensor(1.0))])
    assert list(compiled.unknown)  # it is no refusal, but said


def test_looking_changes_nothing() -> None:
    """Neither the model nor NumPy's random state."""
    built = model()
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    assert of(built) == of(built)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
