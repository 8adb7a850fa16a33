"""What the entry point names: a module with `reads` and `open_model`."""

from typing import Any

import numpy as np

from bread.backends.base import Model, OpenOptions
from coin_models import Coins, Odd
from tests.models.reference import BetaBinomial


def reads(model: Any) -> bool:
    """Return whether ``model`` is of this package."""
    return isinstance(model, (Coins, Odd))


def open_model(model: Any, options: OpenOptions) -> Model:
    """Open coins as what they are: a beta-binomial model."""
    if isinstance(model, Odd):
        return object()  # type: ignore[return-value]
    options.refuse(("kernel", "engine", "data", "observed", "simulator", "likelihood"), "means nothing to coins")
    return BetaBinomial(np.array(model.heads), np.array(model.tosses), alpha=2.0, beta=3.0)
