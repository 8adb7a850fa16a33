"""Draws that lack parameters: what transformed parameters determine is computed, the rest is compared as it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bread.running.check.first_look import look_at
from tests.support.stan_conjugate import SCHOOLS, conjugate, eight_schools, opened

pytestmark = pytest.mark.stan
CHAINS, DRAWS = 2, 40
Draws = dict[str, np.ndarray]


def schools(scale: float = 1.0) -> Draws:
    rng = np.random.default_rng(0)
    mu, tau = rng.normal(5.0, 3.0, (CHAINS, DRAWS)), scale * rng.exponential(5.0, (CHAINS, DRAWS))
    eta = rng.normal(size=(CHAINS, DRAWS, 8))
    return {"mu": mu, "tau": tau, "eta": eta, "theta": mu[..., None] + tau[..., None] * eta}


def without(draws: Draws, *names: str) -> Draws:
    return {name: values for name, values in draws.items() if name not in names}


def test_an_offset_is_what_the_transformed_parameter_says() -> None:
    fit = eight_schools().read_posterior(without(schools(), "eta"))
    assert list(fit.draws) == ["mu", "tau", "eta"] and not fit.missing
    np.testing.assert_allclose(fit.draws["eta"], schools()["eta"], rtol=1e-6, atol=1e-8)
    assert "no 'eta': it was computed from 'theta'" in fit.notes[0]
    assert not eight_schools().read_posterior(schools()).notes


@pytest.mark.parametrize(("scale", "is_derived"), [(1.0, True), (1e-5, False)])
def test_six_digits_of_a_file_are_enough_where_they_leave_the_offset(scale: float, is_derived: bool) -> None:
    rounded = {name: np.vectorize(lambda one: float(f"{one:.6g}"))(one) for name, one in schools(scale).items()}
    fit = eight_schools().read_posterior(without(rounded, "eta"))
    assert (fit.missing == ()) is is_derived and ("theta" in fit.draws) is not is_derived


def test_two_that_are_missing_are_not_told_from_one() -> None:
    fit = eight_schools().read_posterior(without(schools(), "eta", "mu"))
    assert fit.missing == ("mu", "eta") and list(fit.draws) == ["tau", "theta"]
    assert eight_schools().read_posterior({"theta": schools()["theta"]}).missing == ("mu", "tau", "eta")


def test_a_bounded_parameter_is_not_solved_for() -> None:
    assert eight_schools().read_posterior(without(schools(), "tau")).missing == ("tau",)


def test_the_look_says_what_is_missing_and_still_compares_the_data() -> None:
    model = eight_schools()
    fit = model.read_posterior({"theta": schools()["theta"]})
    found = look_at(model, replace(fit, data={"y": np.r_[18, SCHOOLS["y"][1:]]}))
    assert np.isnan(found.found.p_value) and found.left_out == {
        "mu, tau, eta": "not in your draws, and nothing there determines it"
    }
    assert [(one.name, one.element, one.model, one.draws) for one in found.other_data] == [("y", "0", 28.0, 18.0)]


GENERATED = "generated quantities { real top = max(theta); real again = normal_rng(theta[1], 1); }"


@pytest.mark.slow
def test_generated_quantities_are_computed_anew_each_with_random_numbers_of_its_own() -> None:
    from tests.support.stan_conjugate import CONJUGATE

    case = CONJUGATE["hierarchical"]
    model = opened(f"{case.text}\n{GENERATED}", case.data)
    states = conjugate("hierarchical").simulate(400, fixed=None, seed=np.random.SeedSequence(3)).states
    theta = model.constrain(states)["theta"]
    fit = model.read_posterior({"top": theta.max(axis=1).reshape(2, -1), "again": theta[:, 0].reshape(2, -1)})
    assert list(fit.draws) == ["again", "top"] or list(fit.draws) == ["top", "again"]
    found = model.derive(states, ["top", "again"])
    np.testing.assert_array_equal(found["top"], theta.max(axis=1))
    noise = found["again"] - theta[:, 0]
    assert len(np.unique(noise)) == 400 and abs(noise.mean()) < 4 / np.sqrt(400)  # 4 standard errors of sd 1
    assert abs(noise.std() - 1) < 4 / np.sqrt(2 * 400)
