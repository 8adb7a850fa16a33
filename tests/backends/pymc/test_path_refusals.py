"""PyMC models that have no path from a reference: the reason."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytest
from numpy.random import SeedSequence

from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.errors import InvalidArgumentError
from bread.paths.kinds import ReferencePath
from bread.paths.mixture import diagonal
from tests.support.pymc_conjugate import MODELS, label_mixture

pytestmark = [pytest.mark.pymc, pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")]


def test_paths_are_refused_with_the_reason() -> None:
    sliced = open_model(MODELS["normal_mean"][0](), OpenOptions(kernel=pm.Slice))
    for model in (sliced, open_model(label_mixture(), OpenOptions())):
        assert model.info.paths == ("prior",)
        reason = model.info.path_refusals["reference"]
        posterior = model.condition(model.info.data.observed)
        path = ReferencePath(diagonal(np.zeros(2), np.ones(2)))
        with pytest.raises(InvalidArgumentError, match=reason[:40].replace("[", r"\[")):
            posterior.draw_base(path, [SeedSequence(1)])
        with pytest.raises(InvalidArgumentError, match="needs"):
            posterior.log_ratio(path, np.zeros((1, 2)))
    assert "kernel='nuts'" in sliced.info.path_refusals["reference"]
    assert "discrete" in reason


def test_angles_have_no_reference_path() -> None:
    with pm.Model() as model:
        angle = pm.VonMises("angle", 0, 1)
        pm.Normal("y", pm.math.cos(angle), 1, observed=0.3)
    info = open_model(model, OpenOptions()).info
    assert info.paths == ("prior",)
    assert "angle_circular__ is an angle" in info.path_refusals["reference"]
