"""A compiled Stan program with data: densities, gradients, and Stan's samplers along a path."""

from __future__ import annotations

import contextlib
import ctypes
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from bread.backends.base import Direction, FloatArray
from bread.backends.stan.native.build import build_code, translate
from bread.backends.stan.native.interface import Progress, doubles, pointer
from bread.backends.stan.native.path_arguments import Law, PathArguments
from bread.backends.stan.native.recipe import Recipe
from bread.backends.stan.native.runs import Adapted, Chains, Schedule
from bread.backends.stan.native.structures import ChainsStruct, KernelStruct, ProposalsStruct, ScheduleStruct
from bread.backends.stan.native.toolchain import Toolchain
from bread.backends.stan.native.values import data_json
from bread.backends.stan.native.variables import StanVariables, seed_words
from bread.backends.support.independence import Proposals
from bread.errors import DensityError
from bread.paths.kinds import Path, PriorPath
from bread.paths.mixture import Reference

_PRIOR = PriorPath()


@dataclass(frozen=True)
class StanLibrary:
    """A compiled Stan program, by the path of its library; picklable.

    Parameters
    ----------
    path : pathlib.Path
        From `bread.backends.stan.native.build.build_library`.
    recipe : Recipe, optional
        What it is compiled from where it is not: on another machine.
    """

    path: pathlib.Path
    recipe: Recipe | None = None

    @classmethod
    def of(
        cls,
        program: str,
        toolchain: Toolchain,
        *,
        original: str | None = None,
        places: Callable[[str], str] | None = None,
    ) -> StanLibrary:
        """Compile a program, or take it from the cache.

        Arguments and errors are those of `bread.backends.stan.native.build.build_library`.
        """
        code = translate(program, toolchain, original=original, places=places)
        return cls(build_code(code, toolchain), Recipe(code, toolchain.version))

    def local_path(self) -> pathlib.Path:
        """Return the path of the library on this machine; compile it, where it is not there and a recipe is.

        Raises
        ------
        BreadError
            See `Recipe.build`.
        """
        return self.path if self.recipe is None or self.path.exists() else self.recipe.build()

    def instance(
        self,
        data: Mapping[str, Any] | str,
        seed: int = 0,
        law: Law | None = None,
        given: StanInstance | None = None,
    ) -> StanInstance:
        """Return the program with data.

        Parameters
        ----------
        data : mapping or str
            Values of the data block, or JSON. Names that the program does not declare are ignored, as in Stan.
        seed : int
            For random numbers in transformed data.
        law : Law, optional
            A part of the prior that the program does not state.
        given : StanInstance, optional
            The same program with data whose likelihood is a part of the prior.

        Raises
        ------
        StanDataError
            The data do not fit; the message is Stan's and names the line.
        """
        return StanInstance(self, data if isinstance(data, str) else data_json(data), seed, law, given)


class StanInstance(StanVariables):
    """A Stan program with data. Picklable; equal calls give bit-equal results, whatever was called before.

    States are rows of unconstrained coordinates, the Jacobian of the map to parameters belongs to the prior, and all
    densities are normalised as far as the program states them (no constant is dropped).
    """

    def __init__(
        self,
        library: StanLibrary,
        data: str,
        seed: int,
        law: Law | None = None,
        given: StanInstance | None = None,
    ) -> None:
        self._library, self._data, self._seed, self._law, self._given = library, data, seed, law, given
        self._kept_arguments: dict[bool, tuple[Reference | None, PathArguments]] = {}  # without a reference, and with
        super().__init__(library.local_path(), data, seed)

    @property
    def law(self) -> Law | None:
        """What takes the place of a part of the prior."""
        return self._law

    @property
    def data_size(self) -> int:
        """Length of the data block as JSON, two at least: what an instance with other data costs."""
        return len(self._data)

    def __reduce__(self) -> tuple[Any, ...]:
        return StanInstance, (self._library, self._data, self._seed, self._law, self._given)

    # -- densities --------------------------------------------------------------------------------------------

    def terms(self, states: FloatArray, path: Path = _PRIOR) -> tuple[FloatArray, FloatArray, str]:
        """Return log density at the path's base and log ratio of its ends (nats) at each state.

        Returns
        -------
        log_base, log_ratio : ndarray, shape (n,)
            Log prior and log likelihood, or log density of the reference and log joint density over it. Where the
            program rejects the state, log prior and log ratio are -inf; NaN after any other exception.
        message : str
            Of the first rejection or exception; "" if there was none.
        """
        states, arguments = self._rows(states), self._arguments(path)
        terms = np.empty((len(states), 2))
        message = self._call("bread_evaluate", arguments.address, len(states), pointer(states), pointer(terms))
        return terms[:, 0].copy(), terms[:, 1].copy(), arguments.error or message

    def constrained_prior(self, states: FloatArray) -> FloatArray:
        """Return the log prior (nats) as a density of the parameters themselves, shape (n,).

        The Jacobian of the map from states is left out, and so is a law that takes the place of a part of the prior.
        Of a program that is not tempered: its whole log density. -inf where the program rejects the state, NaN where
        it raises.
        """
        states = self._rows(states)
        densities = np.empty(len(states))
        self._call("bread_constrained_prior", len(states), pointer(states), pointer(densities))
        return densities

    def gradient(self, state: FloatArray, beta: float, path: Path = _PRIOR) -> tuple[float, float, FloatArray]:
        """Return the log density at ``beta``, the log ratio, and the gradient (dim,) of the former.

        At ``beta`` = 0 of a path from a reference the program is not evaluated, and the log ratio is NaN; at
        ``beta`` = 1 the reference is not, with the same result.

        Raises
        ------
        DensityError
            The program rejects the state or raises.
        """
        state, density, gradient = self._row(state), np.empty(2), np.empty(self.dim)
        with self._path(path) as arguments:
            self._call(
                "bread_gradient", arguments.address, float(beta), pointer(state), pointer(density), pointer(gradient)
            )
        return float(density[0]), float(density[1]), gradient

    def gradients(self, states: FloatArray, beta: float) -> tuple[FloatArray, FloatArray]:
        """Return the log density of the prior path at ``beta`` and its gradient, of rows: shapes (n,) and (n, dim).

        NaN where the program rejects the state or raises.
        """
        states = self._rows(states)
        densities, gradients = np.empty(len(states)), np.empty((len(states), self.dim))
        with self._path(_PRIOR) as arguments:
            self._call(
                "bread_gradients", arguments.address, float(beta), len(states), pointer(states), pointer(densities),
                pointer(gradients),
            )  # fmt: skip
        return densities, gradients

    def seconds_per_gradient(self, states: FloatArray, beta: float, repeats: int, path: Path = _PRIOR) -> float:
        """Return the mean wall time of a gradient at these states (n, dim), visited in turn ``repeats`` times.

        What the cost of a chain is compared with; use states of a chain, because a processor that sees a single state
        again and again learns its branches.
        """
        states, seconds, arguments = self._rows(states), np.empty(1), self._arguments(path)
        self._call(
            "bread_time_gradient", arguments.address, float(beta), len(states), pointer(states), int(repeats),
            pointer(seconds),
        )  # fmt: skip
        return float(seconds[0]) / (len(states) * repeats)

    # -- chains -----------------------------------------------------------------------------------------------

    def anneal(
        self,
        kernel: KernelStruct,
        schedule: Schedule,
        direction: Direction,
        initial: FloatArray,
        seeds: Sequence[SeedSequence],
        progress: Progress | None = None,
        path: Path = _PRIOR,
        proposals: Sequence[Proposals] = (),
    ) -> Chains:
        """Run one annealed chain per row of ``initial``; ``progress`` is told now and then the share that is done.

        ``proposals`` from the path's start, T - 1 for each chain, are made where there are any.
        """
        initial, words, n_temperatures = self._rows(initial), seed_words(seeds), len(schedule.betas)
        betas = doubles(schedule.betas, (n_temperatures,))
        steps = doubles(schedule.step_sizes, (n_temperatures,))
        metrics = doubles(schedule.inverse_metrics, (n_temperatures, self.dim))
        n = len(initial)
        result = Chains(
            np.empty((n, n_temperatures)), np.empty((n, self.dim)), np.empty((n, self.dim)), np.empty((n, 2)),
            np.zeros((n, 4), dtype=np.int64), "",
        )  # fmt: skip
        is_reverse = int(direction == "reverse")
        ladder = ScheduleStruct(
            n_temperatures, pointer(betas), pointer(steps), pointer(metrics), is_reverse, schedule.every
        )
        arrays = [pointer(array) for array in (initial, words, *result[:5])]
        made = (ProposalsStruct * len(proposals))(*map(_proposals_struct, proposals))
        chains = ChainsStruct(n, *arrays, ctypes.addressof(made) if proposals else None)
        arguments = self._arguments(path)
        message = self._watched(
            "bread_anneal", progress, arguments.address, _address(kernel), _address(ladder), _address(chains)
        )
        return result._replace(message=arguments.error or message)

    def evolve(
        self,
        kernel: KernelStruct,
        beta: float,
        step_size: float,
        inverse_metric: FloatArray,
        state: FloatArray,
        keep: Sequence[int],
        seed: SeedSequence,
        progress: Progress | None = None,
        path: Path = _PRIOR,
        proposals: Proposals | None = None,
    ) -> tuple[FloatArray, int, int]:
        """Run a chain at one inverse temperature; return states (len(keep), dim), gradients, evaluations.

        ``proposals`` from the path's start, one a step, are made where there are any.

        Raises
        ------
        DensityError
            The chain starts at density zero or NaN, or the program raises.
        """
        state, words = self._row(state), seed_words([seed])
        metric = doubles(inverse_metric, (self.dim,))
        wanted = np.array(keep, dtype=np.int64)
        states, counts = np.empty((len(keep), self.dim)), np.zeros(2, dtype=np.int64)
        made = None if proposals is None else _proposals_struct(proposals)
        with self._path(path) as arguments:
            self._watched(
                "bread_evolve", progress, arguments.address, _address(kernel), float(beta), float(step_size),
                pointer(metric), pointer(state), None if made is None else _address(made), pointer(words), len(keep),
                pointer(wanted), pointer(states), pointer(counts),
            )  # fmt: skip
        return states, int(counts[0]), int(counts[1])

    def adapt(
        self,
        kernel: KernelStruct,
        beta: float,
        step_size: float,
        inverse_metric: FloatArray,
        state: FloatArray,
        seed: SeedSequence,
        n_steps: int,
        windows: tuple[int, int, int],
        target_acceptance: float,
        progress: Progress | None = None,
        path: Path = _PRIOR,
    ) -> Adapted:
        """Run Stan's adaptation for ``n_steps`` from these settings.

        Parameters
        ----------
        windows : tuple of int
            Stan's init_buffer, term_buffer and base window, in steps.
        target_acceptance : float
            Stan's delta.

        Raises
        ------
        DensityError
            The chain starts at density zero or NaN, or the program or the adaptation raises.
        """
        words, spans = seed_words([seed]), np.array(windows, dtype=np.int64)
        state, metric = self._row(state).copy(), doubles(inverse_metric, (self.dim,))
        step, log_ratio, counts = np.array([float(step_size)]), np.empty(n_steps), np.zeros(2, dtype=np.int64)
        with self._path(path) as arguments:
            self._watched(
                "bread_adapt", progress, arguments.address, _address(kernel), float(beta), n_steps, pointer(spans),
                float(target_acceptance), pointer(step), pointer(metric), pointer(state), pointer(words),
                pointer(log_ratio), pointer(counts),
            )  # fmt: skip
        return Adapted(float(step[0]), metric, state, log_ratio, int(counts[0]), int(counts[1]))

    # -- many data sets ---------------------------------------------------------------------------------------

    def call_rows(self, name: str, *arguments: Any, is_long: bool = False) -> None:
        """Call ``bread_rows`` or ``bread_move_rows`` of cpp/driver.cpp, for `bread.backends.stan.rows`.

        Raises
        ------
        DensityError
            The program refuses data, or a chain fails.
        """
        if is_long:
            self._watched(name, None, *arguments)
        else:
            self._call(name, *arguments)

    # -- arguments --------------------------------------------------------------------------------------------

    def _arguments(self, path: Path) -> PathArguments:
        """Return what is passed on; kept for the last one of either kind, unless Python code may leave an error."""
        reference = path.reference
        kept, arguments = self._kept_arguments.get(reference is None, (None, None))
        if arguments is not None and kept is reference:
            return arguments
        made = PathArguments(path, self.dim, self._law, None if self._given is None else self._given.handle)
        if not made.calls_python:
            self._kept_arguments[reference is None] = reference, made
        return made

    @contextlib.contextmanager
    def _path(self, path: Path) -> Iterator[PathArguments]:
        """Pass the path on; after a failure of a reference of the user's, raise with its own text."""
        arguments = self._arguments(path)
        try:
            yield arguments
        except DensityError as error:
            if not arguments.error:
                raise
            raise DensityError(f"{error}: {arguments.error}") from error


def _proposals_struct(proposals: Proposals) -> ProposalsStruct:
    """Return proposals as the driver reads them; their arrays must live as long as it does."""
    return ProposalsStruct(*map(pointer, proposals))


def _address(structure: ctypes.Structure) -> int:
    return ctypes.addressof(structure)
