"""Open a Stan program: read, analyse, compile, check; everything that must be refused is refused here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import Fit, FloatArray, Identity, Layout, ModelInfo, OpenOptions, RealData
from bread.backends.stan import fitting, opening, proof
from bread.backends.stan.analysis.analyse import analyse
from bread.backends.stan.analysis.program import Program
from bread.backends.stan.describing import (
    RESERVED_NAMES,
    bracketed,
    dims,
    is_storable,
    lengths,
    name_of_coordinate,
    note_on_stan,
    notes_on_program,
    path_refusals,
    transformed_parameters,
    versions,
)
from bread.backends.stan.language.places import without_place
from bread.backends.stan.language.refusals import RefusedError
from bread.backends.stan.language.scopes import resolve
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import parse
from bread.backends.stan.localising import require_localisable, rewrite
from bread.backends.stan.model import StanModel
from bread.backends.stan.native.build import ORIGINAL
from bread.backends.stan.native.kernels import read_kernel
from bread.backends.stan.native.library import StanInstance, StanLibrary
from bread.backends.stan.native.toolchain import Toolchain, find_toolchain
from bread.backends.stan.places import in_users_files
from bread.backends.stan.simulation import (
    DerivedDrawError,
    DerivedSimulator,
    JointSimulator,
    NoSimulator,
    require_fixable,
)
from bread.backends.stan.simulator.derivation import COUNTED
from bread.backends.stan.state_draws import TIMES_OVER, StateDraws
from bread.backends.stan.user_simulator import read_simulator
from bread.backends.support.arguments import require_parameters
from bread.errors import BreadError, DensityError, InvalidArgumentError, UnsupportedModelError

_AS_IT_IS = "which takes the program as it is."


def open_model(model: Any, options: OpenOptions) -> StanModel:
    """Read, analyse, compile and check a Stan program with its data.

    Parameters
    ----------
    model : CmdStanModel, path or str
        See `bread.backends.stan.opening.read_program`.
    options : OpenOptions
        ``data`` is a dict or the path of a JSON file, ``simulator`` a callable or a Stan program, ``likelihood`` line
        numbers of the program.

    Returns
    -------
    StanModel
        It fits real data by the ``sample`` of a CmdStanModel that is compiled or can be; a program given by its path
        or text is fitted by Stan's NUTS in the embedded engine, whatever is installed.

    Raises
    ------
    InvalidArgumentError
        The program, data or options have a mistake; the message names the line of the program where there is one.
    UnsupportedModelError
        The program cannot be simulated exactly, or its density is not the one that was analysed; construct, line and
        way out. A program that cannot be split needs ``simulator``, unless one can be derived, and then allows paths
        from a reference alone.
    UnsupportedKernelError
        The kernel is neither NUTS nor HMC.
    MissingDependencyError
        There is no Stan or no C++ compiler.
    """
    if options.engine not in (None, "stan"):
        raise InvalidArgumentError(f"engine={options.engine!r} is unknown for a Stan program. Valid: 'stan'.")
    kernel = read_kernel(options.kernel)
    toolchain = find_toolchain()
    source, name = opening.read_program(model)
    # Names that the program lacks do not count, as in Stan; those of bread's own switches would.
    data = {name: value for name, value in opening.read_data(options.data).items() if not name.startswith("bread_")}
    program = analyse(
        source,
        observed=opening.read_names(options.observed),
        data_names=tuple(data),
        likelihood_lines=opening.read_lines(options.likelihood),
        held=_held(options, source, toolchain),
        data=data,
        stanc=toolchain.run_stanc,
    )
    return _Opening(model, name, program, data, options, toolchain).open(options, kernel)


def _held(options: OpenOptions, source: Source, toolchain: Toolchain) -> tuple[str, ...] | None:
    """Return the parameters whose priors need not be drawn; () for those that cannot be, None for none."""
    if options.simulate_from == "posterior":
        return tuple(opening.declared_variables(source, toolchain.run_stanc)[1])
    return options.hyperparameters or () if options.simulate_from == "localised" else None


class _Opening:
    def __init__(
        self,
        model: Any,
        name: str,
        program: Program,
        data: dict[str, Any],
        options: OpenOptions,
        toolchain: Toolchain,
    ) -> None:
        self._model = model
        self._name = name
        self._program = program
        self._options = options
        self._toolchain = toolchain
        self._data = {**data, **program.fixed_data}
        inputs, _ = opening.declared_variables(program.source, toolchain.run_stanc)
        self._inputs = {name: declared for name, declared in inputs.items() if name not in program.copies}
        self._notes: list[str] = [note_on_stan(toolchain), *notes_on_program(program, data)]

    def open(self, options: OpenOptions, kernel: Any) -> StanModel:
        """Put the model together and check it."""
        program = self._program
        self._refuse(options)
        options.look_at_draws(self._read_draws)
        hyperparameters = self._hyperparameters(options)
        if options.simulate_from == "localised":
            require_localisable(program, hyperparameters)
        source = program.source
        library = StanLibrary.of(
            program.tempered,
            self._toolchain,
            original=program.written.text,
            places=in_users_files(source, program.edits),
        )
        copies = {copy: self._data[name] for copy, name in program.copies.items()}
        data = {**self._data, **program.switches, **copies}
        original = self._original(library)  # first, because its messages have the right places
        instance = self._instance(library, data)
        draws = StateDraws(self._simulator(library, data, instance), instance, self._edged(instance))
        if self._options.simulate_from in ("fitted", "localised"):
            require_fixable(hyperparameters, draws.simulator)
        elif self._options.simulate_from == "posterior":
            require_fixable(instance.names("parameters"), draws.simulator)
        transformed = self._transformed(instance)
        model = StanModel(
            self._info(instance, hyperparameters, transformed, kernel.full_name),
            program,
            library,
            data,
            instance,
            draws,
            kernel,
            transformed,
            user_model=self._sampler(),
        )
        log_integral = self._check(model, original)
        return replace(model, info=model.info.with_notes(self._notes), log_integral=log_integral)

    def _refuse(self, options: OpenOptions) -> None:
        program, needs_one = self._program, self._options.simulator is None and not self._options.density_only
        if program.simulator_refusal is not None and needs_one:
            if program.split_refusal is not None:
                raise UnsupportedModelError(
                    f"{program.split_refusal} Or give simulator= and path='reference', which needs no split."
                )
            raise UnsupportedModelError(f"{program.simulator_refusal}{self._way_round_flat_priors(options)}")
        if self._options.simulate_from == "posterior" and program.split_refusal is not None:
            raise UnsupportedModelError(
                f"simulate_from='posterior' needs the likelihood apart: {program.split_refusal}"
            )
        for name in (*(one.name for one in program.parameters), *program.observed):
            if name in RESERVED_NAMES:
                raise UnsupportedModelError(
                    f"The program has a variable {name!r}, which is a dimension of the report. Rename it, for example "
                    f"to {name + '_'!r}."
                )
        for name in program.observed:
            if self._inputs[name].type not in ("int", "real"):
                raise UnsupportedModelError(
                    f"The observed variable {name!r} is a {self._inputs[name].type}; observed variables must be of "
                    "type int or real, or arrays, vectors and matrices of them."
                )

    def _read_draws(self, posterior: Any) -> Fit:
        """Read the user's draws as far as that needs no compiled program: their support is looked at later."""
        shapes = {one.name: lengths(one.dimensions, self._data) for one in self._program.parameters}
        scopes = resolve(parse(self._program.written))
        derived = {one.name: (None,) * one.rank for one in scopes.of_kind("transformed parameter", "generated")}
        labels = {name: dims(name, len(shape)) for name, shape in shapes.items()}
        fit = fitting.read_draws(posterior, shapes, labels, derived)
        return replace(fit, missing=()) if derived.keys() & fit.draws else fit  # they may determine what is missing

    def _way_round_flat_priors(self, options: OpenOptions) -> str:
        """Return which protocol takes the program as it is, if one does; else ""."""
        program, names = self._program, tuple(one.name for one in self._program.parameters)
        if not (program.simulator_refusal and program.simulator_refusal.flat):
            return ""
        if options.hyperparameters is None:  # at draws of the posterior nothing is named
            at_draws = self._holding(names)
            if at_draws.is_automatic and set(names) <= set(at_draws.fixable):
                return f" Or use simulate_from='posterior', {_AS_IT_IS}"
        held = self._holding(options.hyperparameters or ())
        try:
            is_taken = held.is_automatic and bool(rewrite(held, held.held))
        except RefusedError:
            is_taken = False
        return f" Or use simulate_from='localised', {_AS_IT_IS}" if is_taken else ""

    def _holding(self, names: tuple[str, ...]) -> Program:
        """Return the program analysed again, with parameters whose priors need not be drawn."""
        return analyse(
            self._program.written,
            observed=self._program.observed,
            likelihood_lines=opening.read_lines(self._options.likelihood),
            held=names,
            stanc=self._toolchain.run_stanc,
        )

    def _hyperparameters(self, options: OpenOptions) -> tuple[str, ...]:
        if options.hyperparameters is None:
            return self._program.hyperparameters
        require_parameters(options.hyperparameters, [one.name for one in self._program.parameters])
        return options.hyperparameters

    # -- compile ----------------------------------------------------------------------------------------------

    def _instance(self, library: StanLibrary, data: Mapping[str, Any]) -> StanInstance:
        return library.instance(data)

    def _original(self, library: StanLibrary, observed: Mapping[str, Any] | None = None) -> StanInstance:
        return self._instance(library, {**self._data, **(observed or {}), ORIGINAL: 1})

    def _sampler(self) -> Any:
        """Return the user's model if it samples by CmdStan: it is compiled, or CmdStan is there to compile it."""
        is_ready = self._toolchain.source == "CmdStan" or getattr(self._model, "exe_file", None) is not None
        return self._model if is_ready and hasattr(self._model, "sample") else None

    # -- simulate ---------------------------------------------------------------------------------------------

    def _simulator(self, library: StanLibrary, data: dict[str, Any], instance: StanInstance) -> JointSimulator:
        if self._options.density_only:
            return NoSimulator()
        wanted, observed = self._options.simulator, {name: self._array(name) for name in self._program.observed}
        if wanted is not None:
            return read_simulator(wanted, self._data, observed, instance, self._toolchain)
        dtypes = {name: values.dtype for name, values in observed.items()}
        return DerivedSimulator(library, data, instance.names("parameters"), dtypes, self._program.fixable)

    def _check(self, model: StanModel, original: StanInstance) -> float:
        """Prove the model, and return the log integral of its prior; where data are NaN or infinite, name them."""
        try:
            return self._prove(model, original)
        except UnsupportedModelError as error:
            where = opening.where_not_finite(self._data, self._inputs)
            if not where:
                raise
            raise InvalidArgumentError(f"The program cannot use its data. {where} {error}") from error

    def _prove(self, model: StanModel, original: StanInstance) -> float:
        if self._is_checked_later():
            self._refuse_doubled(model)
            self._notes.append(proof.prove_rewrite(model.instance, original, np.empty((0, model.instance.dim))))
            return 0.0
        try:
            states: FloatArray = model.draws.simulate(proof.REWRITE_POINTS, None, np.random.SeedSequence(1))[0]
        except DensityError as error:
            raise UnsupportedModelError(
                f"The program cannot be simulated: {self._why_no_draw(error, original)}"
            ) from error
        try:
            self._notes.append(proof.prove_rewrite(model.instance, original, states))
            proven = proof.prove_simulator(
                self._program,
                model.draws,
                model.condition_instance,
                lambda observed: self._original(model.library, observed),
            )
            self._notes += proven.notes
            return proven.log_integral
        except BreadError as error:
            named = self._options.likelihood
            is_doubtful = named is not None and isinstance(error, UnsupportedModelError)
            doubt = f" Or likelihood={named!r} does not name the likelihood: check its lines." if is_doubtful else ""
            raise type(error)(f"{error}{doubt}") from error

    def _refuse_doubled(self, model: StanModel) -> None:
        """Refuse data that give an element several densities: any draw sees it, before a value is asked for."""
        if not isinstance(model.draws.simulator, DerivedSimulator):
            return
        try:
            model.draws.simulator.draw([np.random.SeedSequence(1)])
        except DensityError as error:
            if COUNTED in str(error):
                raise UnsupportedModelError(f"The program cannot be simulated: {error}") from error

    def _why_no_draw(self, error: DensityError, original: StanInstance) -> str:
        """Return why draws fail: in the program's own words, else by the lines whose generators fail."""
        if not isinstance(error, DerivedDrawError) or "bread:" in str(error):
            return str(error)
        count, is_count, why = str(error).rpartition(TIMES_OVER)
        own = proof.reason_of(original)
        if own:
            return f"{count}{is_count}{own}"
        name, is_generator, _ = why.partition("_rng:")
        density = re.compile(rf"\b{re.escape(name)}(_lpdf|_lpmf)?\s*\(")
        lines = [
            self._program.source.origin(one.line) for one in self._program.contributions if density.search(one.text)
        ]
        places = f" (drawn for {'; '.join(map(str, lines))})" if is_generator and lines else ""
        return f"{count}{is_count}{without_place(why)}{places}. Use priors without such draws, or pass simulator=."

    def _edged(self, instance: StanInstance) -> NDArray[np.bool_]:
        """Return which scores, of prior and of likelihood, need not have mean zero; shape (2, dim)."""
        names = [label.split(".")[0] for label in instance.coordinates]
        edged = (self._program.edged_prior, self._program.edged_likelihood)
        return np.array([[name in one for name in names] for one in edged], dtype=bool)

    def _is_checked_later(self) -> bool:
        """Return whether the simulator is tested near the fit, where it is used: when it is localised, or later.

        Under the prior it may need values that it has no law for, or most of its draws may overflow. Of a density alone
        nothing is simulated.
        """
        return self._options.simulate_from in ("localised", "posterior") or self._options.density_only

    # -- describe ---------------------------------------------------------------------------------------------

    def _array(self, name: str) -> Any:
        return opening.as_array(self._data[name], self._inputs[name])

    def _transformed(self, instance: StanInstance) -> tuple[str, ...]:
        kept, left_out = transformed_parameters(self._program, instance.names("transformed"))
        if left_out:
            self._notes.append(
                f"Transformed parameters left out of the report, because outcomes enter them: {', '.join(left_out)}."
            )
        return kept

    def _info(
        self, instance: StanInstance, hyperparameters: tuple[str, ...], transformed: tuple[str, ...], kernel: str
    ) -> ModelInfo:
        observed = {name: self._array(name) for name in self._program.observed}
        scopes = resolve(parse(self._program.source))
        for name, values in observed.items():
            declared = scopes.named(name, "data")
            opening.require_numbers(name, values, self._program.source.origin(declared.line if declared else 1))
        shown = (*instance.names("parameters"), *transformed)
        names = [name_of_coordinate(label) for label in instance.coordinates]
        constrained = {one.name for one in self._program.parameters if one.is_constrained}
        identity = Identity(self._name, "stan", "stan", kernel, versions(self._toolchain), runs_compiled=True)
        layout = Layout(
            coordinates=tuple(bracketed(label) for label in instance.coordinates),
            discrete=np.zeros(instance.dim, dtype=bool),
            hyperparameters=hyperparameters,
            parameters={name: dims(name, len(instance.shape(name))) for name in shown},
            positions={
                name: np.flatnonzero([other == name for other in names]) for name in instance.names("parameters")
            },
            transformed=np.array([name in constrained for name in names], dtype=bool),
        )
        data = RealData(
            observed=observed,
            observed_dims={name: dims(name, values.ndim) for name, values in observed.items()},
            constants={
                name: (dims(name, declared.rank), self._array(name))
                for name, declared in self._inputs.items()
                if name not in observed and is_storable(name, declared)
            },
        )
        may_propose = self._options.kernel is None
        return ModelInfo(
            identity, layout, data, path_refusals(self._program), may_propose, self._program.outcome_functions
        )


__all__ = ["open_model"]
