"""A Stan program with data, read, rewritten, compiled and checked: the contract's `Model`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import Data, Fit, FloatArray, ModelInfo, Node, Replicates, Simulations
from bread.backends.stan import fitting, localising, proof, replicating
from bread.backends.stan.analysis.program import Program
from bread.backends.stan.derived import derive
from bread.backends.stan.native.build import ORIGINAL
from bread.backends.stan.native.kernels import StanKernel
from bread.backends.stan.native.library import StanInstance, StanLibrary
from bread.backends.stan.native.path_arguments import Law
from bread.backends.stan.native.values import data_json, joined_json
from bread.backends.stan.posterior import StanPosterior
from bread.backends.stan.rows import StanRows
from bread.backends.stan.separable import SeparableProgram
from bread.backends.stan.state_draws import StateDraws
from bread.backends.support.posterior_draws import require_support
from bread.backends.support.rows import Rows, RowsOneByOne
from bread.errors import DensityError, InvalidArgumentError, UnsupportedModelError
from bread.paths.kinds import PriorPath
from bread.paths.mixture import Reference


@dataclass(frozen=True)
class StanModel(SeparableProgram):
    """Implements `bread.backends.base.Model` for Stan.

    Attributes
    ----------
    info : ModelInfo
    program : Program
        The user's program and what was made of it.
    library : StanLibrary
        The tempered program.
    data : dict of str to Any
        Its data block.
    instance : StanInstance
        The tempered program with the real data.
    draws : StateDraws
        Exact draws of parameters and data.
    kernel : StanKernel
    transformed : tuple of str
        Transformed parameters that the report shows: those that no outcome enters.
    law : Law or None
        Of parameters that the program gives none: those of a localised model.
    log_integral : float
        Log of what the prior integrates to, as the program states it (nats); posteriors count it as normalised.
    user_model : CmdStanModel or None
        The user's object, whose ``sample`` fits; None for a program by path or text, and in a pickled copy.
    given : StanInstance or None
        The program with the real data, where their likelihood is a part of the prior.
    """

    may_be_inherited: ClassVar[bool] = True

    info: ModelInfo
    program: Program
    library: StanLibrary
    data: dict[str, Any]
    instance: StanInstance
    draws: StateDraws
    kernel: StanKernel
    transformed: tuple[str, ...]
    law: Law | None = None
    log_integral: float = 0.0
    user_model: Any = None
    given: StanInstance | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "user_model": None}

    def fingerprint(self) -> tuple[Any, ...]:
        """Return the program's text and its data; see `bread.backends.base.Model.fingerprint`."""
        observed = self.info.data.observed
        fixed = {name: value for name, value in self.data.items() if name not in observed}
        return self.program.source.text, self.program.observed, fixed

    def simulate(self, n: int, *, fixed: Mapping[str, NDArray[Any]] | None, seed: SeedSequence) -> Simulations:
        """Draw parameters and data jointly; see `bread.backends.base.Model.simulate`.

        Raises
        ------
        DensityError
            A random number generator of the program fails, or a draw has no finite state.
        InvalidArgumentError
            The simulator cannot hold a parameter named in ``fixed``.
        """
        states, draws = self.draws.simulate(n, fixed, seed)
        return Simulations(states, self.constrain(states), draws.data, draws.acceptance, draws.discarded)

    def nodes(self) -> tuple[Node, ...]:
        """Return the outcomes, the latents and the other parameters; see `bread.backends.stan.replicating`."""
        return replicating.nodes(self)

    def replicate(
        self, state: FloatArray, node: str, n: int, *, seed: SeedSequence, data: Data | None = None
    ) -> Replicates:
        """Draw replicates of a node; see `bread.backends.base.Model.replicate`."""
        observed = self.info.data.observed if data is None else data
        return replicating.replicate(self, np.asarray(state, dtype=np.float64), node, n, seed, observed)

    def node_log_prior(self, node: str, states: FloatArray) -> FloatArray:
        """Refuse: a program is one density, whose constant is known (`bread.backends.stan.normalising`).

        Raises
        ------
        UnsupportedModelError
            Always.
        """
        raise UnsupportedModelError("A Stan program is one density, not one for each variable.")

    def fit(self, *, seed: int, cores: int, progressbar: bool) -> Fit:
        """Sample the posterior on the real data: ``CmdStanModel.sample``, or Stan's NUTS in the embedded engine.

        Raises
        ------
        UnsupportedModelError
            Sampling fails; the message is Stan's.
        """
        if self.user_model is not None:
            names = self.instance.names("parameters")
            return fitting.fit_by_cmdstan(self.user_model, self.data, names, seed=seed, cores=cores)
        return fitting.fit(self.instance, seed=seed, cores=cores)

    def read_posterior(self, posterior: Any) -> Fit:
        """Read the user's own draws; see `bread.backends.stan.fitting.read_draws`."""
        names, original = self.instance.names("parameters"), self._original()
        shapes = {name: self.instance.shape(name) for name in names}
        derived = {
            name: original.shape(name) for group in ("transformed", "generated") for name in original.names(group)
        }
        fit = fitting.read_draws(posterior, shapes, self.info.layout.parameters, derived)
        unbounded = [one.name for one in self.program.parameters if not one.is_constrained]
        fit = derive(original, fit, unbounded)
        if fit.missing:
            return fit
        fit = replace(fit, draws={name: fit.draws[name] for name in names})
        has_prior = PriorPath.name in self.info.paths
        log_prior = (lambda states: self.instance.terms(states)[0]) if has_prior else None
        require_support(fit, self._states_of(fit), self.info.layout.positions, log_prior)
        return fit

    def derive(self, states: FloatArray, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return generated quantities, and other transformed parameters, at states; see `bread.backends.base.Model`."""
        seeds = SeedSequence(0).spawn(len(states))  # of those that have random numbers
        values = self._original().constrain(np.asarray(states, dtype=np.float64), "generated", seeds)
        return {name: values[name] for name in names}

    def _original(self) -> StanInstance:
        """Return the user's own program, whose generated quantities the tempered one lacks."""
        return self.library.instance({**self.data, ORIGINAL: 1})

    def _states_of(self, fit: Fit) -> FloatArray:
        """Return the states of draws, one chain after another."""
        parameters = self.instance.names("parameters")
        try:
            return self.instance.unconstrain(
                {name: values for name, values in fit.flat_draws().items() if name in parameters}
            )
        except DensityError as error:
            raise InvalidArgumentError(
                f"{fit.source} has draws outside the support of the program: {error}. Pass draws of this program."
            ) from error

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Map states (n, dim) to parameters and transformed parameters, each (n, ...).

        Transformed parameters are NaN at a state where they fail, which has density zero.
        """
        states = np.asarray(states, dtype=np.float64)
        try:
            values = self.instance.constrain(states, "transformed" if self.transformed else "parameters")
        except DensityError:
            values = self._constrain_each(states)
        return {name: values[name] for name in self.info.layout.parameters}

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Map named parameters (n, ...) to states (n, dim); transformed parameters are ignored.

        Raises
        ------
        InvalidArgumentError
            A parameter is missing, has another shape, or a value outside its declared support.
        """
        try:
            return self.instance.unconstrain(parameters)
        except DensityError as error:
            raise InvalidArgumentError(
                f"parameters hold a value outside the support of the program: {error}. Pass draws of this program."
            ) from error

    def _constrain_each(self, states: FloatArray) -> dict[str, FloatArray]:
        values = self.instance.constrain(states)
        for name in self.transformed:
            values[name] = np.full((len(states), *self.instance.shape(name)), np.nan)
        for row in range(len(states)):
            try:
                whole = self.instance.constrain(states[row : row + 1], "transformed")
            except DensityError:
                continue
            for name in self.transformed:
                values[name][row] = whole[name][0]
        return values

    def rows(self, data: Mapping[str, NDArray[Any]]) -> Rows:
        """Return the posteriors of many data sets; see `bread.backends.base.Model.rows`."""
        expected = self.info.data.observed
        arrays = {name: np.asarray(values) for name, values in data.items()}
        shapes = {name: values.shape[1:] for name, values in arrays.items()}
        if self.given is not None or shapes != {name: values.shape for name, values in expected.items()}:
            return RowsOneByOne(self.condition, data)  # which says what is wrong
        typed = {name: np.asarray(values, dtype=expected[name].dtype) for name, values in arrays.items()}
        return StanRows(self.instance, self._fixed_json, typed, self.log_integral, self.kernel, self.condition)

    def condition(self, data: Data) -> StanPosterior:
        """Return the posterior given ``data``, each observed variable in the shape of the real data.

        Raises
        ------
        InvalidArgumentError
            For a missing or unknown variable, another shape, or values that the data block refuses.
        """
        instance, refusals = self.condition_instance(data), self.info.path_refusals
        return StanPosterior(instance, self.draws, self.kernel, refusals, self.log_integral)

    def condition_instance(self, data: Data) -> StanInstance:
        """Return the tempered program with other observed data."""
        arrays = self.checked_data(data)
        return self.library.instance(joined_json(self._fixed_json, data_json(arrays)), law=self.law, given=self.given)

    def given_real_data(self) -> StanModel:
        """Return this model with its posterior given the real data as its prior; see `bread.backends.base.Model`.

        Raises
        ------
        UnsupportedModelError
            The likelihood cannot be told from the prior.
        """
        if self.program.split_refusal is not None:
            raise UnsupportedModelError(
                f"simulate_from='posterior' needs the likelihood apart: {self.program.split_refusal}"
            )
        return replace(self, given=self.instance)

    def localise(self, names: Sequence[str], reference: Reference) -> StanModel:
        """Return this model with ``reference`` as the law of the named parameters; compiles once a set of names.

        The program is checked as at its opening.

        Raises
        ------
        UnsupportedModelError
            The law of the named parameters cannot be told from that of the others, depends on them, or their type is
            neither real, vector, row vector nor matrix (or arrays of these).
        InvalidArgumentError
            A name is no parameter, or the reference has another number of coordinates.
        """
        parts = localising.localise(
            self.program, self.data, self.instance, self.draws, self.info.layout.positions, names, reference
        )
        model = replace(self, library=parts.library, law=parts.law, instance=parts.instance, draws=parts.draws)
        proven = proof.prove_simulator(self.program, model.draws, model.condition_instance)
        info = model.info.with_notes((*model.info.identity.notes, parts.note, *proven.notes))
        return replace(model, info=info, log_integral=proven.log_integral)
