"""Differences between the supported generations of PyMC."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.compile
from pytensor.link.c.op import COp
from pytensor.tensor import blas, subtensor

# Indexing with arrays, where it is not in C: from 3 on it is.
INDEXED: tuple[Any, ...] = (
    ()
    if issubclass(subtensor.AdvancedSubtensor, COp)
    else (subtensor.AdvancedSubtensor, subtensor.AdvancedIncSubtensor)
)
# The same along one axis, in C; from 3 on they are no operations of their own.
TAKEN_AT: Any = getattr(subtensor, "AdvancedSubtensor1", None)
ADDED_AT: Any = getattr(subtensor, "AdvancedIncSubtensor1", None)
OUTER: Any = getattr(blas, "Ger", ())  # PyTensor's outer product; from 3 on it is no operation of its own
FUNCTION: type = pytensor.compile.Function  # a compiled one


def seed_step(step: Any, generator: np.random.Generator) -> None:
    """Give a PyMC step method (and its momentum distribution) its random numbers for one chain."""
    if hasattr(step, "setup_chain"):  # PyMC 6
        step.setup_chain(generator, tune=0, draws=0)
    else:
        step.set_rng(generator)
