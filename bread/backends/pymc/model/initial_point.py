"""The point at which a model is first evaluated: its log density must exist and be finite there."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.pymc.density.compiling import detach, first_line, interpreted
from bread.backends.pymc.model.reading import read_initial_point
from bread.errors import UnsupportedModelError


def checked_initial_point(model: Any) -> dict[str, NDArray[Any]]:
    """Return the model's initial point.

    Raises
    ------
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
            raise UnsupportedModelError(
                f"The log density raises an exception at the model's initial point: {first_line(error)}. "
                "model.debug() shows where; correct the model or pass initval=."
            ) from error
    wrong = [f"{v.name} = {x}" for v, x in zip(variables, values, strict=True) if not np.isfinite(x)]
    if wrong:
        raise UnsupportedModelError(
            f"The log density is not finite at the model's initial point: {', '.join(wrong)}. For an observed variable "
            "look for data outside the support; for a free one pass initval=. model.debug() shows more."
        )
    return point


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
