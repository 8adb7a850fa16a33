"""Bounds on how far MCMC draws are from the posterior.

BREAD (Bounding Divergences with REverse Annealing; Grosse, Ancha & Roy 2016) for probabilistic programs. The public
names are loaded when they are first used, so that ``import bread`` is quick and needs no optional package.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bread._check import check
    from bread._summary import summary
    from bread._verdict import Verdict, verdict
    from bread.errors import BreadError
    from bread.plots import plot_bounds, plot_consistency, plot_path, plot_work

__all__ = [
    "BreadError",
    "Verdict",
    "check",
    "plot_bounds",
    "plot_consistency",
    "plot_path",
    "plot_work",
    "summary",
    "verdict",
]

_MODULES = {
    "BreadError": "bread.errors",
    "Verdict": "bread._verdict",
    "check": "bread._check",
    "plot_bounds": "bread.plots",
    "plot_consistency": "bread.plots",
    "plot_path": "bread.plots",
    "plot_work": "bread.plots",
    "summary": "bread._summary",
    "verdict": "bread._verdict",
}

try:
    __version__ = version("bread-mcmc")
except PackageNotFoundError:  # a source tree on the path, not installed
    __version__ = "0.0.0"


def __getattr__(name: str) -> Any:
    """Load a public name from its module at first use."""
    if name not in _MODULES:
        raise AttributeError(f"module 'bread' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted([*__all__, "__version__"])
