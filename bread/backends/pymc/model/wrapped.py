"""Models of packages that build a PyMC model: the one they build."""

from __future__ import annotations

from typing import Any


def pymc_model(model: Any) -> Any:
    """Return the PyMC model that a Bambi model builds, built now if it is not yet; any other model as it is."""
    if type(model).__module__.split(".")[0] != "bambi":
        return model
    if not model.built:
        model.build()
    return model.backend.model
