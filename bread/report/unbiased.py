"""The report of `bread.lab.unbiased`: one group, `unbiased`, with bounds by iteration, meeting times and means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from bread.backends.base import Model
from bread.couplings.chains import Pairs
from bread.couplings.hmc import MixedKernel
from bread.report.types import Report
from bread.report.verb import verb_container
from bread.statistics.compare.meetings import MeetingBound

GROUP = "unbiased"


@dataclass(frozen=True)
class UnbiasedRun:
    """What `bread.lab.unbiased` has computed.

    Attributes
    ----------
    pairs : Pairs
        Of the pilot where one of its pairs did not meet, and no more were run.
    bound : MeetingBound or None
        None where only the pilot was run.
    kernel : MixedKernel
        With its counter of all gradients.
    estimates : ndarray, shape (pair, parameter)
    names : tuple of str
        Of the parameters' elements.
    is_pilot : bool
        Whether the pairs are the pilot's.
    """

    pairs: Pairs
    bound: MeetingBound | None
    kernel: MixedKernel
    estimates: Any
    names: tuple[str, ...]
    is_pilot: bool


def unbiased_container(
    model: Model, run: UnbiasedRun, root: int, settings: Mapping[str, Any], seconds: float
) -> Report:
    """Return the report.

    Parameters
    ----------
    model : Model
    run : UnbiasedRun
    root : int
        Root entropy.
    settings : mapping
        Arguments, as JSON can hold them.
    seconds : float
        Wall time.

    Returns
    -------
    InferenceData or DataTree
        With the group ``unbiased``; see `unbiased_dataset`.
    """
    dataset = unbiased_dataset(run, model.info.layout.coordinates, settings)
    return verb_container(GROUP, dataset, model, root, settings, seconds)


def unbiased_dataset(run: UnbiasedRun, coordinates: tuple[str, ...], settings: Mapping[str, Any]) -> xr.Dataset:
    """Return bounds (iteration), meeting times (pair), means (parameter) and the kernel (coordinate).

    Returns
    -------
    Dataset
        `bound`, `standard_error`, `limit`, `limit_exact`: see `bread.statistics.compare.meetings.MeetingBound`; no
        iterations where only a pilot was run. `meeting_time`: infinite where a pair did not meet. `mean`,
        `mean_standard_error`: unbiased estimates; NaN unless all pairs met, for those that meet early are no sample of
        all. `scale` of each unconstrained coordinate. Attributes: `lag`, `horizon`, `n_pairs`, `n_unmet`, `is_pilot`,
        `tail_p_value` (NaN where it is not known), `is_heavy`, `max_error`, `first_iteration` (-1: none), `step_size`,
        `n_leapfrog`, `walk`, `n_gradients`, `start`.
    """
    bound, pairs = run.bound, run.pairs
    n = len(pairs.meeting_times)
    n_unmet = int((~np.isfinite(pairs.meeting_times)).sum())
    first = None if bound is None else bound.first_below(float(settings["max_error"]))
    empty = np.zeros(0)

    def column(name: str) -> Any:
        return ("iteration", empty if bound is None else getattr(bound, name))

    with np.errstate(invalid="ignore"):
        error = run.estimates.std(axis=0, ddof=1) / np.sqrt(n) if run.names else empty
        mean = run.estimates.mean(axis=0) if run.names else empty
    return xr.Dataset(
        {
            **{name: column(name) for name in ("bound", "standard_error", "limit", "limit_exact")},
            "meeting_time": ("pair", pairs.meeting_times),
            "mean": ("parameter", mean),
            "mean_standard_error": ("parameter", error),
            "scale": ("coordinate", run.kernel.scales),
        },
        coords={
            "iteration": np.zeros(0, dtype=np.int64) if bound is None else bound.iterations,
            "parameter": np.array(run.names, dtype=np.str_),
            "coordinate": np.array(coordinates, dtype=np.str_),
        },
        attrs={
            "lag": int(pairs.lag),
            "horizon": int(pairs.horizon),
            "n_pairs": n,
            "n_unmet": n_unmet,
            "is_pilot": int(run.is_pilot),
            "tail_p_value": float("nan") if bound is None or n_unmet else bound.tail_p_value,
            "is_heavy": int(bound is not None and not n_unmet and bound.is_heavy),
            "max_error": float(settings["max_error"]),
            "first_iteration": -1 if first is None else first,
            "step_size": float(run.kernel.step_size),
            "n_leapfrog": int(run.kernel.n_leapfrog),
            "walk": float(run.kernel.walk),
            "n_gradients": int(run.kernel.n_gradients),
            "start": str(settings["start"]),
        },
    )
