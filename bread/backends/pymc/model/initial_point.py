"""The point at which a model is first evaluated: its log density must exist and be finite there."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pytensor.graph.traversal import ancestors
from pytensor.tensor.variable import TensorConstant

from bread.backends.pymc.density.compiling import detach, first_line, interpreted
from bread.backends.pymc.model.reading import read_constant_data, read_initial_point, read_observed
from bread.backends.pymc.model.whole_numbers import overflow, widened
from bread.backends.support.not_finite import describe_not_finite, is_finite
from bread.errors import InvalidArgumentError, UnsupportedModelError

ROUNDING = 1e-6  # PyTensor takes logarithms of numbers of few bits in single precision


def checked_initial_point(model: Any) -> dict[str, NDArray[Any]]:
    """Return the model's initial point.

    Raises
    ------
    InvalidArgumentError
        The log density there is not finite, and neither are data that enter it.
    UnsupportedModelError
        PyMC has no log density for a variable, or the log density there raises or is not finite.
    """
    try:
        point = read_initial_point(model)
    except Exception as error:
        raise UnsupportedModelError(
            f"The initial point of the model cannot be computed: {first_line(error)}."
        ) from error
    variables = [*model.basic_RVs, *model.potentials]
    with interpreted(), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        terms = _log_density_terms(model, variables)
        wide = widened(terms)
        try:
            evaluate_terms = _compiled(model, [*terms, *(wide or ())])
            values = evaluate_terms(point)
        except Exception as error:
            what = f"The log density raises an exception at the model's initial point: {first_line(error)}."
            _blame_data(model, variables, what)
            raise UnsupportedModelError(
                f"{what} model.debug() shows where; correct the model or pass initval=."
            ) from error
        if wide is not None:
            beside: list[float] = []
            with suppress(Exception):  # a point that may be outside the support
                beside = evaluate_terms(_beside(point))
            for found in (values, beside):
                _refuse_overflow(variables, found)
    wrong = [index for index in range(len(variables)) if not np.isfinite(values[index])]
    if wrong:
        named = ", ".join(f"{variables[index].name} = {values[index]}" for index in wrong)
        what = f"The log density is not finite at the model's initial point: {named}."
        _blame_data(model, [variables[index] for index in wrong], what)
        for index in wrong:
            rule = _broken_rule(model, terms[index], point)
            if rule:
                raise UnsupportedModelError(
                    f"{what} Parameters of {variables[index].name!r} break its rule {rule!r} there. Give what they are "
                    "computed from a prior that cannot break it, such as pm.HalfNormal for a scale, or a link such as "
                    "pm.math.exp; correct a constant."
                )
        raise UnsupportedModelError(
            f"{what} For an observed variable look for data outside the support; for a free one "
            "pass initval=. model.debug() shows more."
        )
    return point


def _blame_data(model: Any, variables: Sequence[Any], what: str) -> None:
    """Raise InvalidArgumentError if data, covariates, or arrays that enter these variables, are NaN or infinite."""
    arrays = {f"{name!r}": values for name, values in read_observed(model).items()}
    arrays |= {f"{name!r}": values for name, (_, values) in read_constant_data(model).items()}
    for variable in variables:
        constants = [one.data for one in ancestors([variable]) if isinstance(one, TensorConstant) and one.type.ndim > 0]
        arrays |= {f"an array that enters {variable.name!r}": one for one in constants if not is_finite(one)}
    where = describe_not_finite(arrays, first_index=0)
    if where:
        raise InvalidArgumentError(f"{what} {where} Correct such values, or leave them out.")


def _log_density_terms(model: Any, variables: list[Any]) -> list[Any]:
    try:
        return [term.sum() for term in model.logp(vars=variables, sum=False)]
    except Exception as error:
        names = ", ".join(repr(variable.name) for variable in model.basic_RVs if not _has_log_density(variable))
        raise UnsupportedModelError(
            f"PyMC cannot derive the log density of {names or 'the model'}: {first_line(error)}. "
            "Give it a density (logp=), or write it with distributions that have one."
        ) from error


def _has_log_density(variable: Any) -> bool:
    import pymc as pm

    try:
        pm.logp(variable, variable.type())
    except Exception:
        return False
    return True


def _compiled(
    model: Any, terms: Sequence[Any], compile: Any = None
) -> Callable[[dict[str, NDArray[Any]]], list[float]]:
    """Return the values of terms as a function of a point, without the names of variables; by PyMC's own compiling."""
    from pymc.pytensorf import compile as compile_graph

    graph = detach([*terms])
    function = (compile or compile_graph)(
        [*graph.generators, *model.value_vars], graph.outputs, mode="FAST_COMPILE", on_unused_input="ignore"
    )

    def call(point: dict[str, NDArray[Any]]) -> list[float]:
        values = [np.asarray(point[v.name], dtype=v.type.dtype) for v in model.value_vars]
        return [float(value) for value in function(*(np.random.default_rng(0) for _ in graph.generators), *values)]

    return call


def _beside(point: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return a point near the initial one, where squared distances are not 0, and where what overflowed to NaN is."""
    rng = np.random.default_rng(0)
    return {
        name: np.nan_to_num(value, posinf=0.0, neginf=0.0) + rng.uniform(-0.5, 0.5, size=np.shape(value))
        if np.asarray(value).dtype.kind == "f"
        else value
        for name, value in point.items()
    }


def _refuse_overflow(variables: Sequence[Any], values: Sequence[float]) -> None:
    """Raise UnsupportedModelError if a term differs from the same one in 64 bits, which are the second half."""
    n = len(variables)
    for variable, value, wide in zip(variables, values[:n], values[n:], strict=False):
        if not np.isclose(value, wide, rtol=ROUNDING, atol=ROUNDING, equal_nan=True):
            raise UnsupportedModelError(overflow(variable, variables, value, wide))


def _broken_rule(model: Any, term: Any, point: dict[str, NDArray[Any]]) -> str:
    """Return the rule for parameters that PyMC finds broken, such as "sigma > 0"; "" where it is another matter."""
    import pytensor
    from pymc.logprob.utils import ParameterValueError

    try:
        with interpreted(), np.errstate(all="ignore"):
            _compiled(model, [term], pytensor.function)(point)
    except ParameterValueError as error:
        return str(error).splitlines()[0]
    except Exception:
        return ""
    return ""
