"""`bread.look`: a user's draws against the gradient of the density at them; a thousand gradients."""

from __future__ import annotations

import time
from typing import Any

from bread.arviz_import import require_containers
from bread.backends import model_in_context, open_model
from bread.backends.base import OpenOptions
from bread.backends.support.draw_forms import plain_form
from bread.jobs.executors import available_cores, one_thread
from bread.jobs.progress import Display
from bread.report.first_look import GROUP, first_look_dataset
from bread.report.fit_quality import quality_attributes
from bread.report.types import Report
from bread.report.verb import verb_container
from bread.running.check.first_look import look_at
from bread.seeds import Purpose, root_entropy, seed_sequence


def look(
    model: Any = None,
    *,
    posterior: Any = None,
    data: Any = None,
    observed: Any = None,
    likelihood: Any = None,
    cores: int | None = None,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> Report:
    """Look at draws directly: compare them with the gradient of the posterior's density.

    At draws of the posterior, ``E[g_i h + d_i h] = 0`` for the gradient g of the log density and every smooth bounded
    function h (Stein's identity). The draws' own means of many such functions are compared with zero, at most 1000
    draws, one gradient each. Nothing is simulated, so priors may be flat, and `pm.Potential` and laws without a
    random generator are taken as they are.

    Parameters
    ----------
    model : pymc.Model, cmdstanpy.CmdStanModel, path or str, optional
        What `bread.check` takes; the model around a ``with`` block by default.
    posterior : InferenceData, DataTree, Dataset, dict, data frame or paths, optional
        Your draws, of all free variables, in any form that `bread.check` takes. Where some are missing that nothing
        determines, only their data are looked at. Without it the model is sampled by its
        own sampler first, and those draws are looked at.
    data, observed, likelihood : optional
        Stan: as for `bread.check`.
    cores : int, optional
        For sampling, where no draws are given.
    random_seed : int, optional
        Likewise; the look itself has nothing random.
    progressbar : bool, default True
        Show phases on stderr.

    Returns
    -------
    InferenceData or DataTree
        A report with the group ``first_look``. `bread.verdict` says "disagreement" (p < 0.001, or the draws are of
        other data), "no difference seen", or "inconclusive" (too few effective draws, or a parameter without a
        gradient). `bread.summary` is a table over parameters: how far means (``shift``, in standard deviations of your
        draws) and standard deviations (``sd_ratio``) are off, with standard errors, and what would have been seen 9
        times in 10. `bread.plot` draws it.

    Raises
    ------
    InvalidArgumentError
        Draws that do not fit the model, or an argument that is not allowed.
    UnsupportedModelError
        The model has no density that can be evaluated.

    Notes
    -----
    Blind to the weights of separate modes and to modes that no draw is in: `bread.check` looks for those.

    References
    ----------
    Stein (1972), "A bound for the error in the normal approximation ...", Berkeley Symp. 2, 583-602.
    """
    began, root = time.perf_counter(), root_entropy(random_seed)
    require_containers()
    posterior = plain_form(posterior)
    given = {} if posterior is None else {"posterior": posterior}
    options = OpenOptions(data=data, observed=observed, likelihood=likelihood, density_only=True, draws=given)
    with one_thread(), Display(is_visible=progressbar, workers=1) as display:
        display.phase("compiling")
        opened = open_model(model_in_context(model), options)
        display.done()
        if posterior is None:
            display.phase("sampling", phase="fit")
            seed = int(seed_sequence(root, Purpose.FIT).generate_state(1)[0])
            fit = opened.fit(seed=seed, cores=available_cores(cores), progressbar=False)
        else:
            display.phase("looking at your draws")
            fit = opened.read_posterior(posterior)
        result = look_at(opened, fit)
        display.done()
    settings = {"posterior": fit.source}
    seconds = time.perf_counter() - began
    return verb_container(
        GROUP, first_look_dataset(result), opened, root, settings, seconds, more=quality_attributes(fit)
    )
