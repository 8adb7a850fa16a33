"""Chains of many data sets in blocks of lanes: programs built when they are first needed, and run chunk by chunk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import AnnealRun, Direction, Failure, FloatArray, Kernel
from bread.backends.pymc.vectorised.conversion import ConvertedDensity
from bread.backends.pymc.vectorised.kernels import VectorKernel
from bread.backends.pymc.vectorised.packages import double_precision
from bread.backends.pymc.vectorised.programs import Carry, Steps, Target, build_scan, build_start
from bread.backends.support.jax_references import PackedReference, log_density_of, pack
from bread.paths.kinds import Path

MOST_KERNELS = 256  # different frozen kernels in a block; each brings its settings at every step
STEPS = 64  # inverse temperatures between two returns to Python
LARGEST_CHUNK = 2_000_000  # numbers in the settings of one chunk
_NO_REFERENCE = PackedReference((), ())
_Member = tuple[int, int]  # a request, and one of its chains


class Request(NamedTuple):
    """Chains of one data set."""

    data: Mapping[str, NDArray[Any]]
    path: Path
    kernel: Kernel
    initial: FloatArray
    seeds: Sequence[SeedSequence]


@dataclass
class VectorEngine:
    """Runs chains on JAX; nothing of it depends on data, path or direction but the programs it has built.

    A pickled copy builds its own.

    Attributes
    ----------
    density : ConvertedDensity
    kernel : VectorKernel
    dim : int
    lanes : int
        Chains in a block: always as many, however few are asked for, since rounding may depend on it.
    """

    density: ConvertedDensity
    kernel: VectorKernel
    dim: int
    lanes: int
    _programs: dict[Any, Callable[..., Any]] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_programs": {}}

    @property
    def n_steps(self) -> int:
        """Steps of one chunk: a power of two, fewer where the settings of a chunk would be large."""
        steps = STEPS
        while steps > 1 and steps * self.n_kernels * self.dim > LARGEST_CHUNK:
            steps //= 2
        return steps

    @property
    def n_kernels(self) -> int:
        """Most frozen kernels of one block."""
        return min(self.lanes, MOST_KERNELS)

    # -- programs ---------------------------------------------------------------------------------------------------

    def _program(self, what: str, form: tuple[Any, ...], at_base: bool = False) -> Callable[..., Any]:
        key = (what, form, at_base)
        if key not in self._programs:
            target = Target(self.density.function, log_density_of(form) if form else None)
            self._programs[key] = (
                build_start(target)
                if what == "start"
                else build_scan(target, self.kernel, with_states=what == "evolve", at_base=at_base)
            )
        return self._programs[key]

    def _precision(self) -> AbstractContextManager[Any]:
        """Return double precision; the conversion comes first, since PyTensor's dispatch changes the setting itself."""
        _ = self.density.function
        return double_precision()

    @staticmethod
    def _packed(path: Path) -> PackedReference:
        return _NO_REFERENCE if path.reference is None else pack(path.reference)

    def evaluate(
        self, path: Path, states: FloatArray, data: Sequence[Mapping[str, NDArray[Any]]]
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return both ends of a path with their gradients, at each state with its own data; see `programs.Carry`."""
        kernel = Kernel(np.zeros(1), {})
        requests = [
            Request(one, path, kernel, state[None, :], [SeedSequence(0)])
            for state, one in zip(states, data, strict=True)
        ]
        packed = [self._packed(path)] * len(requests)
        parts = []
        with self._precision():
            for low in range(0, len(requests), self.lanes):
                members = [(index, 0) for index in range(low, min(low + self.lanes, len(requests)))]
                block = _Block(self, requests, packed, members, self.lanes)
                carry = self._program("start", packed[0].form)(block.initial, block.data, block.reference)
                parts.append([np.array(one)[: len(members)] for one in carry[1:5]])
        base, base_gradient, end, end_gradient = (np.concatenate(one) for one in zip(*parts, strict=True))
        return base, base_gradient, end, end_gradient

    # -- annealed chains --------------------------------------------------------------------------------------------

    def anneal(self, requests: Sequence[Request], betas: FloatArray, direction: Direction) -> list[AnnealRun]:
        """Run the chains of all requests; see `bread.backends.base.Posterior.anneal`.

        Chains of different requests share blocks where their paths have one form. ``seconds`` of a run is its share
        of the time, by chains.
        """
        began = time.perf_counter()
        packed = [self._packed(request.path) for request in requests]
        lanes: dict[Any, list[_Member]] = {}
        for index, (request, reference) in enumerate(zip(requests, packed, strict=True)):
            lanes.setdefault(reference.form, []).extend((index, chain) for chain in range(len(request.seeds)))
        records = [_Record.empty(len(request.seeds), len(betas), self.dim) for request in requests]
        with self._precision():
            for form, members in lanes.items():
                for own in self._blocks(requests, members):
                    block = _Block(self, requests, packed, own, self.lanes)
                    self._anneal_block(form, block, betas, direction, records)
        n_chains = max(1, sum(len(request.seeds) for request in requests))
        share = (time.perf_counter() - began) / n_chains
        return [
            record.run(request.path, betas, direction, share * len(request.seeds))
            for record, request in zip(records, requests, strict=True)
        ]

    def _blocks(self, requests: Sequence[Request], members: Sequence[_Member]) -> Iterator[list[_Member]]:
        """Yield the chains of each block, in their order: as many as there are lanes, of so many kernels."""
        block: list[_Member] = []
        kernels: set[int] = set()
        for index, chain in members:
            kernel = id(requests[index].kernel)
            if len(block) == self.lanes or (kernel not in kernels and len(kernels) == self.n_kernels):
                yield block
                block, kernels = [], set()
            block.append((index, chain))
            kernels.add(kernel)
        yield block

    def _anneal_block(
        self, form: tuple[Any, ...], block: _Block, betas: FloatArray, direction: Direction, records: list[_Record]
    ) -> None:
        forward = direction == "forward"
        carry = self._program("start", form)(block.initial, block.data, block.reference)
        first = _ratios(form, carry)
        ratios = np.full((len(betas), block.n_lanes), np.nan)
        ratios[0 if forward else -1] = np.where(_has_support(np.asarray(carry.base)), first, np.nan)
        base_at_start = np.array(carry.base)
        scan, size = self._program("anneal", form), self.n_steps
        knots = np.arange(1, len(betas)) if forward else np.arange(len(betas) - 1, 0, -1)
        for low in range(0, len(knots), size):
            chunk = knots[low : low + size]
            was_moving = np.array(carry.is_moving)
            steps = block.steps(chunk, betas[chunk], size)
            carry, trace = scan(carry, block.keys, block.kernel_of, steps, block.data, block.reference)
            values = np.array(trace)[: len(chunk)]
            # A chain that has stopped repeats its last ratio, which is not finite; the first time it counts.
            stopped = np.cumsum(~np.isfinite(values), axis=0)
            values[(stopped > 1) | ~was_moving] = np.nan
            ratios[chunk if forward else chunk - 1] = values
            if not np.asarray(carry.is_moving).any():
                break
        block.record(records, carry, ratios, base_at_start, forward)

    # -- one chain at one inverse temperature -----------------------------------------------------------------------

    def evolve(self, request: Request, beta: float, keep: Sequence[int]) -> tuple[FloatArray, int]:
        """Run one chain at ``beta``; return its states after ``keep`` steps and the number of gradients."""
        at_base = beta == 0.0
        packed = self._packed(request.path)
        block = _Block(self, [request], [packed], [(0, 0)], 1)
        states = np.empty((len(keep), self.dim))
        states[np.asarray(keep) == 0] = request.initial[0]
        last = int(max(keep, default=0))
        with self._precision():
            carry = self._program("start", packed.form)(block.initial, block.data, block.reference)
            if at_base:
                carry = carry._replace(is_moving=np.isfinite(np.asarray(carry.base)))
            scan = self._program("evolve", packed.form, at_base)
            for low in range(0, last, self.n_steps):
                numbers = np.arange(low + 1, min(low + self.n_steps, last) + 1)
                steps = block.steps(numbers, np.full(len(numbers), beta), self.n_steps)
                carry, trace = scan(carry, block.keys, block.kernel_of, steps, block.data, block.reference)
                trace = np.asarray(trace)
                for index, n_done in enumerate(keep):
                    if low < n_done <= low + len(numbers):
                        states[index] = trace[n_done - low - 1, 0]
            return states, int(np.asarray(carry.n_gradients)[0])


class _Block:
    """Chains of some requests in the lanes of one block; the first chain fills up what is left.

    What every chunk takes is on JAX's device once.
    """

    def __init__(
        self,
        engine: VectorEngine,
        requests: Sequence[Request],
        packed: Sequence[PackedReference],
        members: Sequence[_Member],
        n_lanes: int,
    ) -> None:
        import jax

        self.members = members
        self.n_lanes = n_lanes
        self._kernel = engine.kernel
        self._n_kernels = min(n_lanes, engine.n_kernels)
        chosen = [*members, *[members[0]] * (n_lanes - len(members))]
        owners = [index for index, _ in chosen]
        present = sorted(set(owners))
        kernels = {id(requests[index].kernel): requests[index].kernel for index in present}
        self._kernels = list(kernels.values())
        place = {which: number for number, which in enumerate(kernels)}
        self.initial = np.array([requests[index].initial[chain] for index, chain in chosen], dtype=np.float64)
        seeds = [requests[index].seeds[chain] for index, chain in chosen]
        arrays = {index: engine.density.arrays(requests[index].data) for index in present}
        self.kernel_of, self.keys, self.data, self.reference = jax.device_put(
            (
                np.array([place[id(requests[index].kernel)] for index in owners]),
                np.array([seed.generate_state(2, np.uint32) for seed in seeds]),
                tuple(np.stack(parts) for parts in zip(*(arrays[index] for index in owners), strict=True)),
                tuple(np.stack(parts) for parts in zip(*(packed[index].arrays for index in owners), strict=True)),
            )
        )

    def steps(self, numbers: NDArray[np.int64], betas: FloatArray, size: int) -> Steps:
        """Return what a scan of ``size`` steps takes; those beyond ``betas`` are idle, and kernels may be repeated."""
        tables = [self._kernel.arrays(kernel.along(betas)) for kernel in self._kernels]
        tables += tables[:1] * (self._n_kernels - len(tables))
        step_size, metric, n_steps = (np.stack([table[part] for table in tables], axis=1) for part in range(3))
        n_idle = size - len(betas)

        def filled(values: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([values, np.repeat(values[-1:], n_idle, axis=0)])

        is_active = np.arange(size) < len(betas)
        return Steps(filled(betas), filled(numbers), is_active, filled(step_size), filled(metric), filled(n_steps))

    def record(
        self, records: list[_Record], carry: Carry, ratios: FloatArray, base_at_start: FloatArray, forward: bool
    ) -> None:
        """Write what the lanes came to into the records of their requests."""
        ends, base = np.array(carry.position), np.array(carry.base)
        gradients, divergences = np.array(carry.n_gradients), np.array(carry.n_divergences)
        for lane, (index, chain) in enumerate(self.members):
            one = records[index]
            start, end = self.initial[lane], ends[lane]
            one.state_at_base[chain], one.state_at_end[chain] = (start, end) if forward else (end, start)
            first, last = base_at_start[lane], base[lane]
            begins = _has_support(first) and (forward or np.isfinite(ratios[-1, lane]))
            if not begins:  # PyMC's own engine never asks for the other end then
                last = np.nan
            one.log_base_density[chain] = (first, last) if forward else (last, first)
            one.log_ratio[chain] = ratios[:, lane]
            one.n_gradients[chain], one.n_divergences[chain] = gradients[lane], divergences[lane]


@dataclass
class _Record:
    """The fields of an `AnnealRun` of one request, while its blocks are run."""

    log_ratio: FloatArray
    state_at_base: FloatArray
    state_at_end: FloatArray
    log_base_density: FloatArray
    n_gradients: NDArray[np.int64]
    n_divergences: NDArray[np.int64]

    @classmethod
    def empty(cls, n_chains: int, n_temperatures: int, dim: int) -> _Record:
        return cls(
            np.full((n_chains, n_temperatures), np.nan),
            np.empty((n_chains, dim)),
            np.empty((n_chains, dim)),
            np.full((n_chains, 2), np.nan),
            np.zeros(n_chains, dtype=np.int64),
            np.zeros(n_chains, dtype=np.int64),
        )

    def run(self, path: Path, betas: FloatArray, direction: Direction, seconds: float) -> AnnealRun:
        """Return the run, each chain with its failure and its log weight."""
        failure = self._failures(direction)
        if direction == "reverse":  # a chain that cannot begin has no ratio, as in PyMC's own engine
            self.log_ratio[~np.isfinite(self.log_ratio[:, -1]), -1] = np.nan
        with np.errstate(invalid="ignore"):
            log_weight = np.asarray(path.log_weight(betas, self.log_ratio), dtype=np.float64).reshape(len(failure))
        log_weight[failure == Failure.ZERO_RATIO] = -np.inf
        log_weight[failure > Failure.ZERO_RATIO] = np.nan
        return AnnealRun(
            log_weight=log_weight,
            log_ratio=self.log_ratio,
            state_at_base=self.state_at_base,
            state_at_end=self.state_at_end,
            log_base_density=self.log_base_density,
            n_gradients=self.n_gradients,
            n_evaluations=np.zeros(len(failure), dtype=np.int64),
            n_divergences=self.n_divergences,
            failure=failure,
            seconds=seconds,
        )

    def _failures(self, direction: Direction) -> NDArray[np.int64]:
        """Return why each chain ended, by the rules of PyMC's own engine (`kernels.chains.Chain`)."""
        forward = direction == "forward"
        failure = np.zeros(len(self.log_ratio), dtype=np.int64)
        ratios = self.log_ratio[:, :-1] if forward else self.log_ratio[:, ::-1]  # those that must be finite, in order
        base = self.log_base_density[:, 0 if forward else 1]
        for chain, (own, log_base) in enumerate(zip(ratios, base, strict=True)):
            bad = np.flatnonzero(~np.isfinite(own))
            if not _has_support(log_base):
                failure[chain] = Failure.ZERO_INITIAL if log_base == -np.inf else Failure.NAN
            elif len(bad):
                is_zero = own[bad[0]] == -np.inf
                if forward:
                    failure[chain] = Failure.ZERO_RATIO if is_zero else Failure.NAN
                else:
                    failure[chain] = Failure.ZERO_INITIAL if is_zero and bad[0] == 0 else Failure.NAN
        return failure


def _has_support(log_base: Any) -> Any:
    return np.isfinite(log_base)


def _ratios(form: tuple[Any, ...], carry: Carry) -> FloatArray:
    base, end = np.asarray(carry.base), np.asarray(carry.end)
    with np.errstate(invalid="ignore"):
        return end if not form else end - base
