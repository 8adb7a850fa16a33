"""What a check on a cluster sends: `python benchmarks/traffic.py`.

Calls, bytes each way, and CPU time of caller and workers, by an executor that runs every call at once in this process;
and how many calls a second the caller can manage, by workers that do nothing.
"""

from __future__ import annotations

import pickle
import time
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from measuring import NAMES, build_model, check, machine, median, print_table

from bread.jobs.remote import RemoteExecutor, Result
from bread.jobs.task import AnnealTask

N_TEMPERATURES = 64
N_CALLS = 20_000


class Call(NamedTuple):
    """What one call took; ``n_chains`` is 0 where it annealed none."""

    n_chains: int
    sent: int
    returned: int
    seconds: float


class Counting:
    """Runs each call when it is submitted, and keeps what it took."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.model_bytes = 0

    def submit(self, function: Any, *arguments: Any) -> Future[Any]:
        """Run the call; return its future, which is done."""
        model = arguments[2]
        if model is not None:
            self.model_bytes = len(model)
        began = time.process_time()
        packed = function(*arguments)
        seconds = time.process_time() - began
        sent = sum(len(part) for part in arguments if part is not None and part is not model)
        task = pickle.loads(arguments[-1])
        n_chains = task.n_chains if isinstance(task, AnnealTask) else 0
        self.calls.append(Call(n_chains, sent, len(packed), seconds))
        return done(packed)


class Idle:
    """Answers each call with the same result."""

    def __init__(self) -> None:
        self._packed = pickle.dumps(Result(0.0))

    def submit(self, function: Any, *arguments: Any) -> Future[Any]:
        """Return the result."""
        return done(self._packed)


@dataclass(frozen=True)
class SmallTask:
    """A task of the size of one that anneals."""

    numbers: Any
    n_chains: int = 16

    def run(self, model: Any) -> float:
        """Return a number."""
        return 0.0


def done(value: Any) -> Future[Any]:
    """Return a future that has this result."""
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def run() -> None:
    """Measure, and print."""
    rows = []
    for name in NAMES:
        counting, began = Counting(), time.process_time()
        check(
            build_model(name), executor=counting, simulate_from="prior", n_temperatures=N_TEMPERATURES, simulations=20
        )
        busy = time.process_time() - began
        working = sum(call.seconds for call in counting.calls)
        annealing = [call for call in counting.calls if call.n_chains]
        chains = sum(call.n_chains for call in annealing)
        rows.append(
            (name, len(counting.calls), counting.model_bytes / 1e6, working, busy - working, chains,
             chains / len(annealing), 1e3 * sum(call.seconds for call in annealing) / chains,
             median([call.sent for call in annealing]) / 1e3, median([call.returned for call in annealing]) / 1e3)
        )  # fmt: skip
    print_table(
        f"Traffic of one check, simulated from the prior, T = {N_TEMPERATURES}",
        ("model", "calls", "model, MB", "workers, CPU s", "caller, CPU s", "chains", "chains a call", "CPU ms a chain",
         "kB sent a call", "kB returned"),
        rows,
        "The last five columns are of calls that anneal. The model travels once to each worker. The caller's seconds "
        "include opening and compiling it.",
    )  # fmt: skip
    tasks = [SmallTask(np.zeros(500)) for _ in range(N_CALLS)]
    began = time.process_time()
    n_done = sum(1 for _ in RemoteExecutor(build_model("eight schools"), Idle()).run(tasks))
    print(f"The caller manages {n_done / (time.process_time() - began):.0f} calls a second of workers that do nothing.")


if __name__ == "__main__":
    print(machine())
    run()
