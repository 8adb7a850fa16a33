"""Every argument of every verb with values of the wrong kind: one line that names it, and nothing is computed."""

from __future__ import annotations

import inspect
from functools import cache
from operator import attrgetter
from typing import Any

import matplotlib
import numpy as np
import pytest

import bread
from bread.argument_rules import MOST, is_count, is_number, received, require_call, require_count
from bread.errors import BreadError, InvalidArgumentError
from bread.report import container as report
from tests.models.reference import HMCKernel, NormalMean
from tests.support.fake_results import constrain, fake_result

matplotlib.use("Agg")


class OfManyLines:
    """An object whose text has more than one line."""

    def __repr__(self) -> str:
        return "an odd\nobject\r\nof lines"


class WithoutText:
    """An object that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


WRONG: dict[str, Any] = {
    "array": np.arange(3.0), "no elements": np.array([]), "objects": np.array([None, "a"], dtype=object),
    "names": np.array(["a", "b"]), "text": "nonsense", "NaN": float("nan"), "negative": -1, "infinite": float("inf"),
    "huge": 10**400, "many lines": OfManyLines(), "no text": WithoutText(), "ragged": [[1, 2], [3]],
    "dict": {"a": 1}, "complex": 1j, "class": int, "fraction": 2.5, "bytes": b"x",
}  # fmt: skip
COUNTS = (
    "simulations", "chains", "init_steps", "tune", "draws", "max_temperatures", "pairs", "lag", "max_iterations",
    "blocks", "particles", "runs", "moves", "resample_every", "cores",
)  # fmt: skip
CHOICES = ("simulate_from", "tune_on", "resampling", "only", "schedule")
NUMBERS = ("max_error", "target", "max_seconds", "level", "max_gap")
OTHERS = (
    "hyperparameters", "n_temperatures", "mapping", "executor", "checkpoint", "random_seed", "progressbar",
    "reversible", "with_harmonic", "start", "leave_out",
)  # fmt: skip
FINE = {  # values that are allowed, or refused by what only the model knows
    "target": {"fraction"}, "max_seconds": {"fraction"}, "max_gap": {"fraction"}, "start": {"fraction"},
    "hyperparameters": {"text", "names", "no elements"}, "checkpoint": {"text"}, "random_seed": {"huge"},
    "leave_out": set(WRONG), "mapping": {"dict"},
}  # fmt: skip


def model() -> NormalMean:
    return NormalMean(np.array([0.4, 1.9, 1.1]), prior_mean=0.5, prior_sd=1.5, noise_sd=1.2, kernel=HMCKernel())


@cache
def made() -> Any:
    result = fake_result(temperatures=(4, 8), n_search=2, n_confirm=10, n_forward=2, n_draws=0)
    return report.to_container(result, constrain)


VERBS: dict[str, dict[str, Any]] = {
    "check": {"model": model()}, "compare": {"models": {"a": model(), "b": model()}}, "debug": {"model": model()},
    **{f"lab.{verb}": {"model": model()} for verb in ("unbiased", "path_sampling", "data_annealing")},
    "plan": {"model": model(), "budget": 1000}, "evidence": {}, "bayes_factor": {},
}  # fmt: skip
REPORTS = {"evidence": ("report",), "bayes_factor": ("report_a", "report_b")}


def cases() -> list[tuple[str, str]]:
    found = []
    for verb in VERBS:
        names = inspect.signature(attrgetter("check" if verb == "plan" else verb)(bread)).parameters
        found += [(verb, name) for name in (*COUNTS, *CHOICES, *NUMBERS, *OTHERS) if name in names]
    return [(verb, name) for verb, name in found if verb != "plan" or name != "checkpoint"]


@pytest.mark.parametrize(("verb", "name"), cases())
def test_a_value_of_the_wrong_kind_is_named_in_one_line(
    verb: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"progressbar": False} if verb not in REPORTS else {one: made() for one in REPORTS[verb]}
    for label, value in WRONG.items():
        if label in FINE.get(name, ()):
            continue
        with pytest.raises(BreadError) as caught:
            attrgetter(verb)(bread)(**{**given, **VERBS[verb], name: value})
        text = str(caught.value)
        assert "\n" not in text and name in text and "The check was stopped by" not in text, (label, text)


@pytest.mark.parametrize("name", ["models", "mapping"])
def test_dicts_of_compare(name: str) -> None:
    for label, value in WRONG.items():
        with pytest.raises(InvalidArgumentError) as caught:
            bread.compare(**{**VERBS["compare"], "progressbar": False, name: value})
        assert name in str(caught.value) and "\n" not in str(caught.value), label
    with pytest.raises(InvalidArgumentError, match=r"^mapping\['b'\] must be a function that is called as f\(param"):
        bread.compare(**VERBS["compare"], mapping={"b": lambda one, two: one}, progressbar=False)


FUNCTIONS = {
    "kernel": (lambda x: x, r"^kernel must be a function that is called as f\(x, rng\), got one that takes \(x\)\.$"),
    "log_density": (lambda: 0.0, r"^log_density must be a function that is called as f\(x\), got one that takes \(\)"),
    "simulate": (lambda n: np.zeros((n, 1)), r"^simulate must be a function that is called as f\(n, rng\), got one"),
    "gradient": (3, r"^gradient must be a function that is called as f\(x\), got 3\.$"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_with_other_arguments(name: str) -> None:
    right = {
        "kernel": lambda x, rng: x, "log_density": lambda x: 0.0, "simulate": lambda n, rng: rng.normal(size=(n, 1)),
    }  # fmt: skip
    function, message = FUNCTIONS[name]
    with pytest.raises(InvalidArgumentError, match=message):
        bread.debug(**{**right, name: function}, progressbar=False)


@pytest.mark.pymc
def test_a_callable_kernel_of_pymc_with_other_arguments() -> None:
    import pymc as pm

    with pm.Model() as own:
        pm.Normal("y", pm.Normal("x"), observed=[0.3])
    message = r"^kernel must be a function that is called as f\(model\), got one that takes \(a, b\)\.$"
    with pytest.raises(InvalidArgumentError, match=message):
        bread.check(own, kernel=lambda a, b: pm.NUTS(model=a), progressbar=False, cores=1)


def test_functions_that_may_be_called_otherwise_are_taken() -> None:
    """Controls: defaults, any number of arguments, functions of C without a signature."""
    for function in (lambda x, more=1: x, lambda *values: values, max, np.sin, dict):
        require_call("kernel", function, ("x",))


def test_counts_and_numbers() -> None:
    assert is_count(np.int64(3), 1) and not is_count(np.True_, 0) and not is_count(3.0, 1) and not is_count(True, 0)
    assert is_number(np.float64(0.5)) and not is_number(10**400) and not is_number("1") and not is_number(None)
    require_count("chains", MOST, 1)
    with pytest.raises(InvalidArgumentError, match=rf"^chains must be .* >= 1 and <= {MOST}, got {MOST + 1}"):
        require_count("chains", MOST + 1, 1)


def test_a_value_is_named_on_one_line() -> None:
    assert received(OfManyLines()) == "an object of type OfManyLines"
    assert received(WithoutText()) == "an object of type WithoutText"
    assert received("a\nb") == r"'a\nb'" and len(received(list(range(10_000)))) == 200
    assert str(InvalidArgumentError(f"got {OfManyLines()!r}.")) == "got an odd object of lines."
