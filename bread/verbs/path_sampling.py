"""`bread.lab.path_sampling`: log evidence and leave-one-out scores without bias, by coupled chains along a path."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bread.argument_rules import is_number, received, require_count
from bread.arviz_import import require_containers
from bread.backends import model_in_context, open_model
from bread.backends.base import Model, OpenOptions, Posterior
from bread.backends.observations import require_separable
from bread.errors import InvalidArgumentError, UnsupportedModelError
from bread.jobs.progress import Display
from bread.paths.kinds import PriorPath
from bread.report.path_sampling import path_sampling_container
from bread.report.types import Report
from bread.running.exactness.standalone import tests_alone
from bread.running.path_sampling.path_evidence import evidence_pairs
from bread.running.path_sampling.path_sampling import LAST, Work
from bread.running.path_sampling.path_scores import score_pairs
from bread.seeds import Purpose, root_entropy, seed_sequence
from bread.statistics.evidence.unbiased_means import FEWEST_ESTIMATES

_LOOKS = 20  # prior draws at which the density must have a gradient


def path_sampling(
    model: Any = None,
    *,
    leave_out: Any = None,
    pairs: int = 400,
    max_iterations: int = 2000,
    tune: int = 200,
    level: float = 0.95,
    data: Any = None,
    observed: Any = None,
    simulator: Any = None,
    likelihood: Any = None,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> Report:
    """Estimate the log evidence, or log predictive densities of left-out observations, without bias on the log scale.

    The log evidence is the integral, over inverse temperatures from 0 (prior) to 1 (posterior), of the mean log
    likelihood. Each of ``pairs`` independent estimates takes one random inverse temperature and estimates the mean
    there by a pair of coupled chains that meet, which removes the bias of their burn-in. So the mean of the estimates
    is right on average, however short the chains are, and its standard error is that of independent numbers. With
    ``leave_out`` the path leads from the posterior without an observation to the posterior with it.

    Parameters
    ----------
    model : pymc.Model, cmdstanpy.CmdStanModel, path or str, optional
        What `bread.check` takes. All coordinates must be continuous, with a gradient; the prior must be one that can be
        drawn from, and the likelihood must not vanish anywhere on it.
    leave_out : "each" or sequence of int, optional
        Observations, numbered from 0 along the first dimension of the data, whose log predictive density given all
        others is wanted, such as those that PSIS-LOO flags. For models with one observed variable of independent
        elements, as `bread.lab.data_annealing` takes them.
    pairs : int, default 400
        Pairs of chains, of each left-out observation; at least 40.
    max_iterations : int, default 2000
        Where a pair that has not met is given up. One such pair makes the estimate unknown.
    tune : int, default 200
        Iterations in which a kernel is adapted at an inverse temperature, on chains of its own.
    level : float, default 0.95
        Two-sided confidence level of intervals.
    data, observed, simulator, likelihood : optional
        As for `bread.check`.
    random_seed : int, optional
        Seed of everything random; None for fresh entropy.
    progressbar : bool, default True
        Show phases on stderr.

    Returns
    -------
    InferenceData or DataTree
        A report with the group ``path_sampling``. By ``target`` ("log evidence", or the number of an observation):
        ``value`` in nats, ``standard_error``, ``lower`` and ``upper``, ``tail_index``. By target and ``pair``:
        ``estimate``, ``inverse_temperature``, ``meeting_time``. Attributes: ``total`` of the scores with limits. The
        group ``direct_tests`` holds tests of 500 exact draws: simulator against density. `bread.verdict` ("bug",
        "estimated" or "inconclusive") and `bread.summary` read them.

    Raises
    ------
    InvalidArgumentError
        Arguments that do not fit together, or have no such value.
    UnsupportedModelError, UnsupportedKernelError
        The model cannot be opened, has discrete coordinates, no gradient, or no prior that can be drawn from; its
        likelihood is zero somewhere; or observations cannot be left out of it.
    DensityError
        No start has a finite density.

    Notes
    -----
    **When not to trust it.** Estimates are unbiased where chains meet at last; the standard error means something where
    they have a variance. No interval is given where the tail index of the estimates is above 1/2 or one of them makes
    up a quarter of the sum of squares, and no value where a pair did not meet: pairs that did are no sample of all. An
    index is estimated: see `bread.statistics.evidence.unbiased_means.unbiased_mean` for how often that errs. What
    fewer than one pair in ``pairs`` shows is not seen: where no start leads to a mode, pairs meet without it, and its
    mass is missing from the estimate. `bread.evidence` has limits from chains in both directions.

    The inverse temperature is u^6, and u has a density constant between 13 knots, which follows the spread of pilot
    estimates over the root of their cost (equation 10 of the paper, in u). The line through the pilots' means is taken
    out of the estimates and its integral added, which is no part of the paper: it leaves them unbiased, and removes the
    variance that comes from where u falls. For left-out observations the inverse temperature is uniform, as in the
    paper. Where draws of the prior are accepted often enough they are proposed, too: at small inverse temperatures
    chains then meet under any prior.

    Priors count as normalised. A constant that is missing from the likelihood is missing here.

    References
    ----------
    Rischard, Jacob & Pillai (2018), "Unbiased estimation of log normalizing constants with applications to Bayesian
    cross-validation", arXiv:1810.01382.
    Gelman & Meng (1998), "Simulating normalizing constants", Statistical Science 13, 163-185.
    Jacob, O'Leary & Atchade (2020), "Unbiased Markov chain Monte Carlo methods with couplings", JRSS B 82, 543-600.
    """
    _check(leave_out, pairs, max_iterations, tune, level)
    began = time.perf_counter()
    root = root_entropy(random_seed)
    require_containers()
    options = OpenOptions(
        data=data, observed=observed, simulator=simulator, likelihood=likelihood, simulate_from="prior"
    )
    with Display(is_visible=progressbar, workers=1) as display:
        display.phase("compiling")
        opened = open_model(model_in_context(model), options)
        _refuse_discrete(opened)
        real = opened.info.data.observed
        _refuse_flat(opened, opened.condition(real), root)
        left_out = _left_out(opened, leave_out)
        display.done()
        display.phase("testing simulator and density")
        direct = tests_alone(opened, None, root)
        display.done()
        work = Work(pairs, max_iterations, tune, root, display)
        if left_out is None:
            found = evidence_pairs(opened.condition(real), work)
        else:
            found = score_pairs(require_separable(opened), real, left_out, work)
    settings = {
        "leave_out": left_out, "pairs": pairs, "max_iterations": max_iterations, "tune": tune, "level": float(level),
    }  # fmt: skip
    return path_sampling_container(opened, found, direct, root, settings, time.perf_counter() - began)


def _check(leave_out: Any, pairs: Any, max_iterations: Any, tune: Any, level: Any) -> None:
    require_count("pairs", pairs, FEWEST_ESTIMATES)
    require_count("max_iterations", max_iterations, 20)
    require_count("tune", tune, 50)
    if not (is_number(level) and 0 < level < 1):
        raise InvalidArgumentError(f"level must lie between 0 and 1, got {received(level)}.")
    if isinstance(leave_out, str) and leave_out != "each":
        raise InvalidArgumentError(
            f"leave_out must be 'each' or a sequence of whole numbers, got {received(leave_out)}."
        )


def _left_out(model: Model, leave_out: Any) -> list[int] | None:
    """Return the numbers of the observations that are left out in turn; None where the evidence is wanted."""
    if leave_out is None:
        return None
    n = require_separable(model).n_observations()
    if isinstance(leave_out, str):
        return list(range(n))
    values = np.atleast_1d(np.asarray(leave_out))
    is_right = values.ndim == 1 and values.size > 0 and np.issubdtype(values.dtype, np.integer)
    if not (is_right and (values >= 0).all() and (values < n).all() and len(set(values.tolist())) == len(values)):
        raise InvalidArgumentError(
            f"leave_out must be 'each' or different whole numbers from 0 to {n - 1}, got {received(leave_out)}."
        )
    return [int(value) for value in values]


def _refuse_discrete(model: Model) -> None:
    layout = model.info.layout
    if layout.discrete.any():
        name = layout.coordinates[int(np.argmax(layout.discrete))]
        raise UnsupportedModelError(
            f"The coordinate {name!r} is discrete, and the coupled kernel moves by gradients. Sum it out of the model."
        )
    if "prior" not in model.info.paths:
        raise UnsupportedModelError(model.info.path_refusals["prior"])


def _refuse_flat(model: Model, posterior: Posterior, root: int) -> None:
    """Refuse coordinates along which the density has no gradient."""
    seeds = [seed_sequence(root, Purpose.PATH_SAMPLING, 0, LAST, i) for i in range(_LOOKS)]
    with np.errstate(all="ignore"):
        values, gradients = posterior.density_gradient(1.0, posterior.draw_base(PriorPath(), seeds))
    has_density = np.isfinite(values)
    is_flat = ~np.isfinite(gradients[has_density]).any(axis=0)
    if has_density.any() and is_flat.any():
        name = model.info.layout.coordinates[int(np.argmax(is_flat))]
        raise UnsupportedModelError(
            f"The density has no gradient along the coordinate {name!r} (an angle, or a variable that the gradient "
            "does not know), and the coupled kernel moves by gradients."
        )
