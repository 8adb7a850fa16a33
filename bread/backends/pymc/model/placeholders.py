"""Variables of other packages whose density is a placeholder, such as pymc-bart's: the same number everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from pytensor.tensor.random.op import RandomVariable

from bread.errors import UnsupportedModelError

FAR = 1e6  # a density that is the same at 0 and so far on either side integrates to nothing finite


def refuse_placeholders(model: Any) -> None:
    """Refuse free variables that only a step method of their own draws, since their density says nothing of them.

    What PyMC itself defines, custom distributions too, is known or tested by exact draws: only operations of other
    packages are evaluated.
    """
    for variable in model.free_RVs:
        op = variable.owner.op
        packages = [kind.__module__.partition(".")[0] for kind in type(op).__mro__]
        if not isinstance(op, RandomVariable) or "pymc" in packages or packages[0] == "pytensor":
            continue
        density = model.compile_fn(
            model.logp(vars=[variable], jacobian=False), inputs=model.value_vars, on_unused_input="ignore"
        )
        point, name = model.initial_point(0), model.rvs_to_values[variable].name
        levels = {float(density(point | {name: np.full_like(point[name], place)})) for place in (-FAR, 0.0, FAR)}
        if len(levels) == 1 and np.isfinite(levels.pop()):
            raise UnsupportedModelError(
                f"The density of {variable.name!r} does not depend on its value: it is a placeholder, and only a step "
                f"method of its own draws it, which cannot be run in reverse. Check a model without {variable.name!r}."
            )
