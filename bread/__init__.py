"""Bounds on how far MCMC draws are from the posterior.

BREAD (Bounding Divergences with REverse Annealing; Grosse, Ancha & Roy 2016) for probabilistic programs. The public
names are loaded when they are first used, so that ``import bread`` is quick and needs no optional package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bread._version import __version__

if TYPE_CHECKING:
    from bread import exact, lab
    from bread.backends.stan.native.kernels import StanKernel
    from bread.errors import BreadError
    from bread.reading.evidence.bayes_factor import BayesFactor, bayes_factor
    from bread.reading.evidence.evidence import Evidence, evidence
    from bread.reading.other_verbs.outlook import Outlook
    from bread.reading.page.html import to_html
    from bread.reading.page.markdown import to_markdown
    from bread.reading.plots.agreement_plot import plot_agreement
    from bread.reading.plots.compare_plot import plot_compare
    from bread.reading.plots.debug_plot import plot_debug
    from bread.reading.plots.first_look_plot import plot_first_look
    from bread.reading.plots.plots import plot_bounds, plot_consistency, plot_path, plot_work
    from bread.reading.plots.plots_fit import plot_fit
    from bread.reading.plots.report_plot import plot_report
    from bread.reading.plots.status_plot import plot
    from bread.reading.summary import summary
    from bread.reading.verdict import Verdict, verdict
    from bread.report.quantities import add_quantities
    from bread.report.types import Report
    from bread.verbs.check import check
    from bread.verbs.compare import compare
    from bread.verbs.debug import debug
    from bread.verbs.look import look
    from bread.verbs.plan import plan
    from bread.verbs.resume import resume

__all__ = [
    "BayesFactor",
    "BreadError",
    "Evidence",
    "Outlook",
    "Report",
    "StanKernel",
    "Verdict",
    "__version__",
    "add_quantities",
    "bayes_factor",
    "check",
    "compare",
    "debug",
    "evidence",
    "exact",
    "lab",
    "look",
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
    "plot_work",
    "resume",
    "summary",
    "to_html",
    "to_markdown",
    "verdict",
]

_MODULES = {
    "BayesFactor": "bread.reading.evidence.bayes_factor",
    "BreadError": "bread.errors",
    "Evidence": "bread.reading.evidence.evidence",
    "Outlook": "bread.reading.other_verbs.outlook",
    "Report": "bread.report.types",
    "StanKernel": "bread.backends.stan.native.kernels",
    "Verdict": "bread.reading.verdict",
    "add_quantities": "bread.report.quantities",
    "bayes_factor": "bread.reading.evidence.bayes_factor",
    "check": "bread.verbs.check",
    "compare": "bread.verbs.compare",
    "debug": "bread.verbs.debug",
    "evidence": "bread.reading.evidence.evidence",
    "exact": "bread",
    "lab": "bread",
    "look": "bread.verbs.look",
    "plan": "bread.verbs.plan",
    "plot": "bread.reading.plots.status_plot",
    "plot_agreement": "bread.reading.plots.agreement_plot",
    "plot_bounds": "bread.reading.plots.plots",
    "plot_compare": "bread.reading.plots.compare_plot",
    "plot_consistency": "bread.reading.plots.plots",
    "plot_debug": "bread.reading.plots.debug_plot",
    "plot_first_look": "bread.reading.plots.first_look_plot",
    "plot_fit": "bread.reading.plots.plots_fit",
    "plot_path": "bread.reading.plots.plots",
    "plot_report": "bread.reading.plots.report_plot",
    "plot_work": "bread.reading.plots.plots",
    "resume": "bread.verbs.resume",
    "summary": "bread.reading.summary",
    "to_html": "bread.reading.page.html",
    "to_markdown": "bread.reading.page.markdown",
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
