"""A small model with a label, and the layout of a model whose variables are all free."""

from __future__ import annotations

import numpy as np
import pymc as pm

from bread.backends.pymc.model.layout import StateLayout


def layout_of(model: pm.Model) -> StateLayout:
    point = model.initial_point()
    values = model.value_vars
    return StateLayout(
        tuple(value.name for value in values),
        tuple(np.shape(point[value.name]) for value in values),
        tuple(value.type.dtype for value in values),
    )


def mixed() -> pm.Model:
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.3)
        x = pm.Normal("x", 3.0 * z, 1.0)
        pm.Normal("y", x, 2.0, observed=1.0)
    return model
