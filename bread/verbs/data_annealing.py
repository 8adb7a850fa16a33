"""`bread.lab.data_annealing`: observations added block by block in place of a temperature; evidence from both ends."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from bread.argument_rules import is_number, received, require_choice, require_count, require_flag
from bread.arviz_import import require_containers
from bread.backends import model_in_context, open_model
from bread.backends.base import Data, Model, OpenOptions
from bread.backends.observations import require_separable
from bread.errors import InvalidArgumentError
from bread.jobs.progress import Display
from bread.report.data_annealing import DataAnnealingRun, data_annealing_container
from bread.report.types import Report
from bread.running.exactness.standalone import tests_alone
from bread.running.particles.block_kernels import block_ends, tuned_targets
from bread.running.particles.particles import Estimates, Filter, Targets, conditional, forward, harmonic
from bread.seeds import Purpose, root_entropy, seed_sequence
from bread.statistics.evidence.resampling import SCHEMES

REAL, PILOT = -1, -2  # in place of the number of a simulation
_DATA, _TUNE, _FORWARD, _CONDITIONAL, _HARMONIC = range(5)


def data_annealing(
    model: Any = None,
    *,
    blocks: int | None = None,
    particles: int = 32,
    runs: int = 4,
    simulations: int = 10,
    moves: int = 1,
    resampling: str = "systematic",
    resample_every: int = 1,
    with_harmonic: bool = False,
    tune: int = 100,
    level: float = 0.95,
    max_gap: float = 1.0,
    kernel: Any = None,
    data: Any = None,
    observed: Any = None,
    simulator: Any = None,
    likelihood: Any = None,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> Report:
    """Estimate log evidence by adding the data block by block (sequential Monte Carlo), and bound it from both sides.

    The targets are the posteriors given blocks 1, ..., t of the observations, in the order of the data. Forward, a
    particle filter gives an unbiased estimate of the evidence, so that its log is a lower bound on average. On
    simulated data, where an exact posterior draw is known, a filter that keeps one path through that draw gives an
    unbiased estimate of 1 / evidence, so that its log is an upper bound on average. The real data get the lower bound.

    Parameters
    ----------
    model : pymc.Model, cmdstanpy.CmdStanModel, path or str, optional
        What `bread.check` takes. Its observations must be independent given the parameters: one observed variable that
        splits along its first dimension.
    blocks : int, optional
        Blocks of about equal size. By default one an observation, at most 50.
    particles : int, default 32
        Particles of a run.
    runs : int, default 4
        Runs of each kind on each data set.
    simulations : int, default 10
        Simulated data sets; 0 for the real data alone.
    moves : int, default 1
        Moves of each particle by the kernel after each block.
    resampling : {"systematic", "multinomial"}, default "systematic"
        How particles are resampled.
    resample_every : int, default 1
        Blocks between one resampling and the next.
    with_harmonic : bool, default False
        Run the sequential harmonic mean too, an upper bound on average that is mostly worse.
    tune : int, default 100
        Steps by which the kernel is adapted after each block, on a data set and draws of its own.
    level : float, default 0.95
        Confidence level of intervals.
    max_gap : float, default 1.0
        Gap between the bounds, in nats, at which `bread.verdict` calls the evidence sandwiched.
    kernel, data, observed, simulator, likelihood : optional
        As for `bread.check`.
    random_seed : int, optional
        Seed of everything random; None for fresh entropy.
    progressbar : bool, default True
        Show phases on stderr.

    Returns
    -------
    InferenceData or DataTree
        A report with the group ``data_annealing``. By ``simulation`` and ``run``: ``forward`` and ``reverse`` log
        evidence in nats (``harmonic`` where asked for), gradients and evaluations of the density. By ``simulation``:
        ``log_evidence`` with its limits ``lower`` and ``upper``, and ``gap``, the mean reverse minus the mean forward
        estimate. ``real_forward`` by ``run``, with the limit ``real_lower`` among the attributes. The group
        ``direct_tests`` holds tests of 500 exact draws: simulator against density, kernel against density.
        `bread.verdict` and `bread.summary` read them.

    Raises
    ------
    InvalidArgumentError
        Arguments that do not fit together, or have no such value.
    UnsupportedModelError, UnsupportedKernelError
        The model cannot be opened, or its data do not split into independent observations.
    DensityError
        No start has a finite density.

    Notes
    -----
    ``lower`` is a limit whatever the law of the weights is, from independent runs. ``upper`` is the log of the harmonic
    mean of the reverse estimates plus log(2 / (1 - level)), by Markov's inequality: runs of one data set start from one
    exact draw, and are not independent. Each holds with probability (1 + level) / 2 over data set, draw and runs.
    Observations stay in the order of the data: another order is another sequence of targets, with the same evidence.

    References
    ----------
    Grosse, Ghahramani & Adams (2015), "Sandwiching the marginal likelihood using bidirectional Monte Carlo",
    arXiv:1511.02543, sections 3.4 and 4.2 (algorithms 2 and 3).
    Andrieu, Doucet & Holenstein (2010), "Particle Markov chain Monte Carlo methods", JRSS B 72, 269-342.
    Chopin (2002), "A sequential particle filter method for static models", Biometrika 89, 539-552.
    """
    _check(blocks, particles, runs, simulations, moves, resampling, resample_every, tune, level, max_gap)
    require_flag("with_harmonic", with_harmonic)
    began = time.perf_counter()
    root = root_entropy(random_seed)
    require_containers()
    how = Filter(particles, resampling, resample_every, moves)
    with Display(is_visible=progressbar, workers=1) as display:
        display.phase("compiling")
        options = OpenOptions(kernel=kernel, data=data, observed=observed, simulator=simulator, likelihood=likelihood)
        opened = open_model(model_in_context(model), options)
        ends = block_ends(require_separable(opened).n_observations(), blocks)
        display.done()
        found = _Work(opened, ends, how, runs, tune, with_harmonic, root, display).run(simulations)
    settings = {
        "blocks": len(ends), "particles": particles, "runs": runs, "simulations": simulations, "moves": moves,
        "resampling": resampling, "resample_every": resample_every, "with_harmonic": with_harmonic, "tune": tune,
        "level": float(level), "max_gap": float(max_gap),
    }  # fmt: skip
    return data_annealing_container(opened, found, ends, root, settings, time.perf_counter() - began)


def _check(
    blocks: Any, particles: Any, runs: Any, simulations: Any, moves: Any, resampling: Any, resample_every: Any,
    tune: Any, level: Any, max_gap: Any,
) -> None:  # fmt: skip
    if blocks is not None:
        require_count("blocks", blocks, 1)
    for name, value, least in (
        ("particles", particles, 2), ("runs", runs, 1), ("simulations", simulations, 0), ("moves", moves, 1),
        ("resample_every", resample_every, 1), ("tune", tune, 10),
    ):  # fmt: skip
        require_count(name, value, least)
    require_choice("resampling", resampling, SCHEMES)
    if not (is_number(level) and 0 < level < 1):
        raise InvalidArgumentError(f"level must lie between 0 and 1, got {received(level)}.")
    if not (is_number(max_gap) and max_gap > 0):
        raise InvalidArgumentError(f"max_gap must be a positive number of nats, got {received(max_gap)}.")


class _Work:
    """All runs on all data sets, each with random numbers of its own."""

    def __init__(
        self, model: Model, ends: tuple[int, ...], how: Filter, runs: int, tune: int, with_harmonic: bool, root: int,
        display: Display,
    ) -> None:  # fmt: skip
        self.model, self.ends, self.how, self.runs, self.tune = model, ends, how, runs, tune
        self.with_harmonic, self.root, self.display = with_harmonic, root, display

    def run(self, simulations: int) -> DataAnnealingRun:
        real = dict(self.model.info.data.observed)
        self.display.phase("adapting the kernel")
        on_real = self._targets(real, REAL)
        pilot = self.model.simulate(1, fixed=None, seed=self._seed(PILOT, _DATA)) if simulations else None
        on_pilot = None if pilot is None else self._targets(pilot.data_of(0), PILOT)
        self.display.done()
        self.display.phase("testing simulator, density and kernel")
        direct = tests_alone(self.model, (on_pilot or on_real).kernels[-1], self.root)
        self.display.done()
        self.display.phase("real data", self.runs)
        found = DataAnnealingRun(forward(on_real, self.how, self._seeds(REAL, _FORWARD)), direct)
        self.display.advance(self.runs)
        self.display.done()
        if on_pilot is None:
            return found
        drawn = self.model.simulate(simulations, fixed=None, seed=self._seed(0, _DATA))
        self.display.phase("simulated data", simulations)
        separable = require_separable(self.model)
        for index in range(simulations):
            posteriors = [separable.condition_first(drawn.data_of(index), end) for end in self.ends]
            targets, exact = Targets(posteriors, on_pilot.kernels), drawn.states[index]
            found.forward.append(forward(targets, self.how, self._seeds(index, _FORWARD)))
            found.reverse.append(conditional(targets, self.how, exact, self._seeds(index, _CONDITIONAL)))
            if self.with_harmonic:
                found.harmonic.append(self._harmonic(targets, exact, index))
            self.display.advance(1)
        self.display.done()
        return found

    def _harmonic(self, targets: Targets, exact: np.ndarray[Any, Any], index: int) -> Estimates:
        return harmonic(targets, self.how, exact, self._seeds(index, _HARMONIC))

    def _targets(self, data: Data, index: int) -> Targets:
        return tuned_targets(require_separable(self.model), data, self.ends, self.tune, self._seed(index, _TUNE))

    def _seed(self, index: int, stage: int, run: int = 0) -> SeedSequence:
        return seed_sequence(self.root, Purpose.DATA_ANNEALING, index, stage, run)

    def _seeds(self, index: int, stage: int) -> list[SeedSequence]:
        return [self._seed(index, stage, run) for run in range(self.runs)]
