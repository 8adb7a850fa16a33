"""Draws of models of Bambi: in the coordinates of the PyMC model, and as Bambi's ``fit`` hands them out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr

CHAINS, DRAWS = 2, 10


def draws_of(model: Any) -> tuple[dict[str, np.ndarray], Any]:
    """Return draws in the coordinates of the PyMC model, and what Bambi's fit would make of them.

    They are of the prior, and no sampler runs: what is compared is arithmetic.
    """
    inner = model.backend.model
    named = [*inner.free_RVs, *(v for v in inner.deterministics if v.name not in model.family.likelihood.params)]
    drawn = pm.draw(named, draws=CHAINS * DRAWS, random_seed=1, mode="FAST_COMPILE")
    values = {v.name: a.reshape(CHAINS, DRAWS, *a.shape[1:]) for v, a in zip(named, drawn, strict=True)}
    dims = {name: ("chain", "draw", *(inner.named_vars_to_dims.get(name) or ())) for name in values}
    coords = {name: list(of) for name, of in inner.coords.items() if any(name in one for one in dims.values())}
    data = xr.Dataset({name: (dims[name], one) for name, one in values.items()}, coords=coords)
    container = xr.DataTree.from_dict({"posterior": data})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pm, "sample", lambda **_: container)
        return {v.name: values[v.name] for v in inner.free_RVs}, model.fit()
