"""Bounds on how far MCMC draws are from the posterior.

BREAD (Bounding Divergences with REverse Annealing; Grosse, Ancha & Roy 2016) for probabilistic programs. The public
names are loaded when they are first used, so that ``import bread`` is quick and needs no optional package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bread._version import __version__

if TYPE_CHECKING:
    from bread._check import check
    from bread.errors import BreadError
    from bread.reading.agreement_plot import plot_agreement
    from bread.reading.plots import plot_bounds, plot_consistency, plot_path, plot_work
    from bread.reading.plots_fit import plot_fit
    from bread.reading.summary import summary
    from bread.reading.verdict import Verdict, verdict

__all__ = [
    "BreadError",
    "Verdict",
    "__version__",
    "check",
    "plot_agreement",
    "plot_bounds",
    "plot_consistency",
    "plot_fit",
    "plot_path",
    "plot_work",
    "summary",
    "verdict",
]

_MODULES = {
    "BreadError": "bread.errors",
    "Verdict": "bread.reading.verdict",
    "check": "bread._check",
    "plot_agreement": "bread.reading.agreement_plot",
    "plot_bounds": "bread.reading.plots",
    "plot_consistency": "bread.reading.plots",
    "plot_fit": "bread.reading.plots_fit",
    "plot_path": "bread.reading.plots",
    "plot_work": "bread.reading.plots",
    "summary": "bread.reading.summary",
    "verdict": "bread.reading.verdict",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module at first use."""
    if name not in _MODULES:
        raise AttributeError(f"module 'bread' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
