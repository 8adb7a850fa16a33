"""`bread.look`: right draws pass; wrong ones and those of other data do not, whatever the prior."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import bread
from bread.exact.transitions import HeatBath
from bread.report.compat import read_group
from tests.models.finite import FiniteModel
from tests.support.reference_models import CONJUGATE

MODEL = CONJUGATE["hierarchical_hmc"]
Y = np.array([1.5, -0.2, 0.6, 2.4])
ERROR = 1.2


def exact(n_draws: int = 250, seed: int = 1) -> dict[str, Any]:
    """Return exact draws (chain, draw) of a mean with a flat prior, given `Y`."""
    rng = np.random.default_rng(seed)
    return {"mu": Y.mean() + ERROR / np.sqrt(len(Y)) * rng.standard_normal((4, n_draws))}


def look(model: Any, draws: Any, **named: Any) -> bread.Verdict:
    return bread.verdict(bread.look(model, posterior=draws, progressbar=False, **named))


def flat(y: np.ndarray = Y) -> Any:
    pm = pytest.importorskip("pymc")
    with pm.Model() as model:
        mu = pm.Flat("mu")
        pm.Normal("y", mu, ERROR, observed=y)
    return model


@pytest.mark.statistical
def test_exact_draws_of_a_closed_form_pass_and_wrong_ones_do_not():
    draws = MODEL.fit(seed=3, cores=1, progressbar=False).draws
    right = look(MODEL, draws)
    assert right.status == "no difference seen" and not bool(right)
    wrong = look(MODEL, draws | {"mu": draws["mu"] + 0.5 * draws["mu"].std()})
    assert wrong.status == "disagreement" and wrong.direct_p_value < 1e-6
    assert "mu: mean too high by" in wrong
    rounded = look(MODEL, {name: values.astype(np.float32) for name, values in draws.items()})
    assert rounded.status == "no difference seen"


def test_lines_are_short_and_say_what_to_do():
    draws = MODEL.fit(seed=3, cores=1, progressbar=False).draws
    for verdict in (look(MODEL, draws), look(MODEL, {name: 2.0 * one for name, one in draws.items()})):
        lines = verdict.splitlines()
        assert len(lines) <= 8 and max(map(len, lines)) <= 100
        assert any(line.startswith("Do now") for line in lines)


def test_the_table_has_a_row_a_parameter():
    draws = MODEL.fit(seed=3, cores=1, progressbar=False).draws
    report = bread.look(MODEL, posterior=draws, progressbar=False)
    table = bread.summary(report)
    assert table.index.tolist() == ["mu", *(f"group_mean[{i}]" for i in range(3))]
    assert len(table.columns) == 8
    assert table.loc["mu", "mean"] == pytest.approx(draws["mu"].mean(), abs=0.01 * draws["mu"].std())
    assert table.loc["mu", "sd"] == pytest.approx(draws["mu"].std(), rel=0.005)  # to three digits, of all draws
    assert (table["shift"].abs() < 4.0 * table["shift_se"]).all()  # four standard errors, four parameters
    assert read_group(report, "first_look").attrs["n_draws"] <= 1000


def test_too_few_draws_are_inconclusive():
    draws = {name: values[:, :20] for name, values in MODEL.fit(seed=3, cores=1, progressbar=False).draws.items()}
    verdict = look(MODEL, draws)
    assert verdict.status == "inconclusive" and "effective draws" in verdict.details


def test_what_to_do_is_about_what_was_left_out():
    draws = MODEL.fit(seed=3, cores=1, progressbar=False).draws
    lacking = look(MODEL, {"mu": draws["mu"]})
    assert "Do now           pass draws of all free variables: missing group_mean\n" in f"{lacking}\n"
    few = look(MODEL, {name: values[:, :20] for name, values in draws.items()})
    assert "Do now           draw more, or bread.check(model, posterior=draws), which compares" in few
    made = bread.verdict(bread.look(MODEL, random_seed=3, cores=1, progressbar=False))
    assert "Do now           bread.check(model) bounds the error" in made


@pytest.mark.pymc
@pytest.mark.statistical
def test_a_flat_prior_is_no_obstacle():
    assert look(flat(), exact()).status == "no difference seen"
    assert look(flat(), {"mu": exact()["mu"] + 0.3}).status == "disagreement"


@pytest.mark.pymc
@pytest.mark.statistical
def test_a_potential_counts():
    """A potential that halves the variance: draws without it are wrong, draws with it are right."""
    pm = pytest.importorskip("pymc")
    with pm.Model() as model:
        mu = pm.Flat("mu")
        pm.Normal("y", mu, ERROR, observed=Y)
        pm.Potential("twice", -0.5 * len(Y) * (mu - Y.mean()) ** 2 / ERROR**2)
    draws = exact()["mu"]
    assert look(model, {"mu": draws}).status == "disagreement"
    assert look(model, {"mu": Y.mean() + (draws - Y.mean()) / np.sqrt(2.0)}).status == "no difference seen"


@pytest.mark.pymc
def test_data_of_the_draws_that_differ_are_named():
    az = pytest.importorskip("arviz")
    xr = pytest.importorskip("xarray")
    other = Y.copy()
    other[2] = 9.0
    tree = xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset({"mu": (("chain", "draw"), exact()["mu"])}),
            "observed_data": xr.Dataset({"y": ("y_dim_0", Y)}),
        }
    )
    assert az is not None
    verdict = look(flat(other), tree)
    assert verdict.status == "disagreement"
    assert "y differs: 9 in the model, 0.6 where the draws are from (element 2)" in verdict
    assert look(flat(), tree).status == "no difference seen"


@pytest.mark.statistical
def test_warm_up_that_was_left_in_is_named():
    """A twentieth of each chain, on the way from a start ten standard deviations out: it inflates standard errors."""
    draws = {name: values.copy() for name, values in MODEL.fit(seed=3, cores=1, progressbar=False).draws.items()}
    draws["mu"][:, :25] += 10.0 * draws["mu"].std() * np.linspace(1.0, 0.0, 25, endpoint=False)
    verdict = look(MODEL, draws)
    assert verdict.status == "disagreement" and "is warm-up among them?" in verdict


@pytest.mark.statistical
def test_a_discrete_parameter_is_looked_at_by_its_neighbours():
    model = CONJUGATE["label_mixture_hmc"]
    draws = model.fit(seed=3, cores=1, progressbar=False).draws
    assert look(model, draws).status == "no difference seen"
    alone = np.random.default_rng(1).permutation(draws["label"].ravel()).reshape(draws["label"].shape)
    assert look(model, draws | {"label": alone}).status == "disagreement"
    assert look(model, {name: values[:, :20] for name, values in draws.items()}).status == "inconclusive"


@pytest.mark.statistical
def test_a_model_of_discrete_parameters_alone():
    prior = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
    likelihood = np.array([[0.9, 0.1], [0.7, 0.3], [0.5, 0.5], [0.3, 0.7], [0.1, 0.9]])
    model = FiniteModel(prior, likelihood, np.array([1, 0, 1]), HeatBath((np.zeros(5, dtype=np.int64),)))
    draws = model.fit(seed=3, cores=1, progressbar=False).draws
    assert look(model, draws).status == "no difference seen"
    uniform = np.random.default_rng(1).integers(0, 5, draws["state"].shape)
    assert look(model, {"state": uniform}).status == "disagreement"


def test_draws_without_a_parameter_leave_the_look_open():
    draws = MODEL.fit(seed=3, cores=1, progressbar=False).draws
    verdict = look(MODEL, {"mu": draws["mu"]})
    assert verdict.status == "inconclusive" and "group_mean (not in your draws" in verdict


@pytest.mark.stan
@pytest.mark.slow
@pytest.mark.statistical
def test_a_program_without_a_prior():
    program = f"""data {{ int N; vector[N] y; }}
parameters {{ real mu; }}
model {{ y ~ normal(mu, {ERROR}); }}
"""
    data = {"N": len(Y), "y": Y}
    assert look(program, exact(), data=data, observed="y").status == "no difference seen"
    assert look(program, {"mu": exact()["mu"] + 0.3}, data=data, observed="y").status == "disagreement"


def threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.parametrize("verb", [bread.look, bread.check])
def test_linear_algebra_takes_one_thread_from_the_first_line_on(verb: Any, monkeypatch: Any) -> None:
    """With more, threads wait for each other at small matrices: a thousand gradients took 18 s in place of 0.5."""
    seen: list[int] = []
    conditioned = type(MODEL).condition

    def condition(*arguments: Any) -> Any:
        seen.extend(threads())
        return conditioned(*arguments)

    monkeypatch.setattr(type(MODEL), "condition", condition)
    draws = MODEL.fit(seed=3, cores=1, progressbar=False).draws
    with threadpool_limits(limits=2):
        quick = {} if verb is bread.look else {"n_temperatures": [4], "simulations": 2, "draws": 4, "cores": 1}
        verb(MODEL, posterior=draws, progressbar=False, **quick)
        assert set(threads()) == {2}, "the user's own limits are back"
    assert seen and set(seen) == {1}
