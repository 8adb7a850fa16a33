"""Frozen kernels of PyMC: invariance, reversal, refusals."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytest
from numpy.random import SeedSequence
from pymc.step_methods import metropolis

from bread.backends.pymc.kernels.engine import Engine
from bread.backends.pymc.kernels.engines import compile_engine
from tests.support.pymc_kernel_models import COVARIANCE, binary, categorical, correlated, skewed
from tests.support.pymc_layout import layout_of, mixed

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]

BETA = 0.6


def draw_correlated(rng: np.random.Generator, n: int) -> np.ndarray:
    precision = np.linalg.inv(COVARIANCE) + BETA / 4 * np.eye(2)
    covariance = np.linalg.inv(precision)
    return rng.multivariate_normal(covariance @ np.array([1.0, -0.5]) * BETA / 4, covariance, size=n)


def separate() -> pm.Model:
    """The correlated target with scalar variables: non-blocked step methods then form a compound step."""
    with pm.Model() as model:
        a = pm.Normal("a", 0, 1)
        b = pm.Normal("b", 0.9 * a, np.sqrt(1 - 0.81))
        pm.Normal("y", a, 2.0, observed=1.0)
        pm.Normal("z", b, 2.0, observed=-0.5)
    return model


def draw_skewed(rng: np.random.Generator, n: int) -> np.ndarray:
    """Conjugate: Gamma(2 + 3 beta, 1 + 2.8 beta), on the log scale."""
    return np.log(rng.gamma(2 + 3 * BETA, 1 / (1 + 2.8 * BETA), size=(n, 1)))


def draw_mixed(rng: np.random.Generator, n: int) -> np.ndarray:
    """p(z) N(x; 3 z, 1) N(y; x, 2)^beta: z from its marginal, x from its normal conditional."""
    means = np.array([0.0, 3.0])
    weights = np.array([0.7, 0.3]) * np.exp(-0.5 * (1 - means) ** 2 / (1 + 4 / BETA))
    z = (rng.random(n) < weights[1] / weights.sum()).astype(int)
    variance = 1 / (1 + BETA / 4)
    return np.column_stack([z, rng.normal(variance * (means[z] + BETA / 4), np.sqrt(variance))])


def draw_discrete(model: pm.Model, sizes: tuple[int, ...]) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Exact draws of a tempered density of discrete variables, by listing all states."""
    states = np.array(list(itertools.product(*map(range, sizes))))
    layout = layout_of(model)
    prior = model.compile_logp(vars=model.free_RVs)
    joint = model.compile_logp()
    points = [layout.unflatten(state.astype(float)) for state in states]
    log_density = np.array([(1 - BETA) * prior(point) + BETA * joint(point) for point in points])
    weights = np.exp(log_density - log_density.max())

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        return states[rng.choice(len(states), size=n, p=weights / weights.sum())].astype(float)

    return draw


def fixed_settings(engine: Engine, width: float = 0.8) -> dict[str, np.ndarray]:
    """Settings of about the right size, none of them tuned."""
    state = np.zeros(engine.layout.dim)
    engine.start_adapting(BETA, state, 1, None, SeedSequence(0))
    if all(step.n_evaluations == 0 for step in engine.steps):
        engine.reset(SeedSequence(0))
    shapes = {name: np.shape(value) for name, value in engine.settings().items()}
    values = {"step_size": 0.6, "inverse_metric": 0.8, "scaling": width, "slice_width": 1.5}
    return {name: np.full(shape, values[name.rstrip("_0123456789")]) for name, shape in shapes.items()}


def transitions(engine: Engine, states: np.ndarray, *, beta: float, reverse: bool, seed: int) -> np.ndarray:
    settings = fixed_settings(engine)
    engine.reset(SeedSequence(seed))
    engine.apply(beta, settings, reverse=reverse)
    return np.array([engine.state_of(engine.move(engine.position_of(state))[0]) for state in states])


def z_score(differences: np.ndarray) -> float:
    return float(differences.mean() / (differences.std(ddof=1) / np.sqrt(len(differences))))


def invariance_scores(before: np.ndarray, after: np.ndarray) -> list[float]:
    """Scores of E[h(after)] = E[h(before)] for odd and even functions of each coordinate and their product."""
    functions = [lambda s: s[:, 0], lambda s: s[:, 0] ** 2, lambda s: s[:, -1], lambda s: s[:, 0] * s[:, -1]]
    return [z_score(h(after) - h(before)) for h in functions]


def reversal_score(states: np.ndarray, forward: np.ndarray, reverse: np.ndarray, centre: np.ndarray) -> float:
    """Score of E[f(s) g(K s)] = E[f(K~ s) g(s)], f and g different coordinates (or powers of the only one).

    ``centre`` are constants near the means, which only make the score more precise.
    """

    def f(s: np.ndarray) -> np.ndarray:
        return (s - centre)[:, 0]

    def g(s: np.ndarray) -> np.ndarray:
        last = (s - centre)[:, -1]
        return last + last**2 if s.shape[1] == 1 else last

    return z_score(f(states) * g(forward) - f(reverse) * g(states))


FIXED_BINARY = lambda model: pm.BinaryGibbsMetropolis(model.value_vars, order=[0, 1], transit_p=0.9, model=model)  # noqa: E731
FIXED_CATEGORICAL = lambda model: pm.CategoricalGibbsMetropolis(model.value_vars, order=[0, 1], model=model)  # noqa: E731
PROPOSALS = [metropolis.UniformProposal, metropolis.CauchyProposal, metropolis.LaplaceProposal]

# name -> (model, exact draws or sizes of discrete variables, kernel, draws, is the forward kernel irreversible)
KERNELS: dict[str, tuple[Any, Any, Any, int, bool]] = {
    "nuts": (correlated, draw_correlated, "nuts", 1500, False),
    "nuts skewed": (skewed, draw_skewed, None, 1500, False),
    "hmc": (skewed, draw_skewed, "hmc", 2000, False),
    "hmc correlated": (correlated, draw_correlated, "hmc", 2000, False),
    "metropolis": (correlated, draw_correlated, pm.Metropolis, 4000, False),
    "metropolis skewed": (skewed, draw_skewed, pm.Metropolis, 4000, False),
    "slice scalar": (skewed, draw_skewed, pm.Slice, 2500, False),
    "slice vector": (correlated, draw_correlated, pm.Slice, 4000, True),
    "slice compound": (separate, draw_correlated, pm.Slice, 4000, True),
    "nuts and binary": (mixed, draw_mixed, None, 3000, True),
    "binary gibbs": (binary, (2, 2), None, 4000, False),
    "binary gibbs, fixed order": (binary, (2, 2), FIXED_BINARY, 8000, True),
    "binary metropolis": (binary, (2, 2), pm.BinaryMetropolis, 4000, False),
    "categorical gibbs": (categorical, (3, 3), None, 4000, False),
    "categorical gibbs, fixed order": (categorical, (3, 3), FIXED_CATEGORICAL, 8000, True),
    "list": (mixed, draw_mixed, [pm.BinaryGibbsMetropolis, pm.Slice], 5000, True),
}
for kind in PROPOSALS:
    KERNELS[kind.__name__] = (
        correlated,
        draw_correlated,
        lambda model, kind=kind: pm.Metropolis(proposal_dist=kind, model=model),
        3000,
        False,
    )


# Each of PyMC's step methods once; what is left are other targets, other proposals and another order of the same.
ALSO = (
    "categorical gibbs",
    "slice scalar",
    "nuts and binary",
    "nuts skewed",
    "hmc correlated",
    "metropolis skewed",
    "slice compound",
    "list",
    *(kind.__name__ for kind in PROPOSALS),
)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in ALSO or name.endswith("fixed order"))) for name in KERNELS],
)
def test_frozen_kernels_are_invariant_and_reversed(name):
    build, exact, kernel, n, is_irreversible = KERNELS[name]
    model = build()
    engine = compile_engine(model, layout_of(model), kernel)
    draw = draw_discrete(model, exact) if isinstance(exact, tuple) else exact
    states = draw(np.random.default_rng(1), n)
    centre = draw(np.random.default_rng(2), n).mean(axis=0)
    forward = transitions(engine, states, beta=BETA, reverse=False, seed=11)
    reverse = transitions(engine, states, beta=BETA, reverse=True, seed=12)
    # 4 standard errors: about 9 scores for each of 19 kernels, all of them normal under the claim.
    assert np.max(np.abs(invariance_scores(states, forward))) < 4
    assert np.max(np.abs(invariance_scores(states, reverse))) < 4
    assert abs(reversal_score(states, forward, reverse, centre)) < 4
    assert np.mean(np.any(forward != states, axis=1)) > 0.2  # it moves, or the checks would mean nothing
    if is_irreversible:  # negative control: the forward kernel is not its own reversal, and the check sees it
        wrong = transitions(engine, states, beta=BETA, reverse=False, seed=12)
        assert abs(reversal_score(states, forward, wrong, centre)) > 5


@pytest.mark.statistical
@pytest.mark.parametrize(
    "name", ["nuts skewed", pytest.param("metropolis skewed", marks=pytest.mark.slow), "slice vector", "binary gibbs"]
)
def test_the_invariance_check_sees_a_wrong_temperature(name):
    """Negative control: the kernel at beta = 3.6 does not leave the target at 0.6 invariant."""
    build, exact, kernel, n, _ = KERNELS[name]
    model = build()
    engine = compile_engine(model, layout_of(model), kernel)
    draw = draw_discrete(model, exact) if isinstance(exact, tuple) else exact
    states = draw(np.random.default_rng(1), n)
    moved = transitions(engine, states, beta=BETA + 3, reverse=False, seed=11)
    assert np.max(np.abs(invariance_scores(states, moved))) > 5


def test_settings_have_the_names_and_shapes_of_their_steps():
    cases = [
        (correlated, "nuts", {"step_size": (), "inverse_metric": (2,)}),
        (correlated, pm.Metropolis, {"scaling": (2,)}),
        (separate, pm.Slice, {"slice_width_0": (1,), "slice_width_1": (1,)}),
        (mixed, None, {"step_size": (), "inverse_metric": (1,)}),
        (binary, None, {}),
    ]
    for build, kernel, shapes in cases:
        model = build()
        engine = compile_engine(model, layout_of(model), kernel)
        engine.start_adapting(0.5, np.zeros(engine.layout.dim), 10, None, SeedSequence(1))
        if kernel is pm.Slice:
            engine.move(engine.position_of(np.zeros(2)))
        settings = engine.settings()
        assert {name: np.shape(value) for name, value in settings.items()} == shapes
        assert all(np.all(value > 0) for value in settings.values())


def test_a_metric_that_the_user_fixed_is_kept():
    model = correlated()

    def kernel(tempered: pm.Model) -> Any:
        return pm.NUTS(scaling=COVARIANCE, is_cov=True, target_accept=0.9, model=tempered)

    engine = compile_engine(model, layout_of(model), kernel)
    engine.start_adapting(1.0, np.zeros(2), 50, None, SeedSequence(1))
    position = engine.position_of(np.zeros(2))
    for _ in range(50):
        position, _, _ = engine.move(position)
    assert set(engine.settings()) == {"step_size"}
    momentum = np.array([0.3, -1.2])
    np.testing.assert_allclose(engine.steps[0].step.potential.velocity(momentum), COVARIANCE @ momentum)


def test_names_of_kernels():
    model = mixed()
    assert compile_engine(model, layout_of(model), None).name in {
        "Compound[NUTS, BinaryGibbsMetropolis]",
        "Compound[BinaryGibbsMetropolis, NUTS]",
    }
    model = separate()
    assert compile_engine(model, layout_of(model), pm.Slice).name == "Slice"


def test_a_kernel_may_name_the_users_variables():
    model = mixed()
    engine = compile_engine(
        model, layout_of(model), lambda t: [pm.Slice([model["x"]], model=t), pm.BinaryMetropolis([t["z"]], model=t)]
    )
    assert engine.name == "Compound[Slice, BinaryMetropolis]"
    engine = compile_engine(model, layout_of(model), lambda t: pm.Slice([model["x"]]))  # in the model's context
    assert engine.name == "Compound[Slice, BinaryGibbsMetropolis]"


def test_only_what_is_needed_is_compiled(monkeypatch):
    compiled, original = [], pytensor.function

    def counted(*args, **kwargs):
        if pytensor.config.cxx:  # what is interpreted needs no compiler
            compiled.append(1)
        return original(*args, **kwargs)

    monkeypatch.setattr(pytensor, "function", counted)
    model = separate()
    layout = layout_of(model)
    for kernel, expected in [(None, 1), ("hmc", 1), (pm.Slice, 3), (lambda m: pm.NUTS(model=m), 1)]:
        compiled.clear()
        compile_engine(model, layout, kernel)
        assert len(compiled) == expected  # Slice: one density for each variable, and the log likelihood


def test_models_that_cannot_be_cloned_and_open_contexts():
    with pm.Model() as model:
        pm.Normal("a", initval=0.3)
        with pm.Model(name="inner"):
            b = pm.Normal("b", initval=-1.0)
            pm.Normal("y", b, 1, observed=0.2)
        layout = layout_of(model)
        for kernel in (None, pm.Slice, pm.Metropolis):
            engine = compile_engine(model, layout, kernel)
            moved = transitions(engine, np.zeros((5, 2)), beta=BETA, reverse=True, seed=1)
            assert np.all(np.any(moved != 0, axis=0))
    assert set(model.named_vars) == {"a", "inner::b", "inner::y"}
