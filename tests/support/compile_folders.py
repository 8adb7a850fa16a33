"""What a worker's PyTensor has compiled, asked there; and a cluster's machine: two workers with one folder."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
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


def load(pickled: bytes, meeting: str) -> Loaded:
    """Wait until two workers are at it, load a model, use it."""
    Path(meeting, str(os.getpid())).touch()
    end = time.monotonic() + MEETING_SECONDS
    while len(list(Path(meeting).iterdir())) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    found = log_ratios(pickle.loads(pickled))
    import pytensor
    from pytensor.link.c.cmodule import get_module_cache

    folder = pytensor.config.compiledir
    return Loaded(os.getpid(), get_module_cache(folder).stats[2], str(folder), found)


@contextmanager
def machine_of_two(folder: Path) -> Iterator[ProcessPoolExecutor]:
    """Give two new processes, both with this compile folder."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context, initializer=_set_folder, initargs=(str(folder),)) as pool:
        yield pool


def _set_folder(folder: str) -> None:
    os.environ["PYTENSOR_FLAGS"] = f"base_compiledir={folder}"
