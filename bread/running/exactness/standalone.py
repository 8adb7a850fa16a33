"""The tests of exact draws for a verb without a path of temperatures: simulator, density and kernel, one by another.

What `direct_tests` spreads over workers, within a share of a check's budget, runs here at once with fixed numbers.
"""

from __future__ import annotations

import numpy as np

from bread.backends.base import Kernel, Model, Simulations
from bread.paths.kinds import PriorPath
from bread.running.exactness.phase import kernel_result
from bread.running.exactness.score_tests import score_tests
from bread.running.exactness.tasks import KernelTask
from bread.running.state.exactness_results import DirectTest, DirectTests
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
    found = score_tests(model.info, root, n_draws // BATCH, BATCH, lambda tasks: [task.run(model) for task in tasks])
    if kernel is None:
        return DirectTests(tuple(found.tests), found.left_out)
    if found.joint is None or found.inexact:
        return DirectTests(tuple(found.tests), {**found.left_out, "kernel at beta = 1": found.inexact})
    try:
        return DirectTests((*found.tests, _kernel(model, kernel, found.joint, root)), found.left_out)
    except Exception as error:  # a kernel may raise anything
        reason = f"{type(error).__name__}: {error}"
        return DirectTests(tuple(found.tests), {**found.left_out, "kernel at beta = 1": reason})


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
