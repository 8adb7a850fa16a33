"""The PyMC backend as a whole: opened model, the user's model untouched, data and coordinates, fits, pickling."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import arviz as az
import numpy as np
import pytest
from numpy.random import SeedSequence

pm = pytest.importorskip("pymc")
cloudpickle = pytest.importorskip("cloudpickle")
pytestmark = pytest.mark.pymc

from pytensor.graph.traversal import graph_inputs  # noqa: E402

from bread.backends.base import Kernel, Model, OpenOptions  # noqa: E402
from bread.backends.pymc import PyMCModel, open_model  # noqa: E402
from bread.backends.pymc.density.compiling import compile_mode  # noqa: E402
from bread.backends.pymc.model.reading import check_fixed_names, default_hyperparameters, read_parents  # noqa: E402
from bread.errors import InvalidArgumentError, MissingDependencyError, UnsupportedKernelError  # noqa: E402
from bread.paths.kinds import PriorPath  # noqa: E402
from tests.support.pymc_models import MODELS, SCHOOLS, SCHOOLS_EFFECT, data  # noqa: E402


@cache
def schools() -> PyMCModel:
    return open_model(MODELS["schools_centred"](), OpenOptions())


def generator_states(model: pm.Model) -> list[str]:
    shared = [v for v in graph_inputs(model.basic_RVs) if hasattr(v, "get_value")]
    return [str(v.get_value().bit_generator.state) for v in shared if hasattr(v.get_value(), "bit_generator")]


def description(model: pm.Model) -> dict[str, Any]:
    return {
        "variables": [v.name for v in (*model.basic_RVs, *model.deterministics, *model.potentials)],
        "identities": [id(v) for v in (*model.basic_RVs, *model.value_vars, *model.deterministics)],
        "named": list(model.named_vars),
        "transforms": [repr(model.rvs_to_transforms[v]) for v in model.basic_RVs],
        "initial": [repr(value) for value in model.rvs_to_initial_values.values()],
        "coords": dict(model.coords),
        "data": {v.name: v.get_value().tolist() for v in model.data_vars},
    }


def test_the_users_model_and_all_random_generators_stay_untouched() -> None:
    model = MODELS["mutable_observed"]()
    before, generators = description(model), generator_states(model)
    assert len(generators) == 3
    np.random.seed(1)  # noqa: NPY002
    global_state = str(np.random.get_state())  # noqa: NPY002
    one = open_model(model, OpenOptions())
    with model:  # inside the context too
        other = open_model(model, OpenOptions(kernel="hmc"))
    for opened in (one, other):
        draws = opened.simulate(2, fixed=None, seed=SeedSequence(1))
        opened.simulate(1, fixed={"slope": 1.0}, seed=SeedSequence(1))
        opened.constrain(draws.states)
        opened.condition(draws.data_of(0)).log_ratio(PriorPath(), draws.states)
    assert description(model) == before
    assert generator_states(model) == generators
    assert str(np.random.get_state()) == global_state  # noqa: NPY002


def test_later_changes_of_the_data_do_not_reach_an_opened_model() -> None:
    model = MODELS["mutable_observed"]()
    opened = open_model(model, OpenOptions())
    before = opened.simulate(2, fixed=None, seed=SeedSequence(2))
    ratio = opened.condition(before.data_of(0)).log_ratio(PriorPath(), before.states)
    with model:
        pm.set_data({"x": np.zeros(6), "y_data": np.zeros(6, dtype=int)})
    after = opened.simulate(2, fixed=None, seed=SeedSequence(2))
    np.testing.assert_array_equal(after.data["y"], before.data["y"])
    np.testing.assert_array_equal(opened.condition(before.data_of(0)).log_ratio(PriorPath(), before.states), ratio)
    np.testing.assert_array_equal(opened.info.data.constants["x"][1], data(6))
    with pytest.raises(InvalidArgumentError, match="data 'x' of the model were changed"):
        opened.fit(seed=1, cores=1, progressbar=False)


def test_info() -> None:
    info = schools().info
    assert isinstance(schools(), Model)
    assert (info.identity.backend, info.identity.engine, info.identity.kernel) == ("pymc", "pymc", "NUTS")
    assert info.identity.versions["pymc"] == pm.__version__
    assert info.layout.coordinates == ("mu", "tau_log__", *(f"theta[{i}]" for i in range(8)))
    assert not info.layout.discrete.any()
    assert info.layout.hyperparameters == ("mu", "tau")
    assert info.layout.parameters == {"mu": (), "tau": (), "theta": ("school",)}
    assert info.data.observed_dims == {"y": ("school",)}
    assert list(info.data.coords) == ["school"]
    assert info.data.coords["school"].tolist() == SCHOOLS
    np.testing.assert_array_equal(info.data.observed["y"], SCHOOLS_EFFECT)
    assert info.data.constants == {}
    assert info.identity.notes == ()


def test_info_of_covariates_and_unnamed_dimensions() -> None:
    info = open_model(MODELS["logistic_regression"](), OpenOptions()).info
    dims, values = info.data.constants["x"]
    assert dims == ("row", "predictor")
    np.testing.assert_array_equal(values, data(40, 3))
    np.testing.assert_array_equal(info.data.coords["row"], np.arange(40))
    assert info.data.coords["predictor"].tolist() == ["a", "b", "c"]
    assert info.layout.hyperparameters == ("intercept", "slope")
    assert info.data.observed["y"].dtype == np.int64


def test_notes_and_deterministics_that_are_left_out() -> None:
    with pm.Model() as model:
        mu = pm.Normal("mu")
        y = pm.Normal("y", mu, observed=data(3))
        pm.Deterministic("residual", y - mu)
        pm.Deterministic("twice", 2 * mu)
        pm.Deterministic("replicate", pm.Normal.dist(mu))
    opened = open_model(model, OpenOptions(kernel="hmc"))
    assert list(opened.info.layout.parameters) == ["mu", "twice"]
    assert "'residual' is left out" in opened.info.identity.notes[0]
    assert "'replicate' is left out" in opened.info.identity.notes[1]
    draws = opened.simulate(3, fixed=None, seed=SeedSequence(3))
    np.testing.assert_allclose(draws.parameters["twice"], 2 * draws.parameters["mu"])


def test_a_discrete_model() -> None:
    opened = open_model(MODELS["mixture_with_label"](), OpenOptions())
    assert opened.info.layout.discrete.tolist() == [True, False]
    draws = opened.simulate(30, fixed=None, seed=SeedSequence(4))
    assert set(draws.states[:, 0]) == {0.0, 1.0}
    assert draws.parameters["label"].dtype.kind in "iu"


def test_a_pickled_copy_computes_the_same() -> None:
    copy = cloudpickle.loads(cloudpickle.dumps(schools()))
    assert copy.user_model is None
    assert copy.info.layout.coordinates == schools().info.layout.coordinates
    fixed = {"mu": 1.0, "tau": 2.0}
    for held in (None, fixed):
        mine = schools().simulate(3, fixed=held, seed=SeedSequence(5))
        theirs = copy.simulate(3, fixed=held, seed=SeedSequence(5))
        np.testing.assert_array_equal(mine.states, theirs.states)
        np.testing.assert_array_equal(mine.data["y"], theirs.data["y"])
    ratios = [m.condition(mine.data_of(1)).log_ratio(PriorPath(), mine.states) for m in (schools(), copy)]
    np.testing.assert_array_equal(*ratios)
    with pytest.raises(InvalidArgumentError, match="pickled copy"):
        copy.fit(seed=1, cores=1, progressbar=False)


def test_start_of_the_path_is_the_prior() -> None:
    posterior = schools().condition(schools().info.data.observed)
    seeds = SeedSequence(6).spawn(4)
    np.testing.assert_array_equal(
        posterior.draw_base(PriorPath(), seeds), schools().simulate(4, fixed=None, seed=SeedSequence(6)).states
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, r"data must name \['y'\]"),
        ({"y": np.zeros(8), "z": np.zeros(8)}, "'z'"),
        ({"y": np.zeros(7)}, r"data\['y'\] must be of shape \(8,\).*\(7,\)"),
    ],
)
def test_wrong_data(values: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        schools().condition(values)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (OpenOptions(engine="numpyro"), InvalidArgumentError, "'numpyro'.*Valid: 'pymc', 'blackjax'"),
        (OpenOptions(hyperparameters=("sigma",)), InvalidArgumentError, "'sigma'.*Valid names: mu, tau, theta"),
        (OpenOptions(hyperparameters=("theta", "mu")), InvalidArgumentError, "'theta' without 'tau'"),
        (OpenOptions(kernel="gibbs"), UnsupportedKernelError, "gibbs"),
    ],
)
def test_wrong_options(options: OpenOptions, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        open_model(MODELS["schools_centred"](), options)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("schools_centred", ("mu", "tau")),
        ("schools_non_centred", ("mu", "tau")),  # no free variable depends on another: all but what tau multiplies
        ("mixture_with_label", ("label",)),
        ("interval_random_bounds", ("width",)),
        ("lkj_cholesky", ("chol",)),
        ("custom_likelihood", ("mu",)),
    ],
)
def test_default_hyperparameters(name: str, expected: tuple[str, ...]) -> None:
    model = MODELS[name]()
    assert default_hyperparameters(model) == expected
    assert check_fixed_names(read_parents(model), reversed(expected), "hyperparameters") == expected


def named_draws(n_chains: int = 2, n_draws: int = 5) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    lead = (n_chains, n_draws)
    return {"mu": rng.normal(size=lead), "tau": rng.gamma(2, size=lead), "theta": rng.normal(size=(*lead, 8))}


def as_dataset(draws: dict[str, np.ndarray]) -> Any:
    import xarray as xr

    dims = {"theta": ("school",)}
    coords = {"school": SCHOOLS}
    return xr.Dataset({k: (("chain", "draw", *dims.get(k, ())), v) for k, v in draws.items()}, coords=coords)


def as_container(draws: dict[str, np.ndarray]) -> Any:
    import xarray as xr

    if int(az.__version__.split(".", maxsplit=1)[0]) >= 1:
        return xr.DataTree.from_dict({"posterior": as_dataset(draws)})
    return az.InferenceData(posterior=as_dataset(draws))


@pytest.mark.parametrize("form", [dict, as_dataset, as_container, lambda d: as_dataset(d).transpose("school", ...)])
def test_read_posterior(form: Any) -> None:
    draws = named_draws()
    fit = schools().read_posterior(form({**draws, "unused": draws["mu"]}))
    assert fit.source == "posterior="
    assert list(fit.draws) == ["mu", "tau", "theta"]
    for name, values in draws.items():
        np.testing.assert_array_equal(fit.draws[name], values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: {"mean": d["mu"]}, "no variable of the model.*mu, tau, theta.*'mean'"),
        (lambda d: {**d, "theta": d["theta"][..., :7]}, r"'theta' of shape \(2, 5, 7\).*\(chain, draw, 8\)"),
        (lambda d: {**d, "mu": d["mu"].ravel()}, r"'mu' of shape \(10,\)"),
        (lambda d: {**d, "tau": d["tau"][:1]}, r"\(1, 5\) chains and draws of 'tau'"),
        (lambda d: {**d, "tau": d["tau"] * np.nan}, "'tau' that are no finite numbers"),
        (lambda d: as_dataset(d).stack(sample=("chain", "draw")), "'mu'.*without 'chain'"),
        (lambda d: as_dataset(d).isel(school=slice(None, None, -1)), "'theta' with coordinates.*'school'"),
        (lambda d: d["mu"], "must be an InferenceData.*ndarray"),
    ],
)
def test_wrong_posterior(change: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        schools().read_posterior(change(named_draws()))


@pytest.mark.slow
def test_angles_are_wrapped() -> None:
    opened = open_model(MODELS["circular_and_scale"](), OpenOptions())
    assert opened.periodic.tolist() == [True, False, False]
    draws = opened.simulate(1, fixed=None, seed=SeedSequence(8))
    posterior = opened.condition(draws.data_of(0))
    start = draws.states.copy()
    start[0, 0] += 4 * np.pi
    kernel = Kernel(np.array([0.0]), {"step_size": np.array([0.3]), "inverse_metric": np.ones((1, 3))})
    seeds = SeedSequence(9).spawn(1)
    run = posterior.anneal(PriorPath(), np.linspace(0, 1, 4), kernel, direction="reverse", initial=start, seeds=seeds)
    same = posterior.anneal(
        PriorPath(), np.linspace(0, 1, 4), kernel, direction="reverse", initial=draws.states, seeds=seeds
    )
    assert np.all(np.abs(run.state_at_end[:, 0]) <= np.pi)
    np.testing.assert_allclose(run.state_at_end, draws.states, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(run.log_weight, same.log_weight, rtol=1e-6)


def test_compile_mode_is_known_to_pytensor() -> None:
    from pytensor.compile.mode import get_mode

    assert get_mode(compile_mode()) is not None


def test_fit_is_repeatable_and_quiet(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    model = MODELS["poisson_count"]()  # Metropolis only: no gradient to compile
    opened = open_model(model, OpenOptions())
    np.random.seed(2)  # noqa: NPY002
    state, generators = str(np.random.get_state()), generator_states(model)  # noqa: NPY002
    fit = opened.fit(seed=3, cores=1, progressbar=False)
    assert fit.source == "pm.sample"
    assert fit.seconds > 0
    assert fit.draws["n"].shape[1:] == (1000,)
    assert caplog.records == []
    assert capfd.readouterr().out == ""
    assert str(np.random.get_state()) == state  # noqa: NPY002
    assert generator_states(model) == generators
    np.testing.assert_array_equal(opened.fit(seed=3, cores=1, progressbar=False).draws["n"], fit.draws["n"])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_model_opens_and_has_finite_log_ratios(name: str) -> None:
    opened = open_model(MODELS[name](), OpenOptions())
    draws = opened.simulate(5, fixed=None, seed=SeedSequence(10))
    for index in range(5):
        ratio = opened.condition(draws.data_of(index)).log_ratio(PriorPath(), draws.states[index : index + 1])
        assert np.all(np.isfinite(ratio))
    assert set(opened.constrain(draws.states)) == set(opened.info.layout.parameters)
    assert opened.info.layout.dim == draws.states.shape[1]


def test_an_engine_that_is_not_installed_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingDependencyError, match=r'needs the package \'jax\': pip install "bread-mcmc\[jax\]"'):
        open_model(MODELS["schools_centred"](), OpenOptions(engine="blackjax"))
