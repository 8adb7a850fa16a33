"""Hyperparameters held while simulating: draws of the fit, never their mean."""

import json

import numpy as np

import bread
from bread.backends.base import Fit
from bread.errors import DensityError
from bread.report.compat import read_attributes, read_group
from bread.running.pilots.fitted_hyperparameters import HeldDraws, mixing_of
from bread.running.state.results import SHARED
from tests.models.reference import HMCKernel, NormalMean

MODES = np.random.default_rng(1).choice([-1.0, 1.0], size=(4, 100))  # their mean, about 0, is no draw
LOCATION = np.random.default_rng(2).normal(3.0, 1.0, (4, 100, 2))


def held(root: int = 5) -> HeldDraws:
    return HeldDraws(Fit({"b": MODES, "mu": LOCATION}, "posterior="), ["b", "mu"], root)


def test_every_data_set_has_a_draw_of_the_fit_and_parameters_stay_together():
    flat = LOCATION.reshape(-1, 2)
    for index in range(30):
        values = held().of(7, index)
        row = int(np.flatnonzero((flat == values["mu"]).all(axis=1))[0])
        assert values["b"] == MODES.ravel()[row]


def test_draws_follow_the_fit():
    # 400 picks of a mean with sd 1: 4 standard errors are 0.2; and both modes are held about as often.
    picks = [held().of(simulation, 0) for simulation in range(400)]
    assert abs(np.mean([pick["mu"][0] for pick in picks]) - LOCATION[..., 0].mean()) < 0.2
    assert abs(np.mean([pick["b"] for pick in picks]) - MODES.mean()) < 0.2
    # the control: one draw for all, as an estimate would be
    same = [held().of(0, 0) for _ in range(400)]
    assert np.std([pick["mu"][0] for pick in same]) == 0.0 < np.std([pick["mu"][0] for pick in picks])


def test_the_extra_data_set_has_a_typical_draw():
    values = held().of(SHARED, 0)
    assert np.all(np.abs(values["mu"] - 3.0) < 0.5) and values["b"] in (-1.0, 1.0)


def test_the_seed_decides():
    assert held(5).of(3, 1)["mu"].tolist() == held(5).of(3, 1)["mu"].tolist()
    assert held(5).of(3, 1)["mu"].tolist() != held(6).of(3, 1)["mu"].tolist()


def test_copies_of_draws_count_once():
    """400 independent draws are enough; as copies of a tenth of them they are not."""
    found = [mixing_of(Fit({"mu": LOCATION}, "posterior=", distinct_share=share)) for share in (1.0, 0.1)]
    assert found[1].n_effective == 0.1 * found[0].n_effective
    assert [one.is_doubtful for one in found] == [False, True]


class NoDataBelow(NormalMean):
    """A simulator that has no data at all where the mean is below 0.2."""

    def draw_data(self, parameters, generator):
        if float(parameters["mean"]) < 0.2:
            raise DensityError("nothing can be drawn here")
        return super().draw_data(parameters, generator)


def test_a_draw_at_which_no_data_can_be_simulated_does_not_end_a_check():
    """As of one chain of four that never moved: another draw takes its place, and the report says so."""
    model = NoDataBelow(np.array([0.4, 1.9, 1.1]), 1.0, 0.5, 1.5, HMCKernel(n_leapfrog=4))
    draws = np.random.default_rng(1).normal(1.0, 0.3, (4, 200))
    draws[3] = -5.0
    report = bread.check(
        model, posterior={"mean": draws}, simulations=4, chains=2, n_temperatures=4, draws=0, tune=10, random_seed=1,
        cores=1, progressbar=False,
    )  # fmt: skip
    said = json.loads(read_attributes(report)["warnings"])
    assert any(one.startswith("Draws of the fit at which no data can be simulated were passed over") for one in said)
    assert (read_group(report, "truth")["mean"].values >= 0.2).all() and not bread.verdict(report)
