"""Engine overhead: annealing against a bare loop of the same step method, and against PyMC's compiled gradient."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from frozen import Chains, tuned_chains
from measuring import NAMES, build_model, median, print_table
from threadpoolctl import threadpool_limits

from bread.backends import open_model
from bread.backends.base import FloatArray, OpenOptions
from bread.backends.pymc.density.compiling import compile_mode
from bread.backends.pymc.kernels.chains import Chain
from bread.paths.kinds import PriorPath

N_TEMPERATURES = 65
N_CHAINS = 4
ROUNDS = 15  # each measures engine and loop one after the other; the median of their ratios counts
N_CALLS = 2000  # of a raw gradient, in a round
LIMIT = 1.10


class Case(NamedTuple):
    """Chains, and what the bare loop takes for them: the kernel at each temperature, as the step takes it."""

    chains: Chains
    settings: list[Any]


def run() -> None:
    """Measure and print."""
    rows = []
    with threadpool_limits(limits=1):
        for name in NAMES:
            for kernel in ("nuts", "hmc"):
                rows.append((name, kernel.upper(), *_measure(name, kernel)))
    print_table(
        "Engine overhead: CPU time per gradient evaluation, in microseconds",
        ("model", "kernel", "gradients", "raw: PyMC", "raw: tempered", "loop", "engine", "engine / raw PyMC",
         "engine / loop", "engine / loop, beta = 1", f"both <= {LIMIT}"),
        [(*row, "yes" if max(row[-2:]) <= LIMIT else "NO") for row in rows],
        f"Engine: `Posterior.anneal`, {N_CHAINS} chains, T = {N_TEMPERATURES}. Loop: `point, _ = step.step(point)` "
        "with the same PyMC step method on the same compiled function, schedule, settings and random numbers; its "
        "chains end in the same states, bit by bit. In the last ratio the loop sets nothing between steps, since every "
        "inverse temperature is 1. Raw: calls of PyMC's `logp_dlogp_function`, and of the compiled tempered gradient, "
        f"alone. Medians of {ROUNDS} interleaved rounds; a ratio is the median of the ratios within a round.",
    )  # fmt: skip


def _measure(name: str, kernel: str) -> tuple[float, ...]:
    """Return the number of gradients, four costs per gradient (microseconds) and three ratios."""
    model = build_model(name)
    case = _prepare(model, kernel)
    fixed = Case(
        case.chains._replace(
            betas=np.concatenate([[0.0], np.ones(N_TEMPERATURES - 1)]), start=case.chains.anneal().state_at_end
        ),
        [case.settings[-1]] * N_TEMPERATURES,
    )
    n_gradients = {False: _require_same_chains(case), True: _require_same_chains(fixed)}
    engine = case.chains.posterior.engine
    positions = [engine.position_of(state) for state in fixed.chains.start]
    gradient = {"raw": _pymc_gradient(model), "tempered": engine.steps[0].gradient.function}
    seconds: dict[str, list[float]] = defaultdict(list)
    for index in range(ROUNDS):
        for is_fixed, one in ((False, case), (True, fixed)):
            for which in ("engine", "loop") if index % 2 else ("loop", "engine"):
                engine_work = partial(_run_chains, one) if is_fixed else one.chains.anneal
                work = engine_work if which == "engine" else partial(_bare_loop, one)
                seconds[which + " fixed" * is_fixed].append(_cpu_seconds(work) / n_gradients[is_fixed])
        for which, function in gradient.items():
            seconds[which].append(_cpu_seconds(partial(_call, function, positions)) / N_CALLS)
    times = {which: np.array(values) for which, values in seconds.items()}
    return (
        n_gradients[False],
        *(1e6 * median(times[which]) for which in ("raw", "tempered", "loop", "engine")),
        median(times["engine"] / times["raw"]),
        median(times["engine"] / times["loop"]),
        median(times["engine fixed"] / times["loop fixed"]),
    )


def _prepare(model: Any, kernel: str) -> Case:
    chains = tuned_chains(open_model(model, OpenOptions(kernel=kernel)), N_TEMPERATURES, N_CHAINS)
    step = chains.posterior.engine.steps[0]
    return Case(chains, [step.prepare(values) for values in chains.kernel.along(chains.betas)])


def _bare_loop(case: Case) -> list[FloatArray]:
    """Run the chains as a user of PyMC would: set the density where it changes, call the step; record nothing."""
    chains, engine = case.chains, case.chains.posterior.engine
    (frozen,) = engine.steps
    step, function, layout = frozen.step, frozen.gradient.function, engine.layout
    wrapped = step.integrator._logp_dlogp_func
    step.integrator._logp_dlogp_func = lambda position, _: function(position)[:2]
    ends = []
    try:
        with np.errstate(all="ignore"):
            for start, seed in zip(chains.start, chains.seeds, strict=True):
                engine.reset(seed)
                point, before = layout.unflatten(start), None
                for beta, values in zip(chains.betas[1:], case.settings[1:], strict=True):
                    if beta != before:
                        engine.controls.set_beta(beta)
                        frozen.apply(values, reverse=False)
                        before = beta
                    point, _ = step.step(point)
                ends.append(layout.flatten(point))
    finally:
        step.integrator._logp_dlogp_func = wrapped
    return ends


def _run_chains(case: Case) -> list[Chain]:
    """Run the engine's chains one by one: one inverse temperature again and again is no ladder that `anneal` takes."""
    path, chains, done = PriorPath(), case.chains, []
    engine = chains.posterior.load(path)
    prepared = [engine.prepare(settings) for settings in chains.kernel.along(chains.betas)]
    with np.errstate(all="ignore"):
        for state, seed in zip(chains.start, chains.seeds, strict=True):
            engine.reset(seed)
            chain = Chain(engine, path, chains.betas, prepared, "forward", state)
            chain.run()
            done.append(chain)
    return done


def _require_same_chains(case: Case) -> int:
    """Return the number of gradient evaluations; the loop must end in the engine's states, bit by bit."""
    chains = _run_chains(case)
    if not np.array_equal(np.stack(_bare_loop(case)), np.stack([chain.state_at_end for chain in chains])):
        raise AssertionError("The bare loop and the engine must run the same chains.")
    return int(sum(chain.n_gradients for chain in chains))


def _pymc_gradient(model: Any) -> Callable[..., Any]:
    """Return PyMC's compiled log density and gradient, in the mode that the engine uses."""
    gradient = model.logp_dlogp_function(ravel_inputs=True, mode=compile_mode())
    gradient.set_extra_values({})
    function: Callable[..., Any] = gradient._pytensor_function
    function.trust_input = True  # type: ignore[attr-defined]
    return function


def _call(function: Callable[..., Any], positions: Sequence[FloatArray]) -> None:
    for index in range(N_CALLS):
        function(positions[index % len(positions)])


def _cpu_seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
