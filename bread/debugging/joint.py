"""Parameters and data together, moved in turn: the kernel given the data, then new data given the parameters.

Both leave the joint law invariant if simulator, density and kernel fit together (Geweke 2004, "Getting it right: joint
distribution tests of posterior simulators"; Grosse, Ghahramani & Adams 2015, appendix B). Chains start at exact joint
draws, so that there is no burn-in, and draws before and after have one law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Model
from bread.debugging.model_subject import ModelSubject
from bread.debugging.subject import Draws

N_OUTCOMES = 10  # elements of the data that are compared, beside the parameters
N_TURNS = 10  # of kernel and data, from each joint draw


class JointChains(NamedTuple):
    """Joint draws before and after they were moved.

    Attributes
    ----------
    names : tuple of str, length c
        Coordinates of the state, then outcomes.
    before, after : ndarray, shape (n, c)
        One law, if nothing is broken.
    n_evaluations : int
    """

    names: tuple[str, ...]
    before: FloatArray
    after: FloatArray
    n_evaluations: int


def run_joint_chains(subject: ModelSubject, seeds: Sequence[SeedSequence]) -> JointChains:
    """Move parameters and data in turn, from one exact joint draw a seed.

    Raises
    ------
    BreadError
        The backend cannot draw data given all parameters, or a kernel fails.
    """
    model = subject.model
    drawn = subject.draw(seeds)
    outcomes = [
        f"{name}[{index}]"
        for name, values in model.info.data.observed.items()
        for index in range(np.size(values))
    ][:N_OUTCOMES]  # fmt: skip
    before = _joined(drawn.states, drawn.data)
    after = np.empty_like(before)
    spent = 0
    for row, seed in enumerate(seeds):
        state = drawn.states[row : row + 1]
        data: Mapping[str, NDArray[Any]] = {name: values[row : row + 1] for name, values in drawn.data.items()}
        for turn in range(N_TURNS):
            kernel_seed, data_seed = (
                SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 1, turn, part)) for part in range(2)
            )
            moved = subject.evolve(Draws(state, data), 0, [1], kernel_seed)
            state, spent = moved.states[-1:], spent + moved.n_gradients + moved.n_evaluations
            data = data_given(model, state, data_seed)
        after[row] = _joined(state, data)[0]
    return JointChains((*subject.coordinates, *outcomes), before, after, spent)


def data_given(model: Model, state: FloatArray, seed: SeedSequence) -> Mapping[str, NDArray[Any]]:
    """Draw data given all parameters, a state of shape (1, dim)."""
    values = model.constrain(state)
    fixed = {name: values[name][0] for name in model.info.layout.positions}
    return model.simulate(1, fixed=fixed, seed=seed).data


def _joined(states: FloatArray, data: Mapping[str, NDArray[Any]]) -> FloatArray:
    outcomes = [np.asarray(values, dtype=np.float64).reshape(len(states), -1) for values in data.values()]
    return np.concatenate([states, np.concatenate(outcomes, axis=1)[:, :N_OUTCOMES]], axis=1)
