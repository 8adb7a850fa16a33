"""What a worker's PyTensor has compiled, asked there; and a cluster's machine: two workers with one folder."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

MEETING_SECONDS = 60.0


class Loaded(NamedTuple):
    """Of a worker that has loaded a model: who it is, how many modules it compiled, its folder, log ratios."""

    process: int
    n_compiled: int
    folder: str
    log_ratio: bytes


def log_ratios(model: Any) -> bytes:
    """Return the bits of log ratios at three states."""
    import numpy as np

    from bread.paths.kinds import PriorPath

    states = np.arange(3.0)[:, None] + np.linspace(-1, 1, model.info.layout.dim)
    return bytes(model.condition(model.info.data.observed).log_ratio(PriorPath(), states).tobytes())


@dataclass(frozen=True)
class Look:
    """A task that waits until two workers are at it, and uses the model."""

    meeting: str
    n_chains: int = 1

    def run(self, model: Any) -> Loaded:
        """Return what this worker has compiled until now."""
        Path(self.meeting, str(os.getpid())).touch()
        end = time.monotonic() + MEETING_SECONDS
        while len(list(Path(self.meeting).iterdir())) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        import pytensor
        from pytensor.link.c.cmodule import get_module_cache

        folder, found = pytensor.config.compiledir, log_ratios(model)
        return Loaded(os.getpid(), get_module_cache(folder).stats[2], str(folder), found)


def load(pickled: bytes, meeting: str) -> Loaded:
    """Load a model in a worker, and use it."""
    return Look(meeting).run(pickle.loads(pickled))


@contextmanager
def machine_of_two(folder: Path) -> Iterator[ProcessPoolExecutor]:
    """Give two new processes, both with this compile folder."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context, initializer=_set_folder, initargs=(str(folder),)) as pool:
        yield pool


def _set_folder(folder: str) -> None:
    os.environ["PYTENSOR_FLAGS"] = f"base_compiledir={folder}"
