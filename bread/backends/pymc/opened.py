"""A PyMC model, read, checked and compiled: the contract's `Model`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pymc as pm
import pytensor
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import (
    AnnealRun,
    Data,
    Direction,
    Fit,
    FloatArray,
    ModelInfo,
    Node,
    OpenOptions,
    Replicates,
    Simulations,
)
from bread.backends.pymc import fitting
from bread.backends.pymc.compiled_modules import TravelsCompiled
from bread.backends.pymc.density.localised import check_localisable, localise_simulator, refuse_simulator
from bread.backends.pymc.kernels.engine import Engine
from bread.backends.pymc.kernels.engines import compile_engine
from bread.backends.pymc.kernels.stepping import AsItIsStep
from bread.backends.pymc.known_bugs import find_known_bugs, warn_of
from bread.backends.pymc.model import reading
from bread.backends.pymc.model.bambi import pymc_model
from bread.backends.pymc.model.fingerprint import fingerprint
from bread.backends.pymc.model.periodic import PeriodicPosterior, read_periodic, refuse_reference
from bread.backends.pymc.model.refusals import has_own_data_only, refuse_paths, refuse_unsupported
from bread.backends.pymc.own_draws import read_draws
from bread.backends.pymc.posterior import PyMCPosterior
from bread.backends.pymc.proof import prove, prove_alone
from bread.backends.pymc.separable import SeparableModel
from bread.backends.pymc.simulation.replicating import Replicator
from bread.backends.pymc.simulation.simulation import Simulator, build_simulator
from bread.backends.pymc.simulation.user_simulator import use_function
from bread.backends.pymc.vectorised.engine import VectorEngine
from bread.backends.pymc.vectorised.opening import NAMES, Vectorised, vectorise
from bread.backends.pymc.vectorised.packages import require_packages
from bread.backends.pymc.vectorised.posterior import ChainsOfOne, VectorPosterior, anneal_together
from bread.backends.support.posterior_draws import require_support
from bread.backends.support.rows import Rows, RowsOneByOne
from bread.errors import InvalidArgumentError, UnsupportedKernelError, UnsupportedModelError
from bread.paths.kinds import KINDS, PriorPath, ReferencePath
from bread.paths.mixture import Reference

BASE_IS_FITTED = "simulate_from='posterior' anneals from a base that is fitted to each data set."


@dataclass(frozen=True)
class PyMCModel(TravelsCompiled, SeparableModel):
    """Implements `bread.backends.base.Model` for PyMC.

    A pickled copy simulates, conditions and constrains, compiled; it cannot `fit`: the user's model stays behind.

    Attributes
    ----------
    info : ModelInfo
    simulator : Simulator
    engine : Engine
        Tempered density and step methods.
    periodic : ndarray of bool, shape (dim,)
        Coordinates that are angles.
    user_model : pymc.Model or None
        The user's object; only read. None in a pickled copy.
    kernel : object
        ``OpenOptions.kernel``, for `localise`. None in a pickled copy.
    vector : VectorEngine or None
        What runs the chains; None for `engine`.
    on_jax : bool
        Whether ``engine="blackjax"`` was asked for.
    """

    may_be_inherited: ClassVar[bool] = True

    info: ModelInfo
    simulator: Simulator
    engine: Engine
    periodic: NDArray[np.bool_]
    user_model: Any = None
    kernel: Any = None
    replicator: Replicator | None = field(default=None, compare=False)
    vector: VectorEngine | None = None
    on_jax: bool = False

    def __getstate__(self) -> dict[str, Any]:
        gone = {"user_model": None, "kernel": None, "replicator": None}
        return {name: gone.get(name, value) for name, value in vars(self).items() if name != "first_engine"}

    @property
    def remembers(self) -> bool:
        """Whether a step method runs as it is, so that chains may depend on those before."""
        return any(isinstance(step, AsItIsStep) for step in self.engine.steps)

    def fingerprint(self) -> Any:
        """Return the graph of the user's model; see `bread.backends.pymc.model.fingerprint`."""
        return fingerprint(self.user_model)

    def simulate(self, n: int, *, fixed: Mapping[str, NDArray[Any]] | None, seed: SeedSequence) -> Simulations:
        """Draw parameters and data jointly; see `bread.backends.base.Model.simulate`."""
        return self.simulator.simulate(n, fixed=fixed, seed=seed)

    def fit(self, *, seed: int, cores: int, progressbar: bool) -> Fit:
        """Sample the posterior on the real data with ``pm.sample`` and its defaults.

        Raises
        ------
        InvalidArgumentError
            If the data of the user's model were changed after it was opened.
        UnsupportedModelError
            If ``pm.sample`` fails.
        """
        if self.user_model is None:
            raise InvalidArgumentError("A pickled copy of a model cannot be fitted; fit in the process that opened it.")
        self._require_same_data()
        return fitting.fit(self.user_model, self.simulator.names, seed=seed, cores=cores, progressbar=progressbar)

    def _require_same_data(self) -> None:
        covariates = {name: value for name, (_, value) in self.info.data.constants.items()}
        now = {name: value for name, (_, value) in reading.read_constant_data(self.user_model).items()}
        for name, old in {**covariates, **self.info.data.observed}.items():
            new = {**now, **reading.read_observed(self.user_model)}[name]
            if not np.array_equal(old, new, equal_nan=old.dtype.kind == "f"):
                raise InvalidArgumentError(
                    f"The data {name!r} of the model were changed after it was opened. Call bread.check again, on the "
                    "model as it now is."
                )

    def read_posterior(self, posterior: Any) -> Fit:
        """Read the user's own draws; see `bread.backends.pymc.own_draws.read_draws`.

        Raises
        ------
        InvalidArgumentError
            They are no draws of this model, or it is a pickled copy.
        """
        if self.user_model is None:
            raise InvalidArgumentError("A pickled copy of a model reads no draws; use the process that opened it.")
        layout, fit = self.info.layout, read_draws(self.user_model, posterior)
        if fit.missing:
            return fit
        states = self.simulator.unconstrain(fit.flat_draws())
        require_support(fit, states, layout.positions, self._log_prior if self._has_prior() else None)
        return fit

    def _has_prior(self) -> bool:
        return PriorPath.name in self.info.paths

    def _log_prior(self, states: FloatArray) -> FloatArray:
        """Return the log density of the prior at states (n, dim), in nats; NaN where it raises."""
        return PyMCPosterior(self.engine, self.simulator, self.info.data.observed).log_base(PriorPath(), states)

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Map states (n, dim) to named parameters (n, ...)."""
        return self.simulator.constrain(np.asarray(states, dtype=np.float64))

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Map free variables (n, ...) to states (n, dim); other names are ignored."""
        return self.simulator.unconstrain(parameters)

    def localise(self, names: Sequence[str], reference: Reference) -> PyMCModel:
        """Return this model with ``reference`` as the law of the named variables; see `bread.backends.base.Model`.

        Raises
        ------
        UnsupportedModelError
            The law of the named variables cannot be told from that of the others, or draws from it cannot be
            simulated from.
        InvalidArgumentError
            For an unknown name, a reference of another dimension, a pickled copy, or data changed since it was opened.
        """
        if self.user_model is None:
            raise InvalidArgumentError("A pickled copy of a model cannot be localised; use the process that opened it.")
        self._require_same_data()
        with warnings.catch_warnings(action="ignore"):
            return _localise(self, names, reference)

    def derive(self, states: FloatArray, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return nothing: deterministics are among the parameters of the layout."""
        return {}

    def given_real_data(self) -> PyMCModel:
        """Return this model with its posterior given the real data as its prior; see `bread.backends.base.Model`.

        Raises
        ------
        UnsupportedModelError
            Data cannot be simulated given the free variables, or a base cannot be fitted to the posterior.
        InvalidArgumentError
            For a pickled copy, or data changed since it was opened.
        """
        if self.user_model is None:
            raise InvalidArgumentError("A pickled copy of a model has no graph; use the process that opened it.")
        self._require_same_data()
        with warnings.catch_warnings(action="ignore"):
            return _given_real_data(self)

    def nodes(self) -> tuple[Node, ...]:
        """Return every observed and every free variable as a node; none in a pickled copy."""
        return () if self.replicator is None else self.replicator.nodes()

    def replicate(
        self, state: FloatArray, node: str, n: int, *, seed: SeedSequence, data: Data | None = None
    ) -> Replicates:
        """Draw replicates of a variable from its own distribution; see `bread.backends.base.Model.replicate`.

        Raises
        ------
        UnsupportedModelError
            The variable cannot be replicated, or the model is a pickled copy.
        """
        if self.replicator is None:
            raise UnsupportedModelError(
                "A pickled copy of a model cannot replicate its variables; do it in the process that opened it."
            )
        values = self.info.data.observed if data is None else data
        with warnings.catch_warnings(action="ignore"):
            return self.replicator.replicate(np.asarray(state, dtype=np.float64), node, n, seed, values)

    def node_log_prior(self, node: str, states: FloatArray, *, jacobian: bool = True) -> FloatArray:
        """Return the log density of a free variable given its parents; see `bread.backends.base.Model`.

        Raises
        ------
        UnsupportedModelError
            It cannot be evaluated, or the model is a pickled copy.
        """
        if self.replicator is None:
            raise UnsupportedModelError("A pickled copy of a model has no densities of single variables.")
        with warnings.catch_warnings(action="ignore"):
            return self.replicator.log_prior(node, np.asarray(states, dtype=np.float64), jacobian=jacobian)

    def rows(self, data: Mapping[str, NDArray[Any]]) -> Rows:
        """Return the posteriors of many data sets; see `bread.backends.base.Model.rows`."""
        return RowsOneByOne(self.condition, data)

    @property
    def chains_at_once(self) -> int:
        """Number of chains that `anneal_together` moves."""
        return 1 if self.vector is None else self.vector.lanes

    def anneal_together(
        self, chains: Sequence[ChainsOfOne], betas: FloatArray, direction: Direction
    ) -> list[AnnealRun]:
        """Run the chains of several data sets at once, each as `Posterior.anneal` would."""
        return anneal_together(chains, betas, direction)

    def condition(self, data: Data) -> PyMCPosterior:
        """Return the posterior given ``data``, each observed variable in the shape of the real data.

        Raises
        ------
        InvalidArgumentError
            For a missing or unknown variable, or another shape.
        """
        arrays = self.simulator.check_data(data)
        if self.vector is not None:
            return VectorPosterior(self.engine, self.simulator, arrays, self.vector)
        if np.any(self.periodic):
            return PeriodicPosterior(self.engine, self.simulator, arrays, self.periodic)
        return PyMCPosterior(engine=self.engine, simulator=self.simulator, data=arrays)


def open_model(model: Any, options: OpenOptions) -> PyMCModel:
    """Read, check and compile a PyMC model, or the one that a Bambi model builds.

    The model, its random generators and its data are never changed; a Bambi model is built, if it was not yet.

    Raises
    ------
    UnsupportedModelError
        If the model cannot be simulated or annealed exactly.
    UnsupportedKernelError
        If the kernel cannot be frozen or reversed, or does not fit the model.
    InvalidArgumentError
        For an option that has no such value.

    Warns
    -----
    KnownBugWarning
        The model meets a defect of the installed version of PyMC.
    """
    if options.engine not in (None, *NAMES):
        valid = ", ".join(map(repr, NAMES))
        raise InvalidArgumentError(f"engine={options.engine!r} is unknown for a PyMC model. Valid: {valid}.")
    if options.engine == "blackjax":
        require_packages()
    options.refuse(
        ("data", "observed", "likelihood"),
        "is for Stan programs; a PyMC model has its own data and observed variables",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what PyMC has to say of the model it said when the model was built
        model = pymc_model(model)
        opened = _open(model, options)
    warn_of(find_known_bugs(model, pm.__version__))
    return opened


def _open(model: Any, options: OpenOptions) -> PyMCModel:
    function, simulate_from = options.simulator, options.simulate_from
    is_localised, is_given = simulate_from == "localised", simulate_from == "posterior"
    names = options.hyperparameters
    chosen = names if names is not None else reading.default_hyperparameters(model)
    localised = chosen if is_localised else ()
    needs_none = function is not None or options.density_only or is_given
    point = refuse_unsupported(
        model, options.kernel, has_simulator=needs_none, localised=localised, density_only=options.density_only
    )
    options.look_at_draws(partial(read_draws, model))
    layout = reading.read_layout(model, point)
    if is_localised:
        refuse_simulator(function)
        localised = chosen = check_localisable(model, layout, chosen)
    elif names is not None:
        chosen = reading.check_fixed_names(reading.read_parents(model), names, "hyperparameters")
    deterministics = reading.usable_deterministics(model)[0]
    notes = _notes(model)
    observed = reading.read_observed(model)
    simulator = build_simulator(model, layout, observed, deterministics)
    if function is not None:
        constants = {name: value for name, (_, value) in reading.read_constant_data(model).items()}
        simulator = use_function(simulator, function, {**constants, **observed})
        if simulate_from in ("fitted", "posterior"):
            simulator.require_fixable(simulator.names if is_given else chosen)
    # the simulator of a localised model exists when its hyperparameters have their law
    if not (is_localised or is_given or options.density_only):
        notes += simulator.pilot()
    info = reading.read_info(
        model,
        layout,
        deterministics,
        chosen,
        kernel="",
        versions={"pymc": pm.__version__, "pytensor": pytensor.__version__},
        notes=tuple(notes),
    )
    periodic = read_periodic(model, layout, localised)
    refusals = {**refuse_reference(layout.coordinates, periodic), **refuse_paths(model, localised)}
    engine = compile_engine(
        model, layout, options.kernel, refusals=refusals, as_it_is=options.any_kernel, at_once=not options.density_only
    )
    if not options.density_only:  # which is asked for on the real data alone
        prove(model, simulator, engine)
    has_own_data = options.density_only and has_own_data_only(model)
    if has_own_data:
        prove_alone(model, simulator, engine)
    if is_given and ReferencePath.name in engine.path_refusals:
        raise UnsupportedModelError(f"{BASE_IS_FITTED} {engine.path_refusals[ReferencePath.name]}")
    on_jax = options.engine == "blackjax"  # a localised model is converted once its hyperparameters have their law
    if is_given and on_jax:
        raise UnsupportedModelError(
            f"simulate_from='posterior' runs on PyMC's own engine alone; received engine={options.engine!r}. Leave "
            "engine= out."
        )
    vectorised = vectorise(model, layout, engine, simulator, periodic) if on_jax and not is_localised else Vectorised()
    info = _with_engine(info, engine, vectorised, needs_path=not options.density_only)
    replicator = None if has_own_data else Replicator(model, simulator)
    return PyMCModel(info, simulator, engine, periodic, model, options.kernel, replicator, vectorised.engine, on_jax)


def _localise(opened: PyMCModel, names: Sequence[str], reference: Reference) -> PyMCModel:
    model, layout = opened.user_model, opened.simulator.layout
    refuse_simulator(getattr(opened.simulator, "function", None))
    names = check_localisable(model, layout, names)
    simulator = localise_simulator(model, opened.simulator, names, reference)
    periodic = read_periodic(model, layout, names)
    refusals = refuse_reference(layout.coordinates, periodic)
    engine = compile_engine(model, layout, opened.kernel, law=simulator.law, refusals=refusals)
    prove(model, simulator, engine, simulator.law)
    notes = (*_notes(model), *simulator.pilot())
    vectorised = Vectorised()
    if opened.on_jax:
        vectorised = vectorise(model, layout, engine, simulator, periodic, simulator.law)
    info = _with_engine(opened.info.with_notes(notes), engine, vectorised)
    replicator = Replicator(model, simulator, tuple(names))
    chains = vectorised.engine, opened.on_jax
    return PyMCModel(info, simulator, engine, periodic, model, opened.kernel, replicator, *chains)


def _given_real_data(opened: PyMCModel) -> PyMCModel:
    model, simulator = opened.user_model, opened.simulator
    refusals = refuse_reference(simulator.layout.coordinates, opened.periodic)
    engine = compile_engine(model, simulator.layout, opened.kernel, refusals=refusals, given_real_data=True)
    prove(model, simulator, engine, given_real_data=True)
    info = _with_engine(opened.info, engine, Vectorised())
    return replace(opened, info=info, engine=engine, replicator=Replicator(model, simulator))


def _notes(model: Any) -> list[str]:
    """Return what a report says of a model before anything was drawn."""
    known = [found.text for found in find_known_bugs(model, pm.__version__)]
    return [*known, *reading.usable_deterministics(model)[1]]


def _with_engine(info: ModelInfo, engine: Engine, vectorised: Vectorised, *, needs_path: bool = True) -> ModelInfo:
    refusals = engine.path_refusals
    identity = vectorised.identify(replace(info.identity, kernel=engine.name))
    may_propose = engine.may_propose and vectorised.engine is None
    named = replace(info, identity=identity, path_refusals=refusals, may_propose=may_propose)
    if needs_path and not named.paths:
        raise UnsupportedKernelError(f"No path is left for model and kernel. {' '.join(refusals[k] for k in KINDS)}")
    return named
