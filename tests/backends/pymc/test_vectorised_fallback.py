"""Chains of PyMC models on JAX (engine="blackjax"): densities of zero, what falls back on PyMC's engine, a check.

They run where JAX and BlackJAX are installed (`make test-engine`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence

jax = pytest.importorskip("jax")
pytest.importorskip("blackjax")
pm = pytest.importorskip("pymc")

import bread  # noqa: E402
from bread.backends import open_model  # noqa: E402
from bread.backends.base import Failure, Kernel, OpenOptions  # noqa: E402
from bread.backends.pymc.vectorised import programs  # noqa: E402
from bread.backends.pymc.vectorised.conversion import build_density  # noqa: E402
from bread.backends.pymc.vectorised.packages import double_precision  # noqa: E402
from bread.paths.kinds import PriorPath  # noqa: E402
from bread.report.container import read_attributes  # noqa: E402
from tests.support.conformance import tuned_kernel  # noqa: E402
from tests.support.pymc_conjugate import MODELS, SHORT  # noqa: E402
from tests.support.pymc_layout import layout_of  # noqa: E402
from tests.support.reports import assert_same_report  # noqa: E402

pytestmark = [pytest.mark.pymc]


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    """Restore JAX's setting: PyTensor's dispatch, which some tests use by themselves, changes it for good."""
    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


PRIOR = PriorPath()


def fresh(name: str, kernel: str) -> Any:
    """Return a model whose programs are not compiled yet, for a defect to be put into them."""
    return open_model(MODELS[name][0](), OpenOptions(engine="blackjax", kernel=kernel))


def bounded() -> Any:
    with pm.Model() as model:
        scale = pm.Normal("scale", 1.0, 1.0)
        pm.Normal("y", 0.0, scale, observed=np.array([0.5, -0.2]))
    return model


def box() -> Any:
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        pm.Uniform("y", mu - 1.0, mu + 1.0, observed=np.array([0.1, 0.4]))
    return model


def test_a_parameter_outside_its_domain_has_density_zero() -> None:
    """PyMC's own conversion drops the check of the scale: its value there is no density, but not -inf either."""
    from pymc.sampling.jax import get_jaxified_graph

    model = bounded()
    density = build_density(model, layout_of(model))
    data = density.arrays({"y": np.array([0.5, -0.2])})
    with double_precision():
        inside, outside = (density.function(np.array([scale]), *data)[1] for scale in (0.7, -1.0))
        unchecked = get_jaxified_graph(inputs=model.value_vars, outputs=[model.logp(vars=model.observed_RVs)])(-1.0)[0]
    expected = -0.5 * (0.5**2 + 0.2**2) / 0.7**2 - 2 * np.log(0.7) - np.log(2 * np.pi)
    np.testing.assert_allclose(float(inside), expected, rtol=1e-12)
    assert float(outside) == -np.inf != float(unchecked)


def test_chains_end_as_those_of_pymc_where_the_density_is_zero() -> None:
    """Data outside their support: the same chains have weight zero, or no density to start from."""
    frozen = Kernel(np.array([0.0, 1.0]), {"step_size": np.full(2, 0.3), "inverse_metric": np.ones((2, 1))})
    runs = {}
    for engine in ("blackjax", "pymc"):
        model = open_model(box(), OpenOptions(engine=engine, kernel="hmc"))
        assert model.info.identity.engine == engine, model.info.identity.notes
        posterior = model.condition(model.info.data.observed)
        states = np.array([[0.3], [-3.0], [5.0], [0.2]])
        runs[engine] = [
            posterior.anneal(PRIOR, SHORT, frozen, direction=direction, initial=states, seeds=SeedSequence(2).spawn(4))
            for direction in ("forward", "reverse")
        ]
    for on_jax, on_pymc in zip(runs["blackjax"], runs["pymc"], strict=True):
        np.testing.assert_array_equal(on_jax.failure, on_pymc.failure)
        assert (on_jax.failure != Failure.NONE).any() and (on_jax.failure == Failure.NONE).any()
        np.testing.assert_array_equal(np.isneginf(on_jax.log_weight), np.isneginf(on_pymc.log_weight))
        np.testing.assert_array_equal(np.isnan(on_jax.log_weight), np.isnan(on_pymc.log_weight))
        failed = on_jax.failure != Failure.NONE
        for field in ("log_ratio", "state_at_base", "state_at_end", "log_base_density"):
            np.testing.assert_allclose(getattr(on_jax, field)[failed], getattr(on_pymc, field)[failed], rtol=1e-12)


# ---- what falls back ---------------------------------------------------------------------------------------------


def without_counterpart() -> Any:
    """Return a model whose density has a gradient, and an operation that JAX does not know."""
    from pytensor.scalar.basic import UnaryScalarOp, upgrade_to_float
    from pytensor.tensor.elemwise import Elemwise

    class Twice(UnaryScalarOp):
        def impl(self, x: float) -> float:
            return 2.0 * x

        def grad(self, inputs: Any, gradients: Any) -> Any:
            return [2.0 * gradients[0]]

        pullback = None

    Twice.pullback = lambda self, inputs, outputs, gradients: [2.0 * gradients[0]]  # type: ignore[assignment]
    twice = Elemwise(Twice(upgrade_to_float, name="twice"))
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 1.0)
        pm.Normal("y", twice(mu), 1.0, observed=np.array([0.3, 0.1]))
    return model


@pytest.mark.parametrize(
    ("build", "kernel", "reason"),
    [
        (MODELS["label_mixture"][0], None, "is not NUTS or HMC on all variables"),
        (MODELS["normal_mean"][0], pm.Slice, "Slice is not NUTS or HMC"),
        (MODELS["normal_mean"][0], lambda model: pm.NUTS(model=model, scaling=np.ones(1), is_cov=True), "is fixed"),
        (without_counterpart, None, "cannot be converted to JAX"),
    ],
)
def test_what_jax_cannot_run_falls_back_and_says_so(build: Any, kernel: Any, reason: str) -> None:
    model = open_model(build(), OpenOptions(engine="blackjax", kernel=kernel))
    notes = [note for note in model.info.identity.notes if "engine='blackjax'" in note]
    assert len(notes) == 1 and reason in notes[0] and "PyMC's own engine ran the chains" in notes[0]
    assert model.info.identity.engine == "pymc" and model.vector is None
    posterior = model.condition(model.info.data.observed)
    assert np.isfinite(posterior.log_density(PRIOR, posterior.draw_base(PRIOR, SeedSequence(1).spawn(2)))).all()


def test_a_conversion_that_is_wrong_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control of the comparison at the start: a log likelihood that is one part in a million too large."""
    ends = programs.Target.ends

    def wrong(self: Any, *arguments: Any) -> Any:
        base, end = ends(self, *arguments)
        return base, end * (1 + 1e-6)

    monkeypatch.setattr(programs.Target, "ends", wrong)
    model = fresh("normal_mean", "hmc")
    (note,) = [note for note in model.info.identity.notes if "engine='blackjax'" in note]
    assert "log likelihood in JAX differs from PyMC's" in note and model.info.identity.engine == "pymc"


def test_the_users_precision_is_left_alone() -> None:
    before = jax.config.jax_enable_x64
    model = fresh("normal_mean", "hmc")
    frozen = tuned_kernel(model, n_steps=60)
    posterior = model.condition(model.info.data.observed)
    seeds = SeedSequence(1).spawn(2)
    run = posterior.anneal(
        PRIOR, SHORT, frozen, direction="forward", initial=posterior.draw_base(PRIOR, seeds), seeds=seeds
    )
    assert jax.config.jax_enable_x64 == before is False
    assert not np.array_equal(run.log_weight, run.log_weight.astype(np.float32))  # double precision all the same


def test_a_check_on_jax() -> None:
    """One check, its data sets run together: the report names the engine, and repeats itself."""
    settings: dict[str, Any] = dict(
        simulations=4, n_temperatures=16, chains=2, tune=40, draws=0, cores=1, path="prior", random_seed=5,
        progressbar=False, simulate_from="prior",
    )  # fmt: skip
    model = MODELS["normal_mean"][0]()
    first, second = (bread.check(model, engine="blackjax", **settings) for _ in range(2))
    assert_same_report(first, second)
    assert read_attributes(first)["engine"] == "blackjax"
