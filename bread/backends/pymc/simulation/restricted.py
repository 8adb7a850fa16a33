"""Transforms that restrict the support of a prior, and what an exact simulator makes of them.

PyMC lets a transform other than the default be put on a variable, such as ``transform=ordered`` on a Normal. The
density is then that of the distribution restricted to the transform's image, and not normalised; the
distribution itself still draws from the whole support. An exact draw is a whole joint draw of the parameters
that happens to lie in the image (rejection), or, for independent components with the same distribution, a draw
that is sorted.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.pymc.model.reading import parents

MINIMUM_ACCEPTANCE = 1e-3  # of joint draws: below it rejection takes too long
PILOT_ATTEMPTS = 4000  # to estimate it,
PILOT_DRAWS = 100  # or fewer, once so many were accepted


@dataclass(frozen=True)
class Restrictions:
    """Which free variables have a transform that may restrict their support.

    Attributes
    ----------
    tested : tuple of str
        Variables whose draws are kept only if the transform can represent them.
    ascending : dict of str to bool
        Variables whose draws are sorted along the last axis: True for ascending order.
    """

    tested: tuple[str, ...]
    ascending: dict[str, bool]


def read_restrictions(model: Any) -> Restrictions:
    """Find the transforms that PyMC would not have chosen by itself."""
    from pymc.distributions.transforms import Chain

    from bread.backends.pymc.internals import default_transform

    tested: list[str] = []
    ascending: dict[str, bool] = {}
    for variable in model.free_RVs:
        transform = model.rvs_to_transforms[variable]
        default = default_transform(variable)
        if transform is None or (type(transform) is type(default) and not isinstance(transform, Chain)):
            continue
        tested.append(variable.name)
        direction = _sorting_direction(transform)
        if direction is not None and _is_exchangeable(variable) and not _has_dependents(model, variable):
            ascending[variable.name] = direction
    return Restrictions(tuple(tested), ascending)


def _sorting_direction(transform: Any) -> bool | None:
    """Return whether the image of a transform is the ascending (True) or descending vectors; None if neither."""
    from pymc.distributions import transforms

    steps = list(getattr(transform, "transform_list", [transform]))
    increasing = (transforms.LogTransform, transforms.LogOddsTransform, transforms.LogExpM1)
    if type(steps[-1]) is not transforms.Ordered or any(type(step) not in increasing for step in steps[:-1]):
        return None
    return bool(getattr(steps[-1], "ascending", True))


def _is_exchangeable(variable: Any) -> bool:
    """Return whether the components along the last axis are independent and identically distributed."""
    from pytensor.graph.basic import Constant
    from pytensor.tensor.random.op import RandomVariable

    node = variable.owner
    if not isinstance(node.op, RandomVariable) or node.op.ndim_supp != 0 or any(node.op.ndims_params):
        return False
    for parameter in node.op.dist_params(node):
        if parameter.type.ndim == 0 or parameter.type.shape[-1] == 1:
            continue
        if not isinstance(parameter, Constant) or np.any(parameter.data != parameter.data[..., :1]):
            return False
    return True


def _has_dependents(model: Any, variable: Any) -> bool:
    return any(variable.name in parents(model, other) for other in model.free_RVs)


def is_represented(value: NDArray[Any], mapped_back: NDArray[Any]) -> bool:
    """Return whether backward(forward(value)) is the value, up to rounding."""
    if not np.all(np.isfinite(mapped_back)):
        return False
    scale = np.max(np.abs(value), initial=1e-300)
    return bool(np.allclose(mapped_back, value, rtol=1e-6, atol=1e-9 * scale))


def sorting_note(name: str, shape: tuple[int, ...]) -> str:
    """Return the note for a variable that is drawn by sorting."""
    length = shape[-1]
    rows = int(np.prod(shape[:-1], dtype=int))
    constant = rows * lgamma(length + 1)
    return (
        f"The transform of {name!r} restricts it to ordered vectors; its components are identically distributed, so "
        f"sorted draws are exact. The log evidence refers to the normalised prior; PyMC's own density leaves out "
        f"log({length}!){f' * {rows}' if rows > 1 else ''} = {constant:.3f} nats (added along every path; a log "
        "evidence that is computed from that density elsewhere lacks it)."
    )


def rejection_note(names: tuple[str, ...], accepted: int, attempts: int) -> str:
    """Return the note for variables that are drawn by rejection."""
    rate = accepted / attempts
    error = np.sqrt((1 - rate) / accepted)
    listed = ", ".join(map(repr, names))
    return (
        f"The transform of {listed} restricts the support; draws outside are rejected with the whole joint draw "
        f"(acceptance {rate:.3g}). The log evidence refers to the normalised prior; PyMC's own density leaves out "
        f"-log(acceptance) = {-np.log(rate):.3f} +- {error:.3f} nats (add it to a log evidence computed from that "
        "density, and to one along a reference path). If its prior depends on other parameters, their marginal "
        "prior changes too."
    )
