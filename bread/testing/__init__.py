"""Assertions for test suites of samplers, distributions and models; see also `bread.testing.plugin` for pytest.

Each has a stated rate of false alarms, and a seed that is fixed unless one is given: what passes once passes again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bread.debugging.target import Target
from bread.errors import InvalidArgumentError
from bread.reading.verdict import verdict
from bread.testing.settings import Settings, current, use
from bread.verbs.check import check
from bread.verbs.debug import debug

__all__ = ["Settings", "Target", "assert_kernel_correct", "assert_reliable", "assert_simulator_matches", "use"]


def assert_kernel_correct(
    kernel: Any,
    *,
    model: Any = None,
    log_density: Callable[..., Any] | None = None,
    simulate: Callable[..., Any] | None = None,
    gradient: Callable[..., Any] | None = None,
    targets: Any = None,
    level: float | None = None,
    budget: float | None = None,
    random_seed: int | None = None,
    cores: int | None = None,
) -> Any:
    """Assert that a kernel leaves its target invariant.

    Parameters
    ----------
    kernel, model, log_density, simulate, gradient, targets : object, optional
        As for `bread.debug`: a kernel and its law, a builder of kernels for the default targets, or a step method of
        a model.
    level : float, optional
        Rate of false alarms; 0.001 by default, and the test's share of the suite's under the pytest plugin.
    budget : float, optional
        Work, times the default of `bread.debug`.
    random_seed : int, optional
        0 by default, and of the test's own under the plugin.
    cores : int, optional
        Processes, as for `bread.debug`; results do not depend on them.

    Returns
    -------
    InferenceData or DataTree
        The report of `bread.debug`.

    Raises
    ------
    AssertionError
        A test fails; the message is the verdict, and the error's ``report`` the report.
    """
    settings = current()
    report = debug(
        model,
        kernel=kernel,
        log_density=log_density,
        simulate=simulate,
        gradient=gradient,
        targets=targets,
        level=settings.level if level is None else level,
        budget=settings.budget if budget is None else budget,
        random_seed=settings.seed if random_seed is None else random_seed,
        cores=cores,
        progressbar=False,
    )
    return _required(report, settings, {"no bug found"})


def assert_simulator_matches(
    model: Any = None,
    *,
    log_density: Callable[..., Any] | None = None,
    simulate: Callable[..., Any] | None = None,
    gradient: Callable[..., Any] | None = None,
    level: float | None = None,
    budget: float | None = None,
    random_seed: int | None = None,
    **options: Any,
) -> Any:
    """Assert that random draws of a model, or of ``simulate``, follow its log density; no chain runs.

    Parameters
    ----------
    model : optional
        What `bread.check` takes; or ``log_density`` with ``simulate``, as for `bread.debug`.
    log_density, simulate, gradient : callable, optional
    level, budget, random_seed : optional
        As in `assert_kernel_correct`.
    **options
        ``data``, ``observed``, ``simulator``, ``likelihood``, ``cores`` of `bread.debug`.

    Returns
    -------
    InferenceData or DataTree
        The report of `bread.debug`.

    Raises
    ------
    AssertionError
        A test fails.
    """
    settings = current()
    report = debug(
        model,
        log_density=log_density,
        simulate=simulate,
        gradient=gradient,
        only="simulator",
        level=settings.level if level is None else level,
        budget=settings.budget if budget is None else budget,
        random_seed=settings.seed if random_seed is None else random_seed,
        progressbar=False,
        **options,
    )
    return _required(report, settings, {"no bug found"})


def assert_reliable(model: Any, *, max_error: float = 0.1, random_seed: int | None = None, **options: Any) -> Any:
    """Assert that annealed draws of a model are certified: `bread.verdict` says "converged".

    Parameters
    ----------
    model : object
        What `bread.check` takes.
    max_error : float, default 0.1
        Largest error of a probability.
    random_seed : int, optional
        As in `assert_kernel_correct`.
    **options
        Other arguments of `bread.check`.

    Returns
    -------
    InferenceData or DataTree
        The report of `bread.check`.

    Raises
    ------
    AssertionError
        The status is another; the message is the verdict.

    Notes
    -----
    This is no test with a level: the limit of V decides, which holds in 95% of checks where simulated data sets are
    alike or differ by factors; failures in a few of them may go unseen.
    """
    if "progressbar" in options:
        raise InvalidArgumentError("progressbar= is False in tests. Leave it out.")
    settings = current()
    seed = settings.seed if random_seed is None else random_seed
    report = check(model, max_error=max_error, random_seed=seed, progressbar=False, **options)
    return _required(report, settings, {"converged"})


def _required(report: Any, settings: Settings, allowed: set[str]) -> Any:
    found = verdict(report)
    if found.status in allowed:
        return report
    kept = ""
    if settings.report is not None:
        settings.report.parent.mkdir(parents=True, exist_ok=True)
        report.to_netcdf(str(settings.report))
        kept = f"\nThe report: {settings.report}"
    error = AssertionError(f"{found}{kept}")
    error.report = report  # type: ignore[attr-defined]
    raise error
