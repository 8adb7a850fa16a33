"""Chains whose independence proposals are all taken: they show when a backend proposes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

from bread.backends.base import Kernel
from bread.backends.support.base_draws import draw_many
from bread.backends.support.independence import Proposals, draw_proposals
from bread.paths.kinds import Path, PriorPath
from tests.support.conformance import tuned_kernel


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
        lambda seeds: draw_many(posterior, path, seeds), lambda x: posterior.log_ratio(path, x), len(betas) - 1, seed
    )
    ends = {}
    for direction in ("forward", "reverse"):
        run = posterior.anneal(path, betas, kernel, direction=direction, initial=np.array([[0.2]]), seeds=[seed])
        ends[direction] = run.state_at_end if direction == "forward" else run.state_at_base
    assert np.array_equal(ends["reverse"][0], own.states[-1])
    assert not np.isclose(ends["forward"][0], own.states[-1])


def refused(*arguments: Any) -> Proposals:
    """Return the proposals of `draw_proposals`, with random numbers that accept none."""
    proposals = draw_proposals(*arguments)
    return proposals._replace(log_uniform=np.full_like(proposals.log_uniform, np.inf))


def check_rests(
    monkeypatch: pytest.MonkeyPatch, module: Any, posterior: Any, kernel: Kernel, betas: np.ndarray, every: int
) -> None:
    """Both directions move at the same temperatures: the last, and each so many before it; without proposals at all.

    Where no proposal is taken, a log ratio that stays the same to the bit shows where the kernel rested.
    """
    monkeypatch.setattr(module, "draw_proposals", refused)
    last, n_gradients, start = len(betas) - 1, [], np.full((6, 1), 0.2)
    for proposes, expected in ((True, set(range(last, 0, -every))), (False, set(range(1, last + 1)))):
        asked = replace(kernel, proposes_base=proposes, every=every)
        for direction in ("forward", "reverse"):
            run = posterior.anneal(
                PriorPath(), betas, asked, direction=direction, initial=start, seeds=SeedSequence(3).spawn(len(start))
            )
            moved = (np.diff(run.log_ratio, axis=1) != 0.0).any(axis=0)
            assert {index for index in range(1, last + 1) if moved[index - 1]} == expected
            n_gradients.append(run.n_gradients.sum())
    assert max(n_gradients[:2]) < min(n_gradients[2:])


def check_request(named: Any, plain: Any, path: Path, betas: np.ndarray) -> None:
    """A kernel that asks for proposals gives the same bits as a model opened with them; without it chains differ."""
    assert plain.info.may_propose and not named.info.may_propose
    kernel = tuned_kernel(named, path=path)
    asked = replace(kernel, proposes_base=True)
    expected, found, without = (
        _chains_of(model, path, one, betas) for model, one in ((named, kernel), (plain, asked), (plain, kernel))
    )
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (expected[0] != without[0]).all() and (expected[1] != without[1]).any()


def _chains_of(model: Any, path: Path, kernel: Kernel, betas: np.ndarray) -> tuple[Any, Any]:
    """Log weights of two chains, and the states of a chain at beta = 1."""
    posterior = model.condition(model.info.data.observed)
    seeds = SeedSequence(4).spawn(3)
    base = posterior.draw_base(path, seeds[:2])
    annealed = posterior.anneal(path, betas, kernel, direction="forward", initial=base, seeds=seeds[:2])
    return annealed.log_weight, posterior.evolve(path, kernel, 1.0, base[0], (1, 2, 5, 9), seeds[2]).states
