"""Are two models one model, written in other parameters? Asked before they are compared on one set of exact draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bread.backends.base import FloatArray, Model, Simulations
from bread.errors import BreadError, InvalidArgumentError
from bread.paths.kinds import PriorPath
from bread.running.compare.mapped import MappedModel
from bread.seeds import Purpose, seed_sequence
from bread.statistics.compare.paired import same_law_p_value

DATA_SETS, STATES = 3, 10  # of the comparison of densities
STEP = 1e-5  # of differences, times the size of a coordinate
TOLERANCE = 1e-3  # nats, by which log densities may differ but for a constant
ROUNDING = 1e-9  # of a log density
DRAWS = 300  # of each model, where densities cannot be compared
MOST_COLUMNS = 300
LEVEL = 1e-4  # of the comparison of draws: a refusal that is wrong once in ten thousand
_FIRST = 0  # numbers of the random streams: draws that are mapped, and the model's own
_OWN = 1


@dataclass(frozen=True)
class Compared:
    """How it was seen that two models are one.

    Attributes
    ----------
    by : {"density", "draws", "tests alone"}
        "density": log densities differ by a constant, which proves it but for chance. "draws": their simulators draw
        alike. "tests alone": neither could be asked; the tests of exact draws stand alone.
    note : str
        What could not be compared, and why.
    """

    by: str
    note: str = ""


def require_same_data(model: Model, source: Model, name: str, source_name: str) -> None:
    """Refuse a model whose outcomes have other names or shapes than those of the source.

    Raises
    ------
    InvalidArgumentError
    """
    own, drawn = model.info.data.observed, source.info.data.observed
    if set(own) != set(drawn):
        raise InvalidArgumentError(
            f"models are compared on the same simulated data, but {source_name!r} observes {', '.join(sorted(drawn))} "
            f"and {name!r} observes {', '.join(sorted(own))}. Give the observed variables the same names."
        )
    for key, values in own.items():
        if np.shape(values) != np.shape(drawn[key]):
            raise InvalidArgumentError(
                f"models are compared on the same simulated data, but {key!r} has shape {np.shape(drawn[key])} in "
                f"{source_name!r} and {np.shape(values)} in {name!r}. Pass them data of the same shape."
            )
        if np.issubdtype(np.asarray(values).dtype, np.integer) and not _is_whole(np.asarray(drawn[key])):
            raise InvalidArgumentError(
                f"{key!r} holds whole numbers in {name!r} and others in {source_name!r}: these are two models."
            )


def require_same_posterior(mapped: MappedModel, source: Model, name: str, source_name: str, root: int) -> Compared:
    """Refuse a model that is not the source in other parameters.

    Where both have as many coordinates, all continuous, log densities at mapped states must differ by the logarithm of
    the mapping's Jacobian and by a constant that depends on the data alone. Else draws of both simulators are compared.

    Parameters
    ----------
    mapped : MappedModel
        The model with the source's draws.
    source : Model
    name, source_name : str
    root : int
        Root entropy.

    Returns
    -------
    Compared

    Raises
    ------
    InvalidArgumentError
        They are two models, or the mapping is not the right one.
    """
    layouts = mapped.info.layout, source.info.layout
    if layouts[0].dim == layouts[1].dim and not any(np.any(layout.discrete) for layout in layouts):
        try:
            size = _largest_difference(mapped, source, root)
        except InvalidArgumentError:
            raise
        except Exception as error:
            return _compare_draws(mapped, name, source_name, root, f"{type(error).__name__}: {error}")
        if size > TOLERANCE:
            raise InvalidArgumentError(
                f"{name!r} is not {source_name!r} in other parameters: at mapped draws, with the mapping's Jacobian, "
                f"their log densities differ by {size:.3g} nats more than a constant. Models, priors and constants "
                f"must be the same, and mapping[{name!r}] must give the parameters of {name!r} that belong to those "
                f"of {source_name!r}."
            )
        return Compared("density")
    return _compare_draws(mapped, name, source_name, root, "")


def _largest_difference(mapped: MappedModel, source: Model, root: int) -> float:
    """Return by how many nats log densities differ, beyond constants of the data; infinite where one is zero."""
    seed = seed_sequence(root, Purpose.COMPARE, _FIRST)
    here, there = (one.simulate(STATES, fixed=None, seed=seed) for one in (source, mapped))
    jacobian = np.array([_log_jacobian(mapped, source, state) for state in here.states])
    path, worst = PriorPath(), 0.0
    for index in range(DATA_SETS):
        first = source.condition(here.data_of(index)).log_density(path, here.states)
        second = mapped.condition(there.data_of(index)).log_density(path, there.states)
        if np.isnan(first).any() or np.isnan(second).any():
            raise BreadError("A log density is NaN at an exact draw.")
        is_positive = np.isfinite(first), np.isfinite(second)
        if (is_positive[0] != is_positive[1]).any():
            return float("inf")
        both = is_positive[0]
        rest = (first - second - jacobian)[both]
        allowed = ROUNDING * float(np.abs(first[both]).max(initial=0.0))
        worst = max(worst, float(np.ptp(rest)) - allowed if len(rest) else 0.0)
    return worst


def _log_jacobian(mapped: MappedModel, source: Model, state: FloatArray) -> float:
    """Return log |det dg / dtheta| at one state of the source, both in unconstrained coordinates, by differences."""
    if mapped.is_same_space:
        return 0.0
    steps = STEP * np.maximum(1.0, np.abs(state))
    moved = np.concatenate([state + np.diag(steps), state - np.diag(steps)])
    images = mapped.mapped_states(source.constrain(moved), len(moved))
    dim = len(state)
    sign, size = np.linalg.slogdet((images[:dim] - images[dim:]) / (2.0 * steps[:, None]))
    if sign == 0 or not np.isfinite(size):
        raise BreadError("The mapping is not one to one at an exact draw.")
    return float(size)


def _compare_draws(mapped: MappedModel, name: str, source_name: str, root: int, why: str) -> Compared:
    """Compare mapped draws with the model's own, by parameters, data and log likelihoods."""
    drawn = mapped.simulate(DRAWS, fixed=None, seed=seed_sequence(root, Purpose.COMPARE, _FIRST))
    try:
        own = mapped.inner.simulate(DRAWS, fixed=None, seed=seed_sequence(root, Purpose.COMPARE, _OWN))
    except BreadError as error:
        return Compared("tests alone", f"{name!r} draws no data of its own ({type(error).__name__}: {error})")
    p_value = same_law_p_value(_columns(mapped, drawn), _columns(mapped, own))
    if p_value < LEVEL:
        raise InvalidArgumentError(
            f"{name!r} is not {source_name!r} in other parameters: {DRAWS} draws of parameters and data from its "
            f"simulator do not look like as many of {source_name!r} (p = {p_value:.2g}). Models, priors and constants "
            f"must be the same, and mapping[{name!r}] must give the parameters that belong to those of {source_name!r}."
        )
    return Compared("draws", why)


def _columns(model: MappedModel, simulations: Simulations) -> FloatArray:
    """Return what is compared: coordinates, outcomes, and the log likelihood, which knows how they belong together."""
    n = len(simulations)
    parts = [simulations.states, *(np.asarray(v, dtype=np.float64).reshape(n, -1) for v in simulations.data.values())]
    if PriorPath.name in model.info.paths:
        path = PriorPath()
        log_ratio = [
            model.condition(simulations.data_of(i)).log_ratio(path, simulations.states[i : i + 1])[0] for i in range(n)
        ]
        parts.append(np.array(log_ratio)[:, None])
    table = np.concatenate(parts, axis=1)
    return table[:, np.unique(np.linspace(0, table.shape[1] - 1, MOST_COLUMNS).astype(int))]


def _is_whole(values: FloatArray) -> bool:
    return bool(np.issubdtype(values.dtype, np.integer) or values.dtype == bool or (values == np.round(values)).all())
