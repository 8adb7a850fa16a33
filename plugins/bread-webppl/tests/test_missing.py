"""What is said where Node.js or the npm package is missing, and of what is no model; needs neither."""

from __future__ import annotations

import shutil
import sys

import numpy as np
import pytest

import bread
import bread_webppl
from bread.errors import BreadError, InvalidArgumentError, MissingDependencyError
from bread_webppl.coordinates import Coordinates

PROGRAM = "var model = function(data) { return 1; };"
REAL = {"y": [1.0, 2.0]}


def check(model):
    bread.check(model, progressbar=False)


def test_missing_node_is_named():
    with pytest.raises(MissingDependencyError, match=r"need Node\.js, and 'no-such-node' cannot be started.*node=path"):
        check(bread_webppl.Model(PROGRAM, REAL, "y", node="no-such-node"))


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_the_missing_npm_package_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("NODE_PATH", raising=False)
    with pytest.raises(MissingDependencyError, match=r"npm package 'webppl'.*npm install webppl.*node_modules="):
        check(bread_webppl.Model(PROGRAM, REAL, "y", node_modules=tmp_path))


def test_a_process_that_ends_is_reported_with_its_last_words():
    """Python in the place of Node.js: it ends with a syntax error of the driver."""
    with pytest.raises(BreadError, match=r"Node\.js ended during the request 'open', with status 1: SyntaxError"):
        check(bread_webppl.Model(PROGRAM, REAL, "y", node=sys.executable))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, REAL, "y"), "program must be the text"),
        ((PROGRAM, [1.0], "y"), "data must be a dict"),
        ((PROGRAM, REAL, "x"), r"observed must name variables of the data \(y\); received 'x'"),
        ((PROGRAM, REAL, ()), "observed must name variables"),
        ((PROGRAM, REAL, "y", 0), "updates must be a whole number of proposals, at least 1; received 0"),
        ((PROGRAM, REAL, "y", None, "folder"), "packages must be a sequence of folders; received 'folder'"),
    ],
)
def test_what_is_no_model_is_refused(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        bread_webppl.Model(*arguments)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"y": ["a"]}, "must hold numbers or booleans; received values of type"),
        ({"y": [1.0, np.nan]}, "received 2 of which 1 are NaN"),
        ({"y": []}, "received 0 of which"),
        ({"y": [[1.0], [1.0, 2.0]]}, "is no array"),
        ({"y": [1.0], "x": [np.inf]}, r"data\['x'\] cannot be passed to WebPPL"),
        ({"y": [1.0], "x": object()}, r"data\['x'\] cannot be passed to WebPPL"),
    ],
)
def test_data_that_cannot_be_passed_are_refused(data, message):
    with pytest.raises(InvalidArgumentError, match=message):
        check(bread_webppl.Model(PROGRAM, data, "y"))


def test_a_program_that_cannot_be_read(tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"none\.wppl' cannot be read"):
        check(bread_webppl.Model(tmp_path / "none.wppl", REAL, "y"))
    (tmp_path / "some.wppl").write_text(PROGRAM)
    assert bread_webppl.Model(tmp_path / "some.wppl", REAL, "y").text() == ("some", PROGRAM)
    assert bread_webppl.Model(str(tmp_path / "some.wppl"), REAL, "y").text() == ("some", PROGRAM)
    assert bread_webppl.Model(PROGRAM, REAL, "y").text() == ("model", PROGRAM)


def test_coordinates_are_right_to_the_last_digits_and_stay_inside():
    """There and back (1e-12); Jacobian and gradient by differences (1e-7); draws that were rounded to an end."""
    ends = np.array([[-np.inf, np.inf], [0.0, np.inf], [2.0, np.inf], [0.0, 1.0], [-3.0, 5.0]])
    both = Coordinates(ends[:, 0], ends[:, 1])
    states = np.random.default_rng(1).normal(size=(6, 5))
    values = both.values(states)
    np.testing.assert_allclose(both.states(values), states, rtol=1e-9, atol=1e-12)
    step = 1e-6
    slopes = (both.values(states + step) - both.values(states - step)) / (2 * step)
    np.testing.assert_allclose(both.log_jacobian(states), np.log(slopes).sum(axis=1), atol=1e-7)
    for place in range(5):
        moved = step * np.eye(5)[place]
        jacobian = (both.log_jacobian(states + moved) - both.log_jacobian(states - moved)) / (2 * step)
        squares = -np.diff([(both.values(states + sign * moved) ** 2).sum(axis=1) for sign in (1, -1)], axis=0)[0]
        found = both.gradient(states, 2 * values)[:, place]
        np.testing.assert_allclose(found, squares / (2 * step) + jacobian, rtol=1e-6, atol=1e-6)
    rounded = both.states(np.array([[0.0, 0.0, 2.0, 1.0, -3.0]]))
    assert np.isfinite(rounded).all() and (both.values(rounded)[0, 1:3] >= [0.0, 2.0]).all()
