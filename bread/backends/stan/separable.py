"""Stan programs whose one observed variable is observations that are independent given the parameters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import Data, FloatArray, ModelInfo
from bread.backends.observations import dependent
from bread.backends.stan.analysis.program import Program
from bread.backends.stan.language.dataflow import analyse_dataflow
from bread.backends.stan.language.messages import StanDataError
from bread.backends.stan.language.refusals import RefusedError, refuse
from bread.backends.stan.language.scopes import resolve
from bread.backends.stan.language.syntax import parse
from bread.backends.stan.native.kernels import StanKernel
from bread.backends.stan.native.library import StanInstance, StanLibrary
from bread.backends.stan.native.path_arguments import Law
from bread.backends.stan.native.toolchain import find_toolchain
from bread.backends.stan.native.values import data_json, joined_json
from bread.backends.stan.places import in_users_files
from bread.backends.stan.posterior import StanPosterior
from bread.backends.stan.split import rewriting
from bread.backends.stan.split.observations import DATA, IS_IN, SIZE, with_observations
from bread.backends.stan.split.rewriting import Edit
from bread.backends.stan.state_draws import StateDraws
from bread.errors import InvalidArgumentError, UnsupportedModelError
from bread.paths.kinds import PriorPath

_LOOKS = 3  # joint draws at which the log likelihood must be a sum over observations
_PIECES = 8  # into which the observations are cut there
_TOLERANCE = 1e-9  # of the sum of the sizes of its terms: rounding leaves about 1e-14
_SEED = 20152


def by_observation(program: Program) -> tuple[str, list[Edit]]:
    """Return the tempered program whose data say which observations count, and the edits that made it.

    Raises
    ------
    RefusedError
        There are several observed variables, or one that is a single number; or a statement is not known to be a sum
        over observations.
    """
    source = program.source
    blocks = parse(source)
    scopes = resolve(blocks)
    outcome, *others = [v for v in scopes.of_kind("data") if v.name in program.observed]
    if others or not outcome.rank:
        names = ", ".join(program.observed)
        reason = f"the program observes {names}, and " if others else ""
        raise refuse(source, outcome.node, f"{reason}one observed variable with several elements is taken.", "")
    parts = [contribution.part for contribution in program.contributions]
    edits = with_observations(program.edits, parts, analyse_dataflow(blocks, scopes), source, outcome)
    edits += rewriting.data_edit(blocks, DATA)
    return rewriting.apply_edits(source.text, edits), edits


class SeparableProgram:
    """What `StanModel` has of `bread.backends.observations.Separable`."""

    info: ModelInfo
    program: Program
    library: StanLibrary
    data: dict[str, Any]
    draws: StateDraws
    kernel: StanKernel
    law: Law | None
    log_integral: float

    def checked_data(self, data: Data) -> dict[str, NDArray[Any]]:
        """Return outcomes of the types of the real ones.

        Raises
        ------
        InvalidArgumentError
            For a missing or unknown variable, or another shape.
        """
        expected = self.info.data.observed
        if set(data) != set(expected):
            raise InvalidArgumentError(
                f"data must name {sorted(expected)}, the observed variables; got {sorted(data)}."
            )
        arrays = {name: np.asarray(data[name], dtype=expected[name].dtype) for name in expected}
        for name, array in arrays.items():
            if array.shape != expected[name].shape:
                raise InvalidArgumentError(
                    f"data[{name!r}] must be of shape {expected[name].shape}, like the real data; got {array.shape}."
                )
        return arrays

    def n_observations(self) -> int:
        """Return the length of the observed variable's first dimension.

        Raises
        ------
        UnsupportedModelError
            There are several observed variables, the law of some outcomes depends on others, a statement of the
            likelihood is not known to be a sum over observations, or the sum is not the log likelihood; the model
            cannot start at its prior.
        """
        return self._proven_count

    def condition_first(self, data: Data, n: int) -> StanPosterior:
        """Return the posterior given the first ``n`` observations; see `bread.backends.observations.Separable`."""
        count = self.n_observations()
        if not 1 <= n <= count:
            raise InvalidArgumentError(f"n must be from 1 to {count}; received {n!r}.")
        return self._posterior(data, np.arange(count) < n)

    def condition_without(self, data: Data, index: int) -> StanPosterior:
        """Return the posterior without one observation; see `bread.backends.observations.Separable`."""
        count = self.n_observations()
        if not 0 <= index < count:
            raise InvalidArgumentError(f"index must be from 0 to {count - 1}; received {index!r}.")
        return self._posterior(data, np.arange(count) != index)

    def _posterior(self, data: Data, is_in: NDArray[np.bool_]) -> StanPosterior:
        instance = self._instance(self.checked_data(data), is_in)
        return StanPosterior(instance, self.draws, self.kernel, self.info.path_refusals, self.log_integral)

    def _instance(self, data: Mapping[str, NDArray[Any]], is_in: NDArray[np.bool_]) -> StanInstance:
        control = data_json({SIZE: len(is_in), IS_IN: is_in.astype(np.int64)})
        return self._by_observation.instance(joined_json(self._fixed_json, joined_json(data_json(data), control)))

    @cached_property
    def _fixed_json(self) -> str:
        observed = self.info.data.observed
        return data_json({name: value for name, value in self.data.items() if name not in observed})

    @cached_property
    def _by_observation(self) -> StanLibrary:
        """The tempered program whose data say which observations count, compiled when first asked for."""
        program = self.program
        if PriorPath.name not in self.info.paths:
            raise UnsupportedModelError(self.info.path_refusals[PriorPath.name])
        if self.law is not None:
            raise self._dependent("it is localised; open it with simulate_from='prior'")
        try:
            text, edits = by_observation(program)
        except RefusedError as error:
            raise self._dependent(str(error).removesuffix(".")) from error
        return StanLibrary.of(text, find_toolchain(), places=in_users_files(program.source, edits))

    @cached_property
    def _proven_count(self) -> int:
        """The number of observations, of a program whose log likelihood was seen to be the sum of theirs."""
        _ = self._by_observation
        ((name, real),) = self.info.data.observed.items()
        drawn = self.draws.simulate(_LOOKS, None, SeedSequence(_SEED))
        for row, state in enumerate(drawn[0]):
            self._require_sum(state, name, drawn[1].data[name][row])
            self._require_independence(state, name, real, drawn[1].data[name][row])
        return len(real)

    def _require_sum(self, state: FloatArray, name: str, outcome: NDArray[Any]) -> None:
        """Compare the sum over pieces of the data with the log likelihood of the whole, at an exact joint draw."""
        data = self.checked_data({name: outcome})
        n = len(outcome)
        pieces = np.array_split(np.arange(n), min(n, _PIECES))
        terms = [self._log_likelihood(state, data, np.isin(np.arange(n), piece)) for piece in pieces]
        instance = self.library.instance(joined_json(self._fixed_json, data_json(data)))
        whole = float(instance.terms(state[None])[1][0])
        if np.isfinite(whole) and not abs(sum(terms) - whole) <= _TOLERANCE * (1.0 + np.abs(terms).sum()):
            raise self._dependent(
                f"at a joint draw the log likelihood is {whole:.6g} nats, and the sum over {len(pieces)} pieces of the "
                f"observations {sum(terms):.6g}"
            )

    def _require_independence(self, state: FloatArray, name: str, real: NDArray[Any], drawn: NDArray[Any]) -> None:
        """Compare what some observations say where the others are the real ones and where they were simulated."""
        n = len(real)
        for cut in sorted({1, n // 2, n - 1} & set(range(1, n))):
            for is_in in (np.arange(n) < cut, np.arange(n) >= cut):
                for whole, filler in ((real, drawn), (drawn, real)):
                    mixed = np.where(is_in.reshape(-1, *[1] * (real.ndim - 1)), whole, filler)
                    before, after = (
                        self._log_likelihood(state, self.checked_data({name: values}), is_in)
                        for values in (whole, mixed)
                    )
                    if not (before == after or (np.isnan(before) and np.isnan(after))):
                        raise self._dependent(
                            f"the log density of some elements of {name!r} changes with the value of others"
                        )

    def _log_likelihood(self, state: FloatArray, data: Mapping[str, NDArray[Any]], is_in: NDArray[np.bool_]) -> float:
        try:
            return float(self._instance(data, is_in).terms(state[None])[1][0])
        except StanDataError as error:
            raise self._dependent(f"the program refuses a mixture of real and simulated outcomes: {error}") from error

    def _dependent(self, reason: str) -> UnsupportedModelError:
        return dependent(self.info.identity.name, reason)
