"""Chains of several data sets in one call: only for models that say so; the tasks of others stay as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

from bread.backends.base import Kernel
from bread.jobs import executors
from bread.jobs.executors import PoolExecutor, SerialExecutor
from bread.jobs.groups import TaskGroup, group, spread
from bread.jobs.task import AnnealTask
from bread.paths.kinds import PriorPath

KERNEL = Kernel(np.array([0.0, 1.0]), {})
LONG, SHORT = np.linspace(0.0, 1.0, 5), np.linspace(0.0, 1.0, 3)


@dataclass
class Recording:
    """A model that notes which chains it was given in which call; a task's result is the number of its data set."""

    calls: list[tuple[int, ...]] = field(default_factory=list)

    def condition(self, data: dict[str, Any]) -> Any:
        model = self

        class Posterior:
            number = int(data["number"])

            def anneal(self, *_: Any, **__: Any) -> int:
                model.calls.append((self.number,))
                return self.number

        return Posterior()


@dataclass
class Together(Recording):
    """Takes six chains in one call."""

    chains_at_once: int = 6

    def anneal_together(self, chains: Sequence[Any], betas: Any, direction: str) -> list[int]:
        numbers = tuple(one.posterior.number for one in chains)
        self.calls.append(numbers)
        return list(numbers)


@dataclass
class One(Together):
    """Has the members, and takes one chain: an engine that can, on a model that it cannot run."""

    chains_at_once: int = 1


def annealing(number: int, n_chains: int = 2, direction: Any = "forward", betas: Any = LONG) -> AnnealTask:
    seeds = SeedSequence(number).spawn(n_chains)
    data = {"number": np.array(number)}
    return AnnealTask(number, data, PriorPath(), direction, betas, KERNEL, seeds, initial=np.zeros((n_chains, 1)))


def tasks() -> list[AnnealTask]:
    shapes = [("forward", LONG), ("reverse", LONG), ("forward", LONG), ("forward", SHORT)] * 3
    return [annealing(n, direction=direction, betas=betas) for n, (direction, betas) in enumerate(shapes)]


@pytest.mark.parametrize("build", [Recording, One])
def test_a_model_that_does_not_say_so_runs_its_tasks_one_by_one_as_they_come(build: Any) -> None:
    model = build()
    made: list[int] = []

    def one_by_one() -> Iterator[AnnealTask]:
        for number, task in enumerate(tasks()):
            made.append(number)
            yield task

    with SerialExecutor(model) as executor:
        for position, (index, result) in enumerate(executor.run(one_by_one())):
            assert index == result == position
            assert made == list(range(position + 1)) and model.calls == [(n,) for n in made]


@pytest.mark.parametrize("build", [Recording, One, Together])
def test_what_a_pool_is_given(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, own, given = build(), tasks(), []

    def call(function: Any, arguments: Any, cores: int, *_: Any) -> Iterator[tuple[int, Any]]:
        given.extend(task for _, task in arguments)
        for place in reversed(range(len(arguments))):  # workers finish in any order
            yield place, arguments[place][1].run(model)

    monkeypatch.setattr(executors, "call_on_workers", call)
    results = dict(PoolExecutor(model, 2).run(own))
    assert results == {n: n for n in range(len(own))}
    if build is Together:
        assert all(isinstance(task, TaskGroup) for task in given) and len(given) == 4
    else:
        assert all(task is mine for task, mine in zip(given, own, strict=True))


def test_groups_have_one_schedule_and_one_direction_and_no_more_chains_than_the_model_takes() -> None:
    model = Together()
    with SerialExecutor(model) as executor:
        results = list(executor.run(tasks()))
    assert model.calls == [(0, 2, 4), (1, 5, 9), (3, 7, 11), (6, 8, 10)]
    assert sorted(results) == [(n, n) for n in range(12)]


def test_no_worker_is_left_without_a_group() -> None:
    own = [annealing(n) for n in range(4)]
    assert group(Together(), own) == [(0, 1, 2), (3,)]  # type: ignore[arg-type]
    assert group(Together(), own, 4) == [(0,), (1,), (2,), (3,)]  # type: ignore[arg-type]


def test_a_task_with_more_chains_than_the_model_takes_runs_alone() -> None:
    assert group(Together(), [annealing(0), annealing(1, 9), annealing(2)]) == [(0,), (1,), (2,)]  # type: ignore[arg-type]


def test_results_of_groups_go_to_their_tasks() -> None:
    assert list(spread([(0, 2), (1,)], iter([(1, ["b"]), (0, ["a", "c"])]))) == [(1, "b"), (0, "a"), (2, "c")]
