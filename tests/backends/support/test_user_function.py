"""What a function of the user's is given and must return, whatever the backend."""

import numpy as np
import pytest
from numpy.random import SeedSequence

from bread.backends.support.user_function import UserFunction
from bread.errors import InvalidArgumentError

OBSERVED = {"y": ((2,), np.float64), "k": ((), np.int64)}
DATA = {"x": np.arange(2.0), "names": [1, 2]}


def draw(rng, data, fixed=None):
    mu = rng.normal() if fixed is None else fixed["mu"]
    data["x"][:] = np.nan  # a copy: the next call gets the values again
    data["names"].append(3)
    return {"mu": mu, "more": 1}, {"y": [mu, 1], "k": 3.0}


def test_draws_depend_on_their_own_seeds_alone():
    function = UserFunction(draw, DATA, {"mu": ()}, OBSERVED)
    seeds = SeedSequence(1).spawn(3)
    parameters, data = function.draw(seeds)
    assert list(parameters) == ["mu"] and data["y"].shape == (3, 2) and data["k"].dtype == np.int64
    np.testing.assert_array_equal(function.draw(seeds[1:])[0]["mu"], parameters["mu"][1:])
    np.testing.assert_array_equal(DATA["x"], [0.0, 1.0])
    assert DATA["names"] == [1, 2]
    none = function.draw([])
    assert none[0]["mu"].shape == (0,) and none[1]["y"].shape == (0, 2)


def test_held_values_are_handed_on():
    function = UserFunction(draw, DATA, {"mu": ()}, OBSERVED)
    held = {"mu": np.array(7.0)}
    assert function.takes_fixed and function.draw(SeedSequence(1).spawn(2), held)[0]["mu"].tolist() == [7.0, 7.0]
    assert not UserFunction(lambda rng, data: ({}, {}), {}, {}, {}).takes_fixed
    assert not UserFunction(dict.fromkeys, {}, {}, {}).takes_fixed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mu": [0.0]}, r"parameter 'mu' of shape \(1,\); the model declares \(\)"),
        ({"mu": "a"}, "'mu' as str 'a'; it must be numbers"),
        ({"mu": 1j}, "'mu' as complex '1j'; it must be numbers"),
        ({"mu": np.inf}, "'mu' as float 'inf'; it must be finite"),
        ({"y": [np.nan, 0.0]}, "observed variable 'y' as list .* must be finite"),
        ({"k": 2.5}, "'k' as float '2.5'; it must be whole numbers"),
    ],
)
def test_what_is_returned_is_checked(changes, message):
    def function(rng, data):
        values = {"mu": 0.0, "y": [0.0, 1.0], "k": 2} | changes
        return {"mu": values["mu"]}, {name: values[name] for name in OBSERVED}

    with pytest.raises(InvalidArgumentError, match=message):
        UserFunction(function, {}, {"mu": ()}, OBSERVED).draw([SeedSequence(1)])


def test_outcomes_may_be_missing_where_the_real_ones_are():
    def function(rng, data):
        return {}, {"y": np.array(data["y"]), "k": 1}

    drawn = UserFunction(function, {"y": [np.nan, 1.0], "k": 1}, {}, OBSERVED).draw([SeedSequence(1)])
    np.testing.assert_array_equal(drawn[1]["y"], [[np.nan, 1.0]])


def test_what_is_missing_is_named():
    with pytest.raises(InvalidArgumentError, match=r"no parameter 'mu'; it returned none. It is called as"):
        UserFunction(lambda rng, data: ({}, {}), {}, {"mu": ()}, OBSERVED).draw([SeedSequence(1)])
    with pytest.raises(InvalidArgumentError, match="simulator= failed: KeyError: 'z'. It is called as"):
        UserFunction(lambda rng, data: data["z"], {}, {"mu": ()}, OBSERVED).draw([SeedSequence(1)])
