"""Annealed chains of a conjugate model whose weights and kernels do not fit together: Crooks' relation fails.

What is built is a reference model, not a kernel with a target.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tests.models.reference import (
    AutoregressiveKernel,
    NormalMean,
    ReferenceKernel,
)
from tests.support.mutants.case import Mutant

Y = np.array([0.3, -1.0, 2.0, 0.5])


@dataclass(frozen=True)
class AtOtherTemperatures:
    """A kernel that is told other inverse temperatures than its run says."""

    inner: ReferenceKernel
    defect: str

    def __getattr__(self, name):
        return getattr(self.inner, name)

    @property
    def name(self):
        return self.inner.name

    def n_random(self, dim):
        return self.inner.n_random(dim)

    def transition(self, run):
        betas = run.betas
        if self.defect == "twice":
            betas = betas**2
        if self.defect == "off by one":
            betas = np.concatenate([betas[:1], betas[:-1]])
        return self.inner.transition(replace(run, betas=betas))


class EarlyWeights:
    """A posterior that weights a reverse chain before its kernel moves: at the state after, not at the one before."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def anneal(self, path, betas, kernel, *, direction, initial, seeds):
        run = self._inner.anneal(path, betas, kernel, direction=direction, initial=initial, seeds=seeds)
        if direction == "forward":
            return run
        ratio = run.log_ratio
        return replace(run, log_ratio=np.concatenate([ratio[:, 1:], ratio[:, -1:]], axis=1))


@dataclass(frozen=True, eq=False)
class WeightedEarly(NormalMean):
    def condition(self, data):
        return EarlyWeights(super().condition(data))

    def condition_rows(self, data):
        return EarlyWeights(super().condition_rows(data))


KERNEL = AutoregressiveKernel(0.5)


def at_other_temperatures(defect):
    """Return a builder of a normal mean whose kernel is told other temperatures."""
    return lambda _, is_bad: NormalMean(Y, kernel=AtOtherTemperatures(KERNEL, defect) if is_bad else KERNEL)


def weights_before_the_kernel(_, is_bad):
    return (WeightedEarly if is_bad else NormalMean)(Y, kernel=KERNEL)


MUTANTS = (
    Mutant("beta-twice", "tempering", "beta is multiplied in twice", at_other_temperatures("twice"), ("own",), "paths",
           "kernels lag behind the weights, except at both ends"),
    Mutant("off-by-one", "tempering", "kernels are one temperature behind", at_other_temperatures("off by one"),
           ("own",), "paths", "forward chains too cold by a step, reverse chains too warm"),
    Mutant("weights-early", "tempering", "weights before the kernel in reverse chains only",
           weights_before_the_kernel, ("own",), "paths", "the reverse weight is of another path"),
)  # fmt: skip
