"""The point at which a model is first evaluated: its log density must exist and be finite there."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pytensor.graph.traversal import ancestors
from pytensor.tensor.variable import TensorConstant

from bread.backends.pymc.density.compiling import detach, first_line, interpreted
from bread.backends.pymc.model.reading import read_constant_data, read_initial_point, read_observed
from bread.backends.support.not_finite import describe_not_finite, is_finite
from bread.errors import InvalidArgumentError, UnsupportedModelError


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
        try:
            values = _evaluate_terms(model, terms, point)
        except Exception as error:
            what = f"The log density raises an exception at the model's initial point: {first_line(error)}."
            _blame_data(model, variables, what)
            raise UnsupportedModelError(
                f"{what} model.debug() shows where; correct the model or pass initval=."
            ) from error
    wrong = [f"{v.name} = {x}" for v, x in zip(variables, values, strict=True) if not np.isfinite(x)]
    if wrong:
        what = f"The log density is not finite at the model's initial point: {', '.join(wrong)}."
        _blame_data(model, [v for v, x in zip(variables, values, strict=True) if not np.isfinite(x)], what)
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


def _evaluate_terms(model: Any, terms: list[Any], point: dict[str, NDArray[Any]]) -> list[float]:
    from pymc.pytensorf import compile

    graph = detach([*terms])
    function = compile(
        [*graph.generators, *model.value_vars], graph.outputs, mode="FAST_COMPILE", on_unused_input="ignore"
    )
    values = [np.asarray(point[v.name], dtype=v.type.dtype) for v in model.value_vars]
    return [float(value) for value in function(*(np.random.default_rng(0) for _ in graph.generators), *values)]
