"""A proof at opening: on other data than the real ones, the compiled density is PyMC's own of a model with those data.

The compiled density takes any data; PyMC builds one for the data that a model has. They are compared on simulated data:
on the real ones a density that takes a constant of the model for the data would be right. PyMC's own is built for them
once more, with the data as constants, and interpreted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.backends.pymc.density.compiling import detach, interpret_function
from bread.backends.pymc.density.many_states import without_checks
from bread.backends.pymc.density.observed_values import with_values
from bread.backends.pymc.density.reference_graph import LocalLaw
from bread.backends.pymc.kernels.engine import Engine
from bread.backends.pymc.model.reading import read_initial_point, read_observed, read_positions
from bread.backends.pymc.simulation.simulation import Simulator
from bread.errors import UnsupportedModelError

N_STATES = 8  # each nearer to the initial point than the one before, from the jitter of pm.sample on
N_BUILT = 3  # data sets on which PyMC's own density is built, until it is finite
ENOUGH = 3  # states at which both are compared
TOLERANCE = 1e-6  # relative to the size of both terms, and to 1: rewrites of graphs change the order of sums
_SEED = 20161
Terms = Callable[[FloatArray], Any]


def prove(
    model: Any,
    simulator: Simulator,
    engine: Engine,
    law: LocalLaw | None = None,
    *,
    given_real_data: bool = False,
) -> None:
    """Compare the compiled density with PyMC's own, on data that are simulated at states near the initial point.

    Parameters
    ----------
    model : pymc.Model
        Read only.
    simulator : Simulator
    engine : Engine
        Compiled, and along no path yet.
    law : LocalLaw, optional
        Law of some free variables in place of their priors.
    given_real_data : bool, default False
        Whether the prior of the compiled density is the posterior given the model's own data.

    Raises
    ------
    UnsupportedModelError
        They differ; or no data can be simulated whose density PyMC finds finite.
    """
    real = read_observed(model)
    near = _near(simulator, read_initial_point(model))
    drawn = simulator.draw_near(near, SeedSequence(_SEED))
    drawn.sort(key=lambda example: -_share_of_others(example[1], real))
    found = np.full(2, np.nan)
    try:
        for state, data in drawn[:N_BUILT]:
            engine.controls.set_data(data)
            own, n_compared = _own_terms(model, simulator, data, law, given_real_data=given_real_data), 0
            for one in (state, *near):
                found, compiled = _evaluate(own, one), _evaluate(engine.terms, one)
                _require_equal(compiled, found)
                n_compared += bool(np.isfinite(found).all())
                if n_compared == ENOUGH:
                    break
            if n_compared:
                return
    finally:
        engine.controls.set_data(real)
    raise UnsupportedModelError(
        f"Data that are simulated of {', '.join(map(repr, real))} have no finite log density in PyMC: log prior "
        f"{found[0]}, log likelihood {found[1]}. What draws a variable must belong to its density: correct random= or "
        "logp= of a pm.CustomDist, or simulator=."
    )


def prove_alone(model: Any, simulator: Simulator, engine: Engine) -> None:
    """Compare the compiled density with PyMC's own on the model's own data, which no simulated ones can replace.

    Raises
    ------
    UnsupportedModelError
        They differ.
    """
    graph = detach(without_checks([model.logp()], check_bounds=model.check_bounds))
    whole = interpret_function([model.rvs_to_values[variable] for variable in model.free_RVs], graph.outputs)
    for state in _near(simulator, read_initial_point(model)):
        own = _evaluate(lambda one: [float(whole(*simulator.layout.unflatten(one).values())[0]), 0.0], state)
        _require_equal(np.array([_evaluate(engine.terms, state).sum(), 0.0]), own)


def _near(simulator: Simulator, point: Mapping[str, NDArray[Any]]) -> list[FloatArray]:
    layout = simulator.layout
    jitter = np.random.default_rng(_SEED).uniform(-1.0, 1.0, size=(N_STATES, layout.dim))
    jitter *= np.where(layout.discrete, 0.0, 0.5 ** np.arange(N_STATES)[:, None])
    return list(layout.flatten(point) + jitter)


def _share_of_others(data: Mapping[str, NDArray[Any]], real: Mapping[str, NDArray[Any]]) -> float:
    """Return the share of elements that differ from the real ones, of the variable in which fewest do."""
    return min(float(np.mean(data[name] != value)) for name, value in real.items())


def _own_terms(
    model: Any,
    simulator: Simulator,
    data: Mapping[str, NDArray[Any]],
    law: LocalLaw | None,
    *,
    given_real_data: bool,
) -> Terms:
    """Return log prior and log likelihood of a state, as PyMC has them for a model with these data."""
    observed = {variable: pt.constant(data[variable.name]) for variable in model.observed_RVs}
    replaced = () if law is None else law.names
    prior = [variable for variable in model.free_RVs if variable.name not in replaced]
    terms = with_values(model, observed).logp(vars=[*prior, *model.observed_RVs, *model.potentials], sum=False)
    n, n_likelihood = len(prior), len(terms)
    if given_real_data:
        n_likelihood = n + len(model.observed_RVs)
        terms += model.logp(vars=model.observed_RVs, sum=False)
    parts = ([*terms[:n], *terms[n_likelihood:]], terms[n:n_likelihood])
    sums = [sum((term.sum() for term in part), pt.constant(0.0)) for part in parts]
    values = [model.rvs_to_values[variable] for variable in model.free_RVs]
    graph = detach(without_checks(sums, check_bounds=model.check_bounds))
    function = interpret_function(values, graph.outputs)
    positions = read_positions(model, simulator.layout)

    def own(state: FloatArray) -> FloatArray:
        both = np.array(function(*simulator.layout.unflatten(state).values()), dtype=np.float64)
        if law is not None:
            both[0] += law.reference.log_density(state[np.concatenate([positions[name] for name in law.names])])
        return both

    return own


def _evaluate(terms: Terms, state: FloatArray) -> FloatArray:
    """Return both terms; NaN where they raise."""
    try:
        with np.errstate(all="ignore"):
            return np.array(terms(state), dtype=np.float64)
    except Exception:
        return np.full(2, np.nan)


def _require_equal(compiled: FloatArray, own: FloatArray) -> None:
    """Raise UnsupportedModelError unless both are the same but for rounding, or neither is finite."""
    is_finite = np.isfinite(own).all()
    if not is_finite and not np.isfinite(compiled).all():
        return
    if not np.abs(compiled - own).max() <= TOLERANCE * (1.0 + np.abs(own).sum()):
        raise UnsupportedModelError(
            "The density that bread compiled is not the model's: on simulated data log prior and log likelihood are "
            f"{compiled[0]:.8g} and {compiled[1]:.8g}, where PyMC has {own[0]:.8g} and {own[1]:.8g}. They must agree "
            "on all data, or no result could be trusted. Please report the model."
        )
