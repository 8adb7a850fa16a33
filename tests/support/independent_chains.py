"""Chains whose independence proposals are all taken: they show when a backend proposes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

from bread.backends.base import Kernel
from bread.backends.support.independence import Proposals, draw_proposals
from bread.paths.kinds import PriorPath


def taken(*arguments: Any) -> Proposals:
    """Return the proposals of `draw_proposals`, with random numbers that accept each."""
    proposals = draw_proposals(*arguments)
    return proposals._replace(log_uniform=np.full_like(proposals.log_uniform, -np.inf))


def check_order(
    monkeypatch: pytest.MonkeyPatch, module: Any, posterior: Any, kernel: Kernel, betas: np.ndarray
) -> None:
    """Where every proposal is taken, a reverse chain ends at the last one; a forward chain has moved from it.

    ``module`` is where the backend draws proposals; the posterior has one coordinate.
    """
    monkeypatch.setattr(module, "draw_proposals", taken)
    path, seed = PriorPath(), SeedSequence(3)
    own = draw_proposals(
        lambda seeds: posterior.draw_base(path, seeds), lambda x: posterior.log_ratio(path, x), len(betas) - 1, seed
    )
    ends = {}
    for direction in ("forward", "reverse"):
        run = posterior.anneal(path, betas, kernel, direction=direction, initial=np.array([[0.2]]), seeds=[seed])
        ends[direction] = run.state_at_end if direction == "forward" else run.state_at_base
    assert np.array_equal(ends["reverse"][0], own.states[-1])
    assert not np.isclose(ends["forward"][0], own.states[-1])
