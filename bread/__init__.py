"""Bounds on how far MCMC draws are from the posterior.

BREAD (Bounding Divergences with REverse Annealing; Grosse, Ancha & Roy 2016) for probabilistic programs. The public
names are loaded when they are first used, so that ``import bread`` is quick and needs no optional package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bread._version import __version__

if TYPE_CHECKING:
    from bread import exact
    from bread._check import check
    from bread._compare import compare
    from bread._data_annealing import data_annealing
    from bread._debug import debug
    from bread._look import look
    from bread._path_sampling import path_sampling
    from bread._plan import plan
    from bread._resume import resume
    from bread._unbiased import unbiased
    from bread.errors import BreadError
    from bread.reading.agreement_plot import plot_agreement
    from bread.reading.bayes_factor import BayesFactor, bayes_factor
    from bread.reading.compare_plot import plot_compare
    from bread.reading.debug_plot import plot_debug
    from bread.reading.evidence import Evidence, evidence
    from bread.reading.first_look_plot import plot_first_look
    from bread.reading.outlook import Outlook
    from bread.reading.page.html import to_html
    from bread.reading.page.markdown import to_markdown
    from bread.reading.plots import plot_bounds, plot_consistency, plot_path, plot_work
    from bread.reading.plots_fit import plot_fit
    from bread.reading.report_plot import plot_report
    from bread.reading.status_plot import plot
    from bread.reading.summary import summary
    from bread.reading.unbiased_plot import plot_unbiased
    from bread.reading.verdict import Verdict, verdict
    from bread.report.quantities import add_quantities

__all__ = [
    "BayesFactor",
    "BreadError",
    "Evidence",
    "Outlook",
    "Verdict",
    "__version__",
    "add_quantities",
    "bayes_factor",
    "check",
    "compare",
    "data_annealing",
    "debug",
    "evidence",
    "exact",
    "look",
    "path_sampling",
    "plan",
    "plot",
    "plot_agreement",
    "plot_bounds",
    "plot_compare",
    "plot_consistency",
    "plot_debug",
    "plot_first_look",
    "plot_fit",
    "plot_path",
    "plot_report",
    "plot_unbiased",
    "plot_work",
    "resume",
    "summary",
    "to_html",
    "to_markdown",
    "unbiased",
    "verdict",
]

_MODULES = {
    "BayesFactor": "bread.reading.bayes_factor",
    "BreadError": "bread.errors",
    "Evidence": "bread.reading.evidence",
    "Outlook": "bread.reading.outlook",
    "Verdict": "bread.reading.verdict",
    "add_quantities": "bread.report.quantities",
    "bayes_factor": "bread.reading.bayes_factor",
    "check": "bread._check",
    "compare": "bread._compare",
    "data_annealing": "bread._data_annealing",
    "debug": "bread._debug",
    "evidence": "bread.reading.evidence",
    "exact": "bread",
    "look": "bread._look",
    "path_sampling": "bread._path_sampling",
    "plan": "bread._plan",
    "plot": "bread.reading.status_plot",
    "plot_agreement": "bread.reading.agreement_plot",
    "plot_bounds": "bread.reading.plots",
    "plot_compare": "bread.reading.compare_plot",
    "plot_consistency": "bread.reading.plots",
    "plot_debug": "bread.reading.debug_plot",
    "plot_first_look": "bread.reading.first_look_plot",
    "plot_fit": "bread.reading.plots_fit",
    "plot_path": "bread.reading.plots",
    "plot_report": "bread.reading.report_plot",
    "plot_unbiased": "bread.reading.unbiased_plot",
    "plot_work": "bread.reading.plots",
    "resume": "bread._resume",
    "summary": "bread.reading.summary",
    "to_html": "bread.reading.page.html",
    "to_markdown": "bread.reading.page.markdown",
    "unbiased": "bread._unbiased",
    "verdict": "bread.reading.verdict",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module at first use."""
    if name not in _MODULES:
        raise AttributeError(f"module 'bread' has no attribute {name!r}")
    package = _MODULES[name]
    value = import_module(f"bread.{name}") if package == "bread" else getattr(import_module(package), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
