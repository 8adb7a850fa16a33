"""Variables of other packages whose density is a placeholder, such as pymc-bart's: the same number everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm

from bread.errors import UnsupportedModelError

FAR = 1e6  # a density that is the same at 0 and so far on either side integrates to nothing finite


def refuse_placeholders(model: Any) -> None:
    """Refuse free variables that only a step method of their own draws, since their density says nothing of them.

    What PyMC itself defines is known, or tested by exact draws: only operations of other packages are evaluated.
    """
    for variable in model.free_RVs:
        if type(variable.owner.op).__module__.partition(".")[0] in ("pymc", "pytensor"):
            continue
        shape, levels = tuple(variable.shape.eval()), set()
        for place in (-FAR, 0.0, FAR):
            density = pm.logp(variable, np.full(shape, place, dtype=variable.dtype))
            levels.add(float(density.sum().eval()))
        if len(levels) == 1 and np.isfinite(levels.pop()):
            raise UnsupportedModelError(
                f"The density of {variable.name!r} does not depend on its value: it is a placeholder, and only a step "
                f"method of its own draws it, which cannot be run in reverse. Check a model without {variable.name!r}."
            )
