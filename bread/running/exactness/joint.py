"""Joint draws for the tests of exact draws where not all can be had, and how many may be missing.

A simulator that throws draws away, or fails at some, leaves draws that are conditioned on having come about:

* their parameters follow another law than the prior. Draws of the parameters alone, which no outcome decides upon,
  follow it;
* given parameters at which outcomes can be drawn at some tries and not at others, the outcomes follow another law than
  the likelihood. Where they can be drawn always or never, they follow it;
* given outcomes that no parameters without outcomes may have brought about, the parameters are exact posterior draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import Discarded, Model, Simulations
from bread.errors import DensityError
from bread.paths.kinds import PriorPath

MOST_TRIES = 5  # times as many draws as are wanted
FIRST_TRIES = 50  # if all of so many fail, more are vain
N_STATES, N_ROWS = 20, 50  # parameters without outcomes, and draws whose outcomes may come from them
NEXT_TO_IMPOSSIBLE = 30.0  # nats of the likelihood below that at the outcomes' own parameters, as for Stan's programs
BY_CHANCE = "outcomes are kept only where they can be represented"
MAY_COME = "outcomes may come from parameters at which none can be drawn"

Values = Mapping[str, NDArray[Any]]


def draw_joint(model: Model, n: int, seed: SeedSequence) -> Simulations:
    """Return ``n`` joint draws, or fewer; where the backend raises at some of them, these are counted as discarded.

    Raises
    ------
    Exception
        What the backend raises, where it does at all of the first draws.
    """
    try:
        return _finite(model, model.simulate(n, fixed=None, seed=seed))
    except Exception as error:  # a simulator may raise anything
        return _one_by_one(model, n, seed, error)


def draw_held(model: Model, held: Sequence[Values], seed: SeedSequence) -> Simulations:
    """Return a joint draw for each set of values that are held, without those at which the backend raises.

    Raises
    ------
    Exception
        What the backend raises, where it does at all of them.
    """
    kept: list[Simulations] = []
    missing, first = Discarded(), None
    for fixed, child in zip(held, _children(seed, len(held)), strict=True):
        try:
            kept.append(_finite(model, model.simulate(1, fixed=fixed, seed=child)))
        except Exception as error:
            first, missing = first or error, missing + Discarded(n_outcomes=1, n_by_chance=1, reason=str(error))
    if not kept:
        assert first is not None
        raise first
    drawn = reduce(Simulations.joined, kept)
    return replace(drawn, discarded=drawn.discarded + missing)


def _one_by_one(model: Model, n: int, seed: SeedSequence, error: Exception) -> Simulations:
    """Draw parameters, then outcomes given them, each by itself; raise ``error`` where that is vain."""
    posterior = model.condition(model.info.data.observed)
    names = tuple(model.info.layout.positions or model.info.layout.parameters)
    kept: list[Simulations] = []
    discarded = Discarded(reason=str(error))
    for index, child in enumerate(_children(seed, max(MOST_TRIES * n, FIRST_TRIES))):
        if len(kept) == n or (index >= FIRST_TRIES and not kept):
            break
        first, second, third = child.spawn(3)
        try:
            state = posterior.draw_base(PriorPath(), [first])
            values = model.constrain(state)
        except Exception:  # of a function of the user's nobody knows what decides
            unknown = np.full(model.info.layout.dim, np.nan)
            discarded += Discarded(n_outcomes=1, states=(unknown,))
            continue
        held = {name: values[name][0] for name in names}
        drawn = _outcomes(model, held, second)
        if drawn is not None:
            kept.append(drawn)
        elif _outcomes(model, held, third) is not None:
            discarded += Discarded(n_outcomes=1, n_by_chance=1)
        else:
            discarded += Discarded(n_outcomes=1, states=(state[0],))
    if not kept:
        raise error
    return replace(reduce(Simulations.joined, kept), discarded=discarded)


def _outcomes(model: Model, held: Values, seed: SeedSequence) -> Simulations | None:
    """Return a joint draw at given parameters; None where it fails, or is not the first that was made."""
    try:
        drawn = _finite(model, model.simulate(1, fixed=held, seed=seed))
    except Exception:
        return None
    return None if drawn.discarded.n_outcomes else drawn


def _finite(model: Model, drawn: Simulations) -> Simulations:
    """Return the draws if all are finite, where the real data are.

    Raises
    ------
    DensityError
        One is not.
    """
    real = model.info.data.observed
    for name, values in (("the parameters", drawn.states), *drawn.data.items()):
        if not _is_finite(values) and _is_finite(real.get(name, values[:0])):
            raise DensityError(f"A joint draw of {name} is not finite.")
    return drawn


def _children(seed: SeedSequence, n: int) -> list[SeedSequence]:
    return SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size).spawn(n)


def _is_finite(values: NDArray[Any]) -> bool:
    return values.dtype.kind != "f" or bool(np.isfinite(values).all())
