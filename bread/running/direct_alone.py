"""The tests of exact draws for a verb without a path of temperatures: simulator, density and kernel, one by another.

What `direct_tests` spreads over workers, within a share of a check's budget, runs here at once with fixed numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bread.backends.base import Kernel, Model, Simulations
from bread.paths.kinds import PriorPath
from bread.running.direct_results import DirectTest, DirectTests
from bread.running.direct_support import Scores
from bread.running.direct_tasks import JointTask, KernelTask
from bread.running.direct_tests import kernel_result
from bread.running.tasks import Task
from bread.seeds import Purpose, chain_seeds

DRAWS, BATCH = 500, 50
STEPS = 3  # of the kernel, from each draw
MOST_NUMBERS = 1_000_000  # outcomes of all draws together


def tests_alone(model: Model, kernel: Kernel | None, root: int) -> DirectTests:
    """Test the model's joint draws against its density, and a kernel at inverse temperature 1, if there is one.

    Parameters
    ----------
    model : Model
        With a prior path.
    kernel : Kernel, optional
        Frozen, adapted to no data that these draws are of.
    root : int
        Root entropy.

    Returns
    -------
    DirectTests
        What cannot be tested is left out with the reason.
    """
    size = max(1, sum(np.size(values) for values in model.info.data.observed.values()))
    n_draws = min(DRAWS, max(MOST_NUMBERS // size, 2 * BATCH))
    tests: list[DirectTest] = []
    left_out: dict[str, str] = {}
    try:
        joint, found, left_out = _scores(model, n_draws - n_draws % BATCH, root)
        tests += found
    except Exception as error:  # a simulator or density may raise anything
        reason = f"{type(error).__name__}: {error}"
        return DirectTests((), {"score": reason, "kernel": reason})
    if kernel is None:
        return DirectTests(tuple(tests), left_out)
    try:
        tests.append(_kernel(model, kernel, joint, root))
    except Exception as error:
        left_out = {**left_out, "kernel at beta = 1": f"{type(error).__name__}: {error}"}
    return DirectTests(tuple(tests), left_out)


def _scores(model: Model, n_draws: int, root: int) -> tuple[Simulations, list[DirectTest], dict[str, str]]:
    def run(tasks: Sequence[Task]) -> list[Any]:
        return [task.run(model) for task in tasks]

    parts = run([JointTask(batch, BATCH, (0.0, 1.0), root) for batch in range(n_draws // BATCH)])
    joint: Simulations = parts[0].simulations
    for part in parts[1:]:
        joint = joint.joined(part.simulations)
    scores = Scores(model.info, joint, run)
    return joint, scores.of_parts(parts, is_split=True), scores.left_out


def _kernel(model: Model, kernel: Kernel, joint: Simulations, root: int) -> DirectTest:
    after = []
    for low in range(0, len(joint), BATCH):
        rows = range(low, min(low + BATCH, len(joint)))
        part = slice(rows.start, rows.stop)
        seeds = chain_seeds(root, Purpose.DIRECT_MOVE, 1, 0, rows)
        data = {name: values[part] for name, values in joint.data.items()}
        task = KernelTask(data, PriorPath(), kernel, 1.0, STEPS, seeds, joint.states[part])
        after.append(task.run(model)[1].states)
    return kernel_result(1.0, joint.states, np.concatenate(after), model.info.layout.coordinates, STEPS)
