"""`bread.compare` on models whose B is known: paired ratios against exact ones, a broken kernel, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bread
from bread import exact
from bread.arviz_import import import_arviz
from bread.errors import InvalidArgumentError
from bread.paths.schedules import linear
from tests.models.finite import FiniteModel
from tests.models.reference import AutoregressiveKernel, BetaBinomial, HMCKernel, NormalMean

PRIOR = np.array([0.5, 0.2, 0.3])
LIKELIHOOD = np.array([[0.7, 0.3], [0.1, 0.9], [0.45, 0.55]])
DATA = np.array([0, 1, 1])
T = 16
Y = np.array([0.4, 1.9, 1.1])
SETTINGS: dict[str, Any] = {"cores": 1, "progressbar": False, "random_seed": 3, "tune": 20}


class WrongBack(exact.HeatBath):
    """Idle heat bath whose reverse chains take the inverse of the density: a defect in one direction."""

    def matrices(self, log_density: np.ndarray) -> np.ndarray:
        return 0.3 * np.eye(3) + 0.7 * super().matrices(log_density)

    def reversals(self, log_density: np.ndarray) -> np.ndarray:
        return self.matrices(-log_density)


def finite(idle: float) -> FiniteModel:
    metropolis = exact.MetropolisHastings(exact.grid_neighbours((3,)))
    return FiniteModel(PRIOR, LIKELIHOOD, DATA, exact.Lazy(metropolis, idle))


def normal(kernel: Any, sd: float = 1.5) -> NormalMean:
    return NormalMean(Y, prior_mean=0.5, prior_sd=sd, noise_sd=1.2, kernel=kernel)


def exact_bounds(model: FiniteModel) -> tuple[float, float]:
    """Return means over all data sets of B and of V as two chains estimate it."""
    rows, probability = model.data_sets()
    chains = [model.chain({"y": row}) for row in rows]
    gaps = [exact.anneal(chain, linear(T)).bound for chain in chains]
    errors = [exact.weight_law(chain, linear(T)).expected_error(2) for chain in chains]
    return float(probability @ gaps), float(probability @ errors)


IDLE = {"lazy": 0.8, "quick": 0.1}


@pytest.fixture(scope="module")
def report() -> Any:
    models = {name: finite(idle) for name, idle in IDLE.items()}
    return bread.compare(models, n_temperatures=(4, T), schedule="linear", simulations=60, chains=2, **SETTINGS)


@pytest.mark.statistical
def test_bounds_and_their_ratio_are_the_exact_ones(report: Any) -> None:
    """4 standard errors over 60 data sets each; the paired interval holds the true ratio, and not the ratio 1."""
    table, truth = report["comparison"], {name: exact_bounds(finite(idle)) for name, idle in IDLE.items()}
    for name, (bound, error) in truth.items():
        here = table.sel(model=name, n_temperatures=T)
        for key, expected in (("gap_by_simulation", bound), ("error_by_simulation", error)):
            values = here[key].values
            assert abs(values.mean() - expected) < 4 * values.std(ddof=1) / np.sqrt(len(values))
    found = report["contrasts"]
    assert [str(axis) for axis in found["axis"].values] == ["steps", "evaluations", "seconds"]
    low, high = found["jeffreys_ratio_ci"].values[0]
    assert low < truth["lazy"][0] / truth["quick"][0] < high and low > 1.2
    assert int(found["n_temperatures"].values[0]) == T and str(found["decides"].values[0]) == "B"


def test_the_verdict_names_the_better_one_and_the_table_shows_both(report: Any) -> None:
    verdict = bread.verdict(report)
    assert verdict.status == "better" and verdict.best == "quick" and verdict, str(verdict)
    assert (
        "At equal steps (T = 16), B of quick is 0." in verdict.details and "60 simulated data sets" in verdict.details
    )
    table = bread.summary(report)
    assert list(table.index) == [("lazy", 4), ("lazy", T), ("quick", 4), ("quick", T)]
    assert table.loc[("quick", T), "jeffreys"] < table.loc[("lazy", T), "lower"]
    assert table.loc[("quick", T), "steps"] == T - 1


def test_a_report_comes_back_from_a_file(report: Any, tmp_path: Any) -> None:
    report.to_netcdf(tmp_path / "comparison.nc")
    assert str(bread.verdict(tmp_path / "comparison.nc")) == str(bread.verdict(report))
    assert str(bread.verdict(import_arviz().from_netcdf(str(tmp_path / "comparison.nc")))) == str(bread.verdict(report))
    with pytest.raises(InvalidArgumentError):
        bread.plot_bounds(report)


@pytest.mark.statistical
def test_a_model_and_itself_cannot_be_told_apart() -> None:
    """The same random numbers, so that all values are equal; at equal processor time they are not, and near it."""
    one = finite(0.5)
    report = bread.compare({"a": one, "b": one}, n_temperatures=4, schedule="linear", simulations=12, **SETTINGS)
    table = report["comparison"]
    np.testing.assert_array_equal(table["forward_log_weight"].values[0], table["forward_log_weight"].values[1])
    assert (report["contrasts"]["better"].values[:2] == 0).all()
    assert "cannot tell" in bread.verdict(report).details and not bread.verdict(report).best


@pytest.mark.slow
@pytest.mark.statistical
def test_a_broken_kernel_is_a_bug_and_wins_nothing() -> None:
    """Negative control: its forward chains are right; on the same data only its log weights can show the defect."""
    broken = FiniteModel(PRIOR, LIKELIHOOD, DATA, WrongBack([np.zeros(3, dtype=int)]))
    report = bread.compare(
        {"right": finite(0.3), "broken": broken}, n_temperatures=4, schedule="linear", simulations=80, **SETTINGS
    )
    verdict = bread.verdict(report)
    assert verdict.status == "bug" and verdict.best == "" and "Something in broken" in verdict.details, str(verdict)
    assert "Something in right" not in verdict.details
    assert report["comparison"]["rank_p_value"].values[0] > 0.01


@pytest.mark.statistical
def test_the_same_draws_go_through_a_mapping() -> None:
    """A kernel that moves further is better; both models see bit-equal data and the same exact draws."""
    models = {"short": normal(AutoregressiveKernel(rho=0.95)), "far": normal(AutoregressiveKernel(rho=0.2))}
    report = bread.compare(models, mapping={"far": dict}, n_temperatures=8, simulations=20, **SETTINGS)
    assert list(report["comparison"]["same_by"].values) == ["", "density"]
    assert bread.verdict(report).best == "far", str(bread.verdict(report))
    ends = [report["comparison"][f"log_evidence_{name}"].values[:, 0].mean(axis=1) for name in ("lower", "upper")]
    assert (ends[0] < ends[1]).all() and report["simulated_data"]["y"].shape == (20, 3)


HMC = HMCKernel(n_leapfrog=3)


@pytest.mark.parametrize(
    ("other", "mapping", "words"),
    [
        (normal(HMC, sd=1.6), {}, "nats more than a constant"),
        (normal(HMC), {"other": lambda p: {name: 1.1 * value for name, value in p.items()}}, "more than a constant"),
        (normal(HMC), {"other": lambda p: {}}, "does not return"),
        (normal(HMC), {"other": lambda p: p["nothing"]}, "raised KeyError"),
        (normal(HMC), {"first": dict}, "the first model"),
        (normal(HMC), {"third": dict}, "none of the models"),
        (NormalMean(Y[:2], 0.5, 1.5, 1.2, kernel=HMC), {}, "has shape"),
        (
            BetaBinomial(np.array([3, 1, 2]), np.array([4, 3, 5]), 2.0, 3.0, kernel=HMC),
            {},
            "observes successes",
        ),
        ((normal(HMC), {"colour": 1}), {}, "has the setting 'colour'"),
    ],
)
def test_what_is_not_the_same_model_is_refused_before_anything_is_annealed(
    other: Any, mapping: Any, words: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        bread.compare({"first": normal(HMC), "other": other}, mapping=mapping, n_temperatures=4, **SETTINGS)


def test_two_priors_over_states_are_told_apart_by_their_draws() -> None:
    """Discrete states have no Jacobian: draws are compared. Another prior by 0.3 is seen, the same one is not."""
    other = FiniteModel(PRIOR[::-1].copy(), LIKELIHOOD, DATA, finite(0.3).transition)
    with pytest.raises(InvalidArgumentError, match="do not look like"):
        bread.compare({"a": finite(0.3), "b": other}, n_temperatures=4, **SETTINGS)


@pytest.mark.parametrize("models", [{"one": finite(0.1)}, [finite(0.1)], {1: finite(0.1), 2: finite(0.2)}])
def test_names_are_needed(models: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="at least two names"):
        bread.compare(models, **SETTINGS)


def test_the_plot_has_a_panel_for_each_cost(report: Any) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = bread.plot_compare(report).figure.axes
    assert [ax.get_xlabel() for ax in axes] == ["kernel steps a chain", "processor seconds a chain"]
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["lazy", "quick"]
    assert bread.plot_compare(report, against="evaluations", bound="error").get_ylabel() == "V, error of a probability"
    for wrong in ({"against": "gradients"}, {"against": "colour"}, {"bound": "colour"}, {"ax": axes[0]}):
        with pytest.raises(InvalidArgumentError):
            bread.plot_compare(report, **wrong)
    matplotlib.pyplot.close("all")
