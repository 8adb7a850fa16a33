"""Parameters that draws lack, computed from what they hold that depends on them: z from ``theta = mu + tau * z``."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import Fit
from bread.backends.stan.native.library import StanInstance
from bread.backends.stan.native.variables import Group
from bread.backends.support.affine import EXACT, Array, note_on, precision_of, solve
from bread.errors import DensityError


def derive(instance: StanInstance, fit: Fit, unbounded: Collection[str]) -> Fit:
    """Return draws with those missing parameters that something else determines, and a note of each.

    A transformed parameter or generated quantity does where it is an affine function of the parameter given the others
    that can be inverted (`bread.backends.support.affine`), and of no other that is missing.

    Parameters
    ----------
    instance : StanInstance
        Of the user's own program, with its generated quantities.
    fit : Fit
    unbounded : collection of str
        Parameters that may have any value: others cannot be tried far off.
    """
    groups: dict[str, Group] = {name: group for group in ("transformed", "generated") for name in instance.names(group)}
    for name, one in itertools.product(groups, fit.missing):
        is_tried = name in fit.draws and one in unbounded
        values = _derived(instance, fit, groups[name], name, one) if is_tried else None
        if values is not None:
            missing, notes = tuple(other for other in fit.missing if other != one), (*fit.notes, note_on(one, name))
            more = replace(fit, draws={**fit.draws, one: values}, missing=missing, notes=notes)
            return derive(instance, more, unbounded)
    return fit


def _derived(instance: StanInstance, fit: Fit, group: Group, name: str, wanted: str) -> NDArray[np.float64] | None:
    """Return draws of the parameter ``wanted``; None where ``name`` does not determine it."""
    given, shape = fit.draws[name], instance.shape(wanted)
    target = given.reshape(len(given) * given.shape[1], -1).astype(np.float64)
    flat = fit.flat_draws()
    known = {one: flat[one] for one in instance.names("parameters") if one in flat}
    other = [one for one in fit.missing if one != wanted]
    rng = np.random.default_rng(0)

    def computed(values: Array, fillers: dict[str, NDArray[np.float64]]) -> Array:
        all_values = {**known, **fillers, wanted: values.reshape(len(values), *shape)}
        found = instance.constrain(instance.unconstrain(all_values), group)[name]
        return found.reshape(len(values), -1)

    def any_values() -> dict[str, NDArray[np.float64]]:
        values = instance.constrain(rng.normal(size=(len(target), instance.dim)))
        return {one: values[one] for one in other}

    size = int(np.prod(shape, dtype=int))
    if not size or not target.size:
        return None
    try:
        fillers, others = any_values(), any_values()
        values = solve(lambda tried: computed(tried, fillers), target, size, precision_of((given, *known.values())))
        if values is None:
            return None
        again = computed(values, others)
    except DensityError:  # at values far off, or with others that are missing, the program rejects
        return None
    if not np.allclose(again, target, rtol=EXACT, atol=EXACT * target.std()):
        return None
    return values.reshape(*given.shape[:2], *shape)
