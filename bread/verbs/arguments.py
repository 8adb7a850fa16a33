"""The arguments of `bread.check`: what is allowed, what stands for a default, and how a report keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.argument_rules import elements, is_count, is_number, received, require_choice, require_count
from bread.backends.base import Model, ModelInfo, OpenOptions
from bread.backends.support.posterior_draws import named_as, require_all
from bread.errors import InvalidArgumentError, UnsupportedModelError
from bread.fitting.gaussian.families import first_fit
from bread.jobs.interrupts import can_limit
from bread.paths import schedules
from bread.paths.kinds import KINDS, PriorPath, ReferencePath
from bread.paths.mixture import Reference
from bread.paths.user import as_reference
from bread.running.state.budget import read_budget
from bread.running.state.plan import AUTO, NO_PRIOR_PATH, PathRequest, Plan, protocols
from bread.seeds import Purpose, root_entropy, seed_sequence
from bread.statistics.bounds.goal import Goal

PROTOCOLS = (AUTO, "fitted", "prior", "posterior", "localised")


@dataclass(frozen=True)
class Arguments:
    """The arguments of `bread.check` but for model and data, as given and checked.

    Raises
    ------
    InvalidArgumentError
        One of them is not allowed, whatever the model.
    """

    simulate_from: str
    hyperparameters: Any
    posterior: Any
    init_steps: int
    simulations: int
    chains: int
    n_temperatures: Any
    max_temperatures: int
    max_error: float
    target: float | None
    path: Any
    schedule: Any
    kernel: Any
    engine: str | None
    tune: int
    tune_on: str
    draws: int | None
    cores: int | None
    random_seed: int | None
    progressbar: bool
    observed: Any
    simulator: Any
    likelihood: Any
    budget: Any = None
    max_seconds: Any = None

    def __post_init__(self) -> None:
        read_temperatures(self.n_temperatures, self.schedule, self.max_temperatures)
        read_names("hyperparameters", self.hyperparameters)
        require_choice("simulate_from", self.simulate_from, PROTOCOLS)
        if self.simulate_from == "posterior" and self.names is not None:
            raise InvalidArgumentError(
                f"simulate_from='posterior' holds nothing, but hyperparameters= names {', '.join(self.names)}. Leave "
                "hyperparameters= out, or use simulate_from='fitted' or 'localised'."
            )
        if isinstance(self.path, str):
            require_choice("path", self.path, (*KINDS, AUTO))
        require_choice("tune_on", self.tune_on, ("auto", "each", "shared"))
        for name, least in (("simulations", 1), ("chains", 1), ("init_steps", 0), ("tune", 10)):
            require_count(name, getattr(self, name), least)
        if self.draws is not None:
            require_count("draws", self.draws, 0)
        if not (is_number(self.max_error) and 0 < self.max_error < 1):
            raise InvalidArgumentError(
                "max_error, the largest error of a probability, must lie between 0 and 1, got "
                f"{received(self.max_error)}."
            )
        if not (self.target is None or (is_number(self.target) and self.target > 0)):
            raise InvalidArgumentError(
                f"target must be None or a positive number of nats, got {received(self.target)}."
            )
        if read_budget(self.budget) is not None and not (
            self.n_temperatures is None and isinstance(self.schedule, str)
        ):
            raise InvalidArgumentError(
                "A budget chooses the number of temperatures, so it goes with neither n_temperatures nor an array of "
                f"betas; got budget={received(self.budget)}. Leave out the one or the other; max_temperatures may be "
                "given."
            )

        if not (self.max_seconds is None or (is_number(self.max_seconds) and self.max_seconds > 0)):
            raise InvalidArgumentError(
                f"max_seconds must be None or a positive number of seconds, got {received(self.max_seconds)}."
            )
        if self.max_seconds is not None and not can_limit():
            raise InvalidArgumentError(
                "max_seconds stops a check as a signal does, which Python gives to the main thread alone: call "
                "bread.check from there, or leave max_seconds out."
            )

    @property
    def names(self) -> tuple[str, ...] | None:
        """The hyperparameters that were asked for."""
        return read_names("hyperparameters", self.hyperparameters)

    @property
    def protocols(self) -> tuple[str, ...]:
        """Where data sets may come from, in the order in which that is tried."""
        return protocols(self.simulate_from, self.names, self.path_kind)

    @property
    def path_kind(self) -> str:
        """The kind of path: a reference, or draws to fit one to, stand for themselves."""
        return self.path if isinstance(self.path, str) else ReferencePath.name

    @property
    def tunes_each(self) -> bool:
        """Whether every data set has a kernel of its own."""
        return self.tune_on == "each" or (self.tune_on == "auto" and self.simulate_from == "prior")

    def require_path(self, info: ModelInfo) -> None:
        """Refuse a path that the model, its kernel or the protocol cannot follow.

        Raises
        ------
        UnsupportedModelError
            With the way out.
        """
        require_path(self.path_kind, info)
        if self.simulate_from == "posterior" and self.path_kind == PriorPath.name:
            raise UnsupportedModelError(f"path='prior': {NO_PRIOR_PATH}")

    def open_options(self, data: Any) -> OpenOptions:
        """Return what a backend is told when it opens the model; under "auto" its density is all that is asked for."""
        draws = {"posterior": self.posterior, "path": self.path if _is_draws(self.path) else None}
        options = OpenOptions(
            data=data,
            observed=self.observed,
            likelihood=self.likelihood,
            density_only=self.simulate_from == AUTO,
            draws={name: one for name, one in draws.items() if one is not None},
        )
        if options.density_only:
            return options
        return replace(
            options,
            kernel=self.kernel,
            engine=self.engine,
            hyperparameters=self.names,
            simulator=self.simulator,
            simulate_from=self.simulate_from,
        )

    def settings(self, plan: Plan) -> dict[str, Any]:
        """Return every argument, with defaults filled in, as JSON can hold it."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        filled = {
            "hyperparameters": list(plan.hyperparameters),
            "tune_on": "each" if plan.tune_each else "shared",
            "posterior": self.posterior is not None,
        }
        return {name: _plain(value) for name, value in (values | filled).items()}


def make_plan(arguments: Arguments, model: Model) -> Plan:
    """Return what to run on this model.

    Raises
    ------
    UnsupportedModelError
        The model or its kernel cannot follow the path.
    InvalidArgumentError
        A reference given as ``path`` has another density than its draws.
    """
    root = root_entropy(arguments.random_seed)
    if arguments.simulate_from != AUTO:  # else nothing is annealed
        arguments.require_path(model.info)
    return Plan(
        simulate_from=arguments.simulate_from,
        hyperparameters=model.info.layout.hyperparameters if arguments.names is None else arguments.names,
        init_steps=arguments.init_steps,
        simulations=arguments.simulations,
        chains=arguments.chains,
        n_temperatures=read_temperatures(arguments.n_temperatures, arguments.schedule, arguments.max_temperatures),
        max_temperatures=arguments.max_temperatures,
        goal=Goal(float(arguments.max_error), None if arguments.target is None else float(arguments.target)),
        schedule=arguments.schedule,
        path=PathRequest(
            arguments.path_kind, None if isinstance(arguments.path, str) else _reference(arguments.path, model, root)
        ),
        tune=arguments.tune,
        tune_each=arguments.tunes_each,
        draws=arguments.draws,
        root=root,
        budget=read_budget(arguments.budget),
    )


def _reference(path: Any, model: Model, root: int) -> Reference:
    """Return the user's reference, tested, or one fitted to the user's draws."""
    if not _is_draws(path):
        from bread.fitting.user_references import examined  # scipy.stats takes a second, in which workers start

        given = as_reference(path)
        if given.is_own:
            return given
        return examined(given, model.info.layout.dim, seed_sequence(root, Purpose.REFERENCE_TEST))
    with named_as("path"):
        read = model.read_posterior(path)
        require_all(read)
    draws = model.unconstrain(read.flat_draws())
    fitted = first_fit(draws, model.info.layout.may_be_scale)
    return replace(fitted, label=f"{fitted.label}, fitted to the draws given as path=")


def _is_draws(path: Any) -> bool:
    return not isinstance(path, str) and not callable(getattr(path, "log_density", None))


def read_names(argument: str, names: Any) -> tuple[str, ...] | None:
    """Return names of variables; None where they are not given.

    Raises
    ------
    InvalidArgumentError
        They are neither a name nor a sequence of names.
    """
    if names is None:
        return None
    if isinstance(names, str):
        return (names,)
    found = elements(names)
    if found is None or not all(isinstance(name, str) for name in found):
        raise InvalidArgumentError(
            f"{argument} must be a name or a sequence of names, got {received(names)}. Name variables of the model."
        )
    return found


def read_temperatures(n_temperatures: Any, schedule: Any, max_temperatures: int) -> tuple[int, ...] | None:
    """Return the numbers of temperatures to run, in increasing order; None where T is to grow."""
    require_count("max_temperatures", max_temperatures, 2)
    if not isinstance(schedule, str):
        length = len(schedules.explicit(schedule))
        if n_temperatures is not None and not is_count(n_temperatures, length, length):
            raise InvalidArgumentError(
                f"schedule is an array of {length} inverse temperatures, so n_temperatures must be {length} or None, "
                f"got {received(n_temperatures)}."
            )
        return (length,)
    require_choice("schedule", schedule, schedules.NAMES)
    if n_temperatures is None:
        return None
    several = elements(n_temperatures)
    values = (n_temperatures,) if several is None else several
    if not values:
        raise InvalidArgumentError(
            "n_temperatures must be a whole number, a sequence of them or None, got an empty one."
        )
    for value in values:
        require_count("n_temperatures", value, 2)
    return tuple(sorted({int(value) for value in values}))


def require_parameters(names: Sequence[str] | None, info: ModelInfo) -> None:
    """Raise InvalidArgumentError unless the names are free variables of the model."""
    unknown = [name for name in names or () if name not in info.layout.parameters]
    if unknown:
        raise InvalidArgumentError(
            f"hyperparameters names {unknown[0]!r}, which is no free variable of the model; it has "
            f"{', '.join(info.layout.parameters)}."
        )


def require_path(path: str, info: ModelInfo) -> None:
    """Refuse a path that the model or its kernel cannot follow."""
    if path == AUTO:
        if not info.paths:
            raise UnsupportedModelError(" ".join(info.path_refusals.values()))
    elif path not in info.paths:
        raise UnsupportedModelError(f"path={path!r}: {info.path_refusals[path]}")


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple, range)):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        array: NDArray[Any] = value
        return array.tolist()
    return getattr(value, "__name__", type(value).__name__)
