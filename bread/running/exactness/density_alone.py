"""What can be said of draws on the real data where nothing can be simulated: modes, fit of the model, evidence.

The first look comes before it, as in every check.
"""

from __future__ import annotations

import numpy as np

from bread.backends.base import Model
from bread.errors import BreadError
from bread.paths.kinds import PriorPath, ReferencePath
from bread.paths.mixture import Component, MixtureReference
from bread.running.check.bridge import bridge_the_fit
from bread.running.check.comparison import log_density_of_fit
from bread.running.missed_modes.phase import look_for_modes
from bread.running.model_fit.phase import look_at_fit
from bread.running.state.ledger import Ledger
from bread.running.state.plan import Plan
from bread.running.state.results import CheckResult


def look_at_density(model: Model, plan: Plan, result: CheckResult, ledger: Ledger) -> None:
    """Ask of the fit's draws what their density alone can tell; what fails is left out, with a warning."""
    dim, paths = model.info.layout.dim, model.info.paths
    if PriorPath.name not in paths:  # densities are asked for along some path
        wide = Component(np.zeros(dim), np.ones(dim), degrees=np.ones(dim))
        result.path = ReferencePath(MixtureReference((wide,), np.ones(1), "none"))
    try:
        if paths:
            result.fit_log_density = log_density_of_fit(model, result, ledger)
            bridge_the_fit(model, plan, result, ledger)
        look_at_fit(model, plan, result, ledger)
    except BreadError as error:
        result.warnings.append(f"Evidence and fit of the model were left out: {error}")
    look_for_modes(model, plan, result, ledger)
