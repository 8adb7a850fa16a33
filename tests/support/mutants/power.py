"""Planted bugs before the battery: one run of a bug, or of its good twin, on the targets on which it shows."""

from __future__ import annotations

import numpy as np
from numpy.random import SeedSequence

from bread.debugging.bare import BareSubject
from bread.debugging.battery import BUDGET, LEVEL, run_battery
from bread.debugging.between import BETA
from bread.debugging.discrete_targets import tabulated
from bread.debugging.model_subject import ModelSubject
from bread.debugging.target import Target
from tests.support.mutants.case import Case, Mutant, named


def subject_of(build, name=None):
    """Return the subject of a case; ``build`` makes it anew, so that kernels with a memory can be renewed."""
    case: Case = build()
    return BareSubject(case.target, case.kernel, build=lambda: build().kernel, name=name)


def run_on(mutant: Mutant, *, is_bad=True, targets=None, budget=BUDGET, seed=1):
    """Run the battery on a mutant or its good twin, on all of its targets together or on those given."""
    laws = [named(name) for name in mutant.targets] if targets is None else targets
    subjects = [subject_of(lambda law=law: mutant.build(law, is_bad)) for law in laws]
    is_reversible = mutant.build(laws[0], False).is_reversible
    return run_battery(subjects, level=LEVEL, budget=budget, seed=seed, reversible=is_reversible)


def run_on_model(mutant: Mutant, *, is_bad=True, budget=BUDGET, seed=1):
    """Run the battery on the kernel of a model, at both ends of its path and between them."""
    model = mutant.build(None, is_bad)
    betas = (0.0, 1.0, BETA)
    places = [ModelSubject(model, beta, SeedSequence(seed, spawn_key=(place,))) for place, beta in enumerate(betas)]
    return run_battery(places, level=LEVEL, budget=budget, seed=seed)


def standard_normal():
    """Return the target on which tests like to run: independent, of one scale, symmetric."""
    return Target(
        "standard normal", 3,
        lambda x: -0.5 * (x**2).sum(-1) - 1.5 * np.log(2.0 * np.pi),
        lambda n, rng: rng.standard_normal((n, 3)),
        lambda x: -x,
    )  # fmt: skip


def equal_masses():
    """Return three independent numbers from 1 to 4 of equal masses: unchanged when values are renamed."""
    return tabulated("equal masses", np.zeros((4, 4, 4)), 1)
