"""A model with other values of its observed variables, from which PyMC builds its log density."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def with_values(model: Any, values: Mapping[Any, Any]) -> Any:
    """Return a view of ``model`` whose observed variables have other values: constants, or variables to be given later.

    Parameters
    ----------
    model : pymc.Model
        Read only. Nothing may be added to the view.
    values : dict of Variable to Variable
        The value of each observed variable.
    """
    view = object.__new__(type(model))
    vars(view).update({key: value for key, value in vars(model).items() if key != "_cache"})
    view.rvs_to_values = {**model.rvs_to_values, **values}
    view.values_to_rvs = {value: variable for variable, value in view.rvs_to_values.items()}
    return view
