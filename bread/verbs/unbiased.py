"""`bread.lab.unbiased`: how many iterations of plain MCMC are enough, from the meeting times of coupled chains."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import default_rng

from bread.argument_rules import is_number, received, require_count
from bread.arviz_import import require_containers
from bread.backends import model_in_context, open_model
from bread.backends.base import FloatArray, Model, OpenOptions, Posterior
from bread.couplings.adapting import adapted_kernel
from bread.couplings.chains import Pairs, run_pairs
from bread.couplings.kernel import CoupledKernel
from bread.errors import DensityError, InvalidArgumentError, UnsupportedModelError
from bread.jobs.progress import Display
from bread.paths.kinds import PriorPath
from bread.report.types import Report
from bread.report.unbiased import UnbiasedRun, unbiased_container
from bread.seeds import Purpose, root_entropy, seed_sequence
from bread.statistics.compare.meetings import FEWEST_PAIRS, meeting_bound

PILOTS = 40  # pairs that choose the lag
_ADAPTING = 8  # chains that settings are found on
_LAG = 1.5  # times the largest meeting time of the pilots
_WINDOW = 4  # lags up to the end of the window that means are over
_TRIES = 1000  # draws of a start until its density is finite
_STAGES = {"adapt": 1, "start": 2, "pilot": 3, "pairs": 4}


def unbiased(
    model: Any = None,
    *,
    start: str | float = "prior",
    pairs: int = 200,
    lag: int | None = None,
    max_iterations: int = 2000,
    tune: int = 300,
    max_error: float = 0.1,
    data: Any = None,
    observed: Any = None,
    simulator: Any = None,
    likelihood: Any = None,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> Report:
    """Bound how far plain MCMC on the real data is from the posterior after t iterations, for all t.

    Pairs of chains of one kernel are run with common random numbers until they meet. The later they meet, the larger
    the bound of the total variation between the law of a chain's t-th state and the posterior. Where all have met,
    the same chains give estimates of posterior means without the bias of a burn-in.

    Parameters
    ----------
    model : pymc.Model, cmdstanpy.CmdStanModel, path or str, optional
        What `bread.check` takes. All coordinates must be continuous, with a gradient.
    start : "prior" or float, default "prior"
        Law of the first states: draws from the prior, or Normal(0, start^2) in each unconstrained coordinate, which
        needs no prior that can be drawn from. Starts of density zero are drawn again. It should be wide: a mode that no
        start leads to is not seen.
    pairs : int, default 200
        Pairs of chains, at least 40.
    lag : int, optional
        Iterations by which the first chain of a pair is ahead. By default one and a half times the largest meeting time
        of 40 pairs of a pilot. A large lag costs more and says more: ``limit_exact`` then compares with a later law.
    max_iterations : int, default 2000
        Where a pair that has not met is given up. One such pair makes the bound unknown.
    tune : int, default 300
        Iterations in which step size and scales are found, on chains of their own; both are then frozen.
    max_error : float, default 0.1
        Largest error of a probability that the verdict asks for.
    data, observed, simulator, likelihood : optional
        As for `bread.check`.
    random_seed : int, optional
        Seed of everything random; None for fresh entropy.
    progressbar : bool, default True
        Show phases on stderr.

    Returns
    -------
    InferenceData or DataTree
        A report with the group ``unbiased``: by ``iteration`` t, ``bound`` with ``standard_error``, its upper 95% limit
        ``limit``, and ``limit_exact``; ``meeting_time`` of each pair; ``mean`` and ``mean_standard_error`` of each
        parameter. `bread.verdict` says the first t at which ``limit`` is below ``max_error``, `bread.summary` is a
        table over t, `bread.lab.plot_unbiased` draws it.

    Raises
    ------
    InvalidArgumentError
        Arguments that do not fit together, or have no such value.
    UnsupportedModelError, UnsupportedKernelError
        The model cannot be opened, has discrete coordinates, or no gradient.
    DensityError
        No start has a finite density.

    Notes
    -----
    TV(pi_t, pi) <= E[max(0, ceil((tau - L - t) / L))], with tau the meeting time and L the lag, is a theorem about
    expectations. A sample holds the meeting times that it holds: two chains that start in one mode meet early,
    however many modes there are, and a pair in a thousand that takes very long carries the expectation. So no upper
    limit holds whatever the law of tau. ``limit`` assumes that beyond the largest times seen the tail falls off as fast
    as over the slower half of those seen; it is infinite where a pair never met, and where those excesses vary more
    than exponential ones (p <= 0.01). ``limit_exact`` assumes nothing, and bounds TV(pi_t, pi_(t + L)), not the
    distance to the posterior.

    The kernel is bread's own: HMC with common random numbers, then a random walk with reflection-maximal proposals.
    The numbers are about this kernel from this start, not about draws of another sampler. V of `bread.check` needs no
    assumption about tails, and is about annealed draws on simulated data.

    References
    ----------
    Biswas, Jacob & Vanetti (2019), "Estimating convergence of Markov chains with L-lag couplings", NeurIPS 32.
    Heng & Jacob (2019), "Unbiased Hamiltonian Monte Carlo with couplings", Biometrika 106, 287-302.
    Jacob, O'Leary & Atchade (2020), "Unbiased Markov chain Monte Carlo methods with couplings", JRSS B 82, 543-600.
    """
    _check(start, pairs, lag, max_iterations, tune, max_error)
    began = time.perf_counter()
    root = root_entropy(random_seed)
    require_containers()
    options = OpenOptions(
        data=data,
        observed=observed,
        simulator=simulator,
        likelihood=likelihood,
        simulate_from="prior" if start == "prior" else "localised",
    )
    with Display(is_visible=progressbar, workers=1) as display:
        display.phase("compiling")
        opened = open_model(model_in_context(model), options)
        _refuse_discrete(opened)
        display.done()
        found = _run(opened, start, pairs, lag, max_iterations, tune, root, display)
    settings = {
        "start": start, "pairs": pairs, "lag": lag, "max_iterations": max_iterations, "tune": tune,
        "max_error": float(max_error),
    }  # fmt: skip
    return unbiased_container(opened, found, root, settings, time.perf_counter() - began)


def _check(start: Any, pairs: Any, lag: Any, max_iterations: Any, tune: Any, max_error: Any) -> None:
    is_law = start == "prior" if isinstance(start, str) else is_number(start) and start > 0
    if not is_law:
        raise InvalidArgumentError(
            f"start must be 'prior' or a positive number, the standard deviation of starts, got {received(start)}."
        )
    require_count("pairs", pairs, FEWEST_PAIRS)
    require_count("max_iterations", max_iterations, 20)
    require_count("tune", tune, 50)
    if lag is not None:
        require_count("lag", lag, 1)
        if _WINDOW * lag > max_iterations:
            raise InvalidArgumentError(
                f"max_iterations must be at least {_WINDOW} times the lag, got lag={lag} and "
                f"max_iterations={max_iterations}. Raise max_iterations."
            )
    if not (is_number(max_error) and 0 < max_error < 1):
        raise InvalidArgumentError(
            f"max_error, the largest error of a probability, must lie between 0 and 1, got {received(max_error)}."
        )


def _refuse_discrete(model: Model) -> None:
    layout = model.info.layout
    if layout.discrete.any():
        name = layout.coordinates[int(np.argmax(layout.discrete))]
        raise UnsupportedModelError(
            f"The coordinate {name!r} is discrete, and the coupled kernel moves by gradients. Sum it out of the model."
        )


def _run(
    model: Model,
    start: str | float,
    pairs: int,
    lag: int | None,
    horizon: int,
    tune: int,
    root: int,
    display: Display,
) -> UnbiasedRun:
    posterior = model.condition(model.info.data.observed)

    def density_gradient(states: FloatArray) -> tuple[FloatArray, FloatArray]:
        return posterior.density_gradient(1.0, states)

    def draw(stage: str, n: int) -> FloatArray:
        return _starts(model, posterior, start, root, _STAGES[stage], n)

    display.phase("adapting the kernel")
    seed = seed_sequence(root, Purpose.UNBIASED, 0, 0, 0)
    kernel = adapted_kernel(density_gradient, draw("adapt", _ADAPTING), tune, seed)
    display.done()
    run = _Runner(kernel, root, horizon, draw, display)
    if lag is None:
        pilot = run("pilot", PILOTS, 1, None)
        if not np.isfinite(pilot.meeting_times).all():
            return UnbiasedRun(pilot, None, kernel, np.zeros((0, 0)), (), True)
        lag = int(min(max(math.ceil(_LAG * pilot.meeting_times.max()), 2), horizon // _WINDOW))
    names, functions = _functions(model)
    found = run("pairs", pairs, lag, functions)
    bound = meeting_bound(found.meeting_times, lag, horizon)
    return UnbiasedRun(found, bound, kernel, found.estimates, names, False)


class _Runner:
    """Runs pairs from fresh starts."""

    def __init__(
        self, kernel: CoupledKernel, root: int, horizon: int, draw: Callable[[str, int], FloatArray], display: Display
    ) -> None:
        self.kernel, self.root, self.horizon, self.draw, self.display = kernel, root, horizon, draw, display

    def __call__(self, stage: str, n: int, lag: int, functions: Callable[[FloatArray], FloatArray] | None) -> Pairs:
        self.display.phase("pilot pairs" if stage == "pilot" else "coupled pairs", n)
        both = self.draw(stage, 2 * n)
        seeds = [seed_sequence(self.root, Purpose.UNBIASED, 0, _STAGES[stage], i) for i in range(n)]
        found = run_pairs(
            self.kernel, (both[:n], both[n:]), seeds, lag=lag, horizon=self.horizon,
            functions=functions, window=(lag, _WINDOW * lag), advance=self.display.advance,
        )  # fmt: skip
        self.display.done()
        return found


def _starts(model: Model, posterior: Posterior, start: str | float, root: int, stage: int, n: int) -> FloatArray:
    """Return starts of finite density, shape (n, dim): independent, each with streams of its own."""
    dim = model.info.layout.dim
    states, missing = np.empty((n, dim)), np.arange(n)
    for attempt in range(_TRIES):
        seeds = [seed_sequence(root, Purpose.UNBIASED, 1 + attempt, stage, int(i)) for i in missing]
        if isinstance(start, str):
            states[missing] = posterior.draw_base(PriorPath(), seeds)
        else:
            states[missing] = np.array([start * default_rng(seed).standard_normal(dim) for seed in seeds])
        with np.errstate(all="ignore"):
            values, gradients = posterior.density_gradient(1.0, states[missing])
        has_density = np.isfinite(values)
        is_flat = ~np.isfinite(gradients[has_density]).any(axis=0)
        if has_density.any() and is_flat.any():
            name = model.info.layout.coordinates[int(np.argmax(is_flat))]
            raise UnsupportedModelError(
                f"The density has no gradient along the coordinate {name!r} (an angle, or a variable that the gradient "
                "does not know), and the coupled kernel moves by gradients."
            )
        missing = missing[~(has_density & np.isfinite(gradients).all(axis=1))]
        if not len(missing):
            return states
    law = "the prior" if isinstance(start, str) else f"Normal(0, {start:g}^2)"
    raise DensityError(
        f"Of {n} starts from {law}, {len(missing)} had no finite density in {_TRIES} tries. "
        "Pass start= with another standard deviation."
    )


def _functions(model: Model) -> tuple[tuple[str, ...], Callable[[FloatArray], FloatArray]]:
    """Return labels of the free variables' elements, and a function of states that returns them, shape (n, p)."""
    layout = model.info.layout
    names = tuple(layout.positions) or tuple(layout.parameters)
    example = model.constrain(np.zeros((1, layout.dim)))
    labels = []
    for name in names:
        shape = np.shape(example[name])[1:]
        labels += [name + (f"[{', '.join(map(str, index))}]" if shape else "") for index in np.ndindex(*shape)]

    def values(states: FloatArray) -> FloatArray:
        found = model.constrain(states)
        return np.concatenate([np.reshape(found[name], (len(states), -1)) for name in names], axis=1).astype(float)

    return tuple(labels), values
