"""Which base a hierarchy with standardised effects gets: the centred one where data say much of its scale."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest

from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.fitting.search.before_chains import finds_reference
from bread.fitting.search.reference_fit import FitRequest

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]


def schools() -> pm.Model:
    y, se = [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0], [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]
    with pm.Model() as model:
        tau = pm.HalfNormal("tau", 5)
        pm.Normal("y", pm.Normal("mu", 0, 5) + tau * pm.Normal("z", 0, 1, shape=8), se, observed=y)
    return model


def slopes() -> pm.Model:
    """Correlated intercepts and slopes of 12 groups, Poisson counts."""
    rng = np.random.default_rng(1)
    group, x = np.repeat(np.arange(12), 40), rng.normal(size=480)
    u = rng.multivariate_normal([0.0, 0.0], [[0.4, 0.1], [0.1, 0.2]], 12)
    with pm.Model() as model:
        factor, _, _ = pm.LKJCholeskyCov("factor", n=2, eta=2, sd_dist=pm.HalfNormal.dist(1, shape=2))
        effects = pm.math.dot(factor, pm.Normal("z", 0, 1, shape=(2, 12)))
        log_rate = pm.Normal("b", 1, 1) + effects[0][group] + effects[1][group] * x
        pm.Poisson("y", pm.math.exp(log_rate), observed=rng.poisson(np.exp(1 + u[group, 0] + u[group, 1] * x)))
    return model


@pytest.mark.parametrize(("build", "family"), [(schools, "nested"), (slopes, "centred")])
def test_the_base_that_a_look_finds(build, family):
    opened = open_model(build(), OpenOptions())
    layout = opened.info.layout
    posterior = opened.condition(opened.info.data.observed)
    request = FitRequest(layout.dim, np.asarray(layout.may_be_scale), 100, is_shared=True, rotatable=())
    look = finds_reference(posterior, request, root=1, simulation=0)
    assert look.is_found and look.found is not None
    assert list(look.found.references) == [family]
    if family == "centred":
        (link,) = look.found.references["centred"].links
        assert len(link.sources) == 12
