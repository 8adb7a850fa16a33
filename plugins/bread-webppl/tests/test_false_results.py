"""Programs whose simulator and density disagree where five prior draws do not show it: refused, or mended."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest
import webppl_models as models
from numpy.random import SeedSequence

from bread.backends import open_model
from bread.backends.base import Kernel, OpenOptions
from bread.errors import UnsupportedModelError
from tests.support import conformance

pytestmark = pytest.mark.skipif(models.why_not() != "", reason=models.why_not() or "runs here")
PATH = conformance.PATH
KERNEL = Kernel(np.array([0.0, 1.0]), {})


def opened(body, returned="{mu: mu}", y=models.Y):
    return open_model(models.wrapped(models.program(body, returned), {"y": y}), OpenOptions())


LOOP = """
import os, time
from bread_webppl.bridge import Bridge
bridge = Bridge("node", ())
bridge._start()
print(bridge._process.pid, flush=True)
if {is_forked} and os.fork() == 0:
    time.sleep(20)
    os._exit(0)
bridge.ask("open", folder={folder!r}, packages=[], data={{}}, observed=[], filename="loop.wppl",
           program="var f = function() {{ return f(); }}; f();")
"""


@pytest.mark.parametrize("is_forked", [False, True], ids=["alone", "a fork lives on"])
def test_a_chain_ends_with_a_python_that_is_killed(is_forked):
    """Node.js is busy in a loop without end when Python is killed: it is gone within 10 seconds.

    Also where a worker that was forked holds its pipes.
    """
    program = LOOP.format(folder=models.node_modules(), is_forked=is_forked)
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as python:
        assert python.stdout is not None
        node = int(python.stdout.readline())
        time.sleep(1.5)
        os.kill(node, 0)  # it is there
        python.kill()
    try:
        for _ in range(100):
            time.sleep(0.1)
            try:
                os.kill(node, 0)
            except ProcessLookupError:
                return
        os.kill(node, 9)
        pytest.fail("Node.js goes on")
    finally:
        if is_forked:
            os.killpg(python.pid, 9)


def test_a_drift_kernel_does_not_leave_the_support():
    """WebPPL's Poisson has finite scores at negative numbers, and data that pull there: chains stay at 0 or above."""
    drift = "{driftKernel: function(x) { return Categorical({vs: [x - 1, x + 1]}); }}"
    model = opened(f"var mu = sample(Poisson({{mu: 1}}), {drift}); {models.OBSERVED}")
    posterior = model.condition({"y": models.Y - 8})
    states = posterior.evolve(PATH, KERNEL, 1.0, np.array([3.0]), range(1, 201), SeedSequence(1)).states
    assert states.min() == 0.0 and (states[-100:] == 0.0).all()


def test_objects_that_are_changed_in_place_are_refused():
    """Proposals continue a run in its midst, where the list still holds what earlier ones pushed."""
    pushed = "var l = []; map(function(i) { l.push(gaussian(0, 1)); }, _.range(3)); var mu = sum(l);"
    with pytest.raises(UnsupportedModelError, match="changes an object in place"):
        opened(f"{pushed} {models.OBSERVED}", "{l: l}")
    same = "var l = map(function(i) { return gaussian(0, 1); }, _.range(3)); var mu = sum(l);"
    assert opened(f"{same} {models.OBSERVED}", "{l: l}").info.layout.dim == 3


def test_a_site_whose_law_depends_on_data_is_refused():
    """Its prior draws would be those of simulated data; an observation may depend on an earlier one."""
    text = (
        "var mu = gaussian(0, 1); var a = observe(Gaussian({{mu: mu, sigma: 1}}), data.y[0]); "
        "var z = gaussian({}, 0.1); map(function(i) {{ observe(Gaussian({{mu: z + {}, sigma: 1}}), data.y[i]); }}, "
        "[1, 2, 3]);"
    )
    with pytest.raises(UnsupportedModelError, match="law of site 2 of the program depends on what observe returned"):
        opened(text.format("a", "0"), "{mu: mu, z: z}")
    assert opened(text.format("mu", "a"), "{mu: mu, z: z}").info.layout.dim == 2


def test_data_used_elsewhere_in_few_data_sets_are_refused_where_these_are_simulated():
    branch = "map(function(y) { observe(Gaussian({mu: mu, sigma: s}), y); }, data.y);"
    model = opened(f"var mu = gaussian(0, 1); var s = data.y[0] > 4 ? 10 : 1; {branch}")
    with pytest.raises(UnsupportedModelError, match="elsewhere than in observe"):
        model.simulate(3000, fixed=None, seed=SeedSequence(1))


def test_discrete_values_that_are_not_whole_are_kept():
    """Sites and data; the data are whole numbers, and their draws are not."""
    law = "Categorical({ps: [c, 1 - c], vs: [1, c + 1.75]})"
    site = "var c = categorical({ps: [0.5, 0.5], vs: [0.5, 0.75]});"
    body = f"{site} map(function(y) {{ observe({law}, y); }}, data.y);"
    model = opened(body, "{c: c}", np.array([1, 1, 1]))
    drawn = model.simulate(20, fixed=None, seed=SeedSequence(1))
    assert set(drawn.parameters["c"]) == {0.5, 0.75}
    assert set(drawn.data["y"].ravel()) == {1.0, 2.25, 2.5}
    np.testing.assert_array_equal(model.unconstrain(drawn.parameters), drawn.states)
    assert np.isfinite(model.condition(drawn.data_of(0)).log_ratio(PATH, drawn.states[[0]])).all()


@pytest.mark.parametrize("before", range(3))
def test_dependence_that_a_branch_hides_in_some_draws_is_seen(before):
    """mid depends on top where c is true, as in about half of the draws: both are held, or neither."""
    others = " ".join(f"var q{number} = gaussian(0, 1);" for number in range(before))
    body = f"{others} var c = flip(0.5); var top = gaussian(0, 1); var mid = gaussian(c ? top : 0, 1);"
    model = opened(f"{body} var mu = gaussian(mid, 1); {models.OBSERVED}", "{c: c, top: top, mid: mid, mu: mu}")
    assert model.info.layout.hyperparameters == ("c", "top", "mid")


def test_a_draw_outside_of_the_support_of_the_opening_is_refused():
    """A uniform number between 0 and 1, in one run of fifty between 0 and 2: it was cut off at 1."""
    model = opened(f"var c = flip(0.02); var mu = uniform(0, c ? 2 : 1); {models.OBSERVED}", "{c: c, mu: mu}")
    with pytest.raises(UnsupportedModelError, match=r"outside of \(0, 1\)"):
        model.simulate(600, fixed=None, seed=SeedSequence(1))


def test_sites_that_are_the_same_in_all_draws_get_no_name_of_another():
    """Two numbers that are 0 in 999 of 1000 draws, returned in another order than they are drawn."""
    body = "var a = sample(Poisson({mu: 1e-3})); var b = sample(Poisson({mu: 1e-3})); var mu = gaussian(a + b, 1);"
    layout = opened(f"{body} {models.OBSERVED}", "{b: b, a: a, mu: mu}").info.layout
    assert {name: list(places) for name, places in layout.positions.items()} == {"mu": [2], "unreturned": [0, 1]}
