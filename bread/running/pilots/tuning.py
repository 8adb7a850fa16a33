"""The pilot: walk up the path, adapt the kernel at knots, freeze it. The knots are chosen as the pilot goes."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Kernel, Posterior, Settings
from bread.backends.support.base_draws import draw_many
from bread.backends.support.stretching import stretched_kernel
from bread.backends.values import CORRELATION
from bread.errors import DensityError
from bread.fitting.gaussian.correlations import correlation_of, is_strong
from bread.fitting.search.moving import move_reference, relative_widths, widths
from bread.fitting.search.reference_fit import ReferenceFit, fit_reference
from bread.paths.kinds import Path, PriorPath, ReferencePath
from bread.paths.schedules import next_knot
from bread.running.state.plan import PathRequest
from bread.seeds import Purpose, chain_seeds, seed_sequence

KNOT_OVERLAP = 0.1  # share of the draws at one knot that still count at the next
MAX_KNOTS = 40  # knots grow faster where beta = 1 would need more
KNOT_DRAWS = 250  # draws from the base in a pilot on a data set itself: they place its first knot
TAIL_DRAWS = 2000  # in a pilot that also shows the tail of log_ratio there
FEWER = 2  # the steps of an adaptation at a law whose widths are known are divided by this


class Pilot(NamedTuple):
    """What a pilot on one data set leaves: a frozen kernel, the path it follows, and log ratios at the path's ends.

    The ends are for the tail diagnostic: ``base_log_ratio`` at draws from the path's base, ``end_log_ratio`` at
    draws at beta = 1. ``is_moved`` says that kernel and fit are those of another data set, the reference moved.
    """

    kernel: Kernel
    path: Path
    base_log_ratio: FloatArray
    end_log_ratio: FloatArray
    fit: ReferenceFit | None = None
    is_moved: bool = False

    @property
    def n_gradients(self) -> int:
        """Gradient evaluations of the fit and of the adaptation."""
        return (0 if self.is_moved else self.kernel.n_gradients) + (self.fit.n_gradients if self.fit else 0)

    def without_draws(self) -> Pilot:
        """Return the pilot without its fit's draws, small enough to travel with every task."""
        return self if self.fit is None else self._replace(fit=self.fit.without_draws())


def run_pilot(
    posterior: Posterior,
    request: PathRequest,
    *,
    root: int,
    simulation: int,
    n_steps: int,
    shows_tail: bool,
    source: str,
    fit: ReferenceFit | None = None,
) -> Pilot:
    """Fit the path that is asked for to one data set, adapt the kernel along it and freeze both.

    Parameters are those of `tune`, with the kind of path in place of the path; ``shows_tail`` asks for so many draws
    from the base that they may tell whether their log ratio has a mean (`bread.running.path_choice.tails` draws more).
    ``fit`` is the reference where it has been fitted.
    """

    def along(path: Path, steps: int) -> Pilot:
        return tune(
            posterior, path, root=root, simulation=simulation, n_steps=steps,
            n_base_draws=TAIL_DRAWS if shows_tail else KNOT_DRAWS, source=source, fit=fit,
        )  # fmt: skip

    path: Path
    if request.kind == "reference":
        if request.reference is not None:
            path, steps = ReferencePath(request.reference), n_steps
        else:
            assert request.fit is not None
            fit = fit or fit_reference(posterior, request.fit, root=root, simulation=simulation)
            path, steps = ReferencePath(fit.reference), request.fit.n_steps
        pilot = along(path, steps)
    else:
        pilot = along(PriorPath(), n_steps)
    if fit is None:
        return pilot
    end = fit.end_log_ratio if len(fit.end_log_ratio) else pilot.end_log_ratio
    return pilot._replace(end_log_ratio=end, fit=fit)


def moved_pilot(posterior: Posterior, shared: Pilot, *, root: int, simulation: int) -> Pilot:
    """Return the pilot of another data set, whose reference is moved to this one and whose kernel is stretched.

    A kernel suits the widths of the data set that it was tuned on. Those of this one are known from its reference,
    which saw the data alone: so does the kernel. Correlations, where the kernel has any, are those of this reference.
    """
    assert shared.fit is not None
    moved = move_reference(posterior, shared.fit, shared.kernel, root=root, simulation=simulation)
    factor = relative_widths(moved.reference, shared.fit.reference)
    kernel = shared.kernel if factor is None else stretched_kernel(posterior, shared.kernel, factor)
    if kernel.correlation is not None:
        correlation = correlation_of(moved.reference)
        kernel = kernel if correlation is None else replace(kernel, correlation=correlation)
    return shared._replace(kernel=kernel, path=ReferencePath(moved.reference), fit=moved, is_moved=True)


def tune(
    posterior: Posterior,
    path: Path,
    *,
    root: int,
    simulation: int,
    n_steps: int,
    n_base_draws: int,
    source: str,
    fit: ReferenceFit | None = None,
) -> Pilot:
    """Adapt the kernel along the path and freeze it.

    Knots are placed where draws at the one before still overlap (`bread.paths.schedules.next_knot`), so that they grow
    geometrically where the path starts under a vague prior. Nothing here knows an exact posterior draw: the pilot
    begins at a draw of the path's base and sees the data alone.

    A dense metric needs variances. Those of a law given scales, which may be much dearer than the model, are known
    from its draws; elsewhere a diagonal metric is adapted first.

    Parameters
    ----------
    posterior : Posterior
        Model and one data set.
    path : Path
    root : int
        Root entropy; the pilot has random numbers of its own (`Purpose.TUNE`).
    simulation : int
        Which data set, for the seed.
    n_steps : int
        Adaptation steps at every knot.
    n_base_draws : int
        Draws from the path's base that place the first knot (and show the tail of log_ratio).
    source : str
        Kept in the kernel, for the report.
    fit : ReferenceFit, optional
        Of the path's reference.

    Returns
    -------
    Pilot
    """
    base = draw_many(posterior, path, chain_seeds(root, Purpose.TAIL, simulation, 0, range(n_base_draws)))
    base_log_ratio = posterior.log_ratio(path, base)
    usable = np.where(np.isnan(base_log_ratio), -np.inf, base_log_ratio)
    if not np.isfinite(usable).any():
        raise DensityError(
            f"None of {n_base_draws} draws from the start of the path has a finite {path.ratio_name}: the bound is "
            "infinite on this path at every number of temperatures. A path needs a start that can produce the data: "
            "widen the prior, give the likelihood a tail, or use path='reference'."
        )
    generator = np.random.default_rng(seed_sequence(root, Purpose.TUNE, simulation, 0))
    betas = [0.0]
    # where the likelihood is zero, its derivatives may be infinite, and no weight of zero takes them away
    state = base[int(np.argmax(np.isfinite(usable)))]
    correlation = correlation_along(posterior, path)
    dense: Settings = {} if correlation is None else {CORRELATION: correlation}
    seed = seed_sequence(root, Purpose.TUNE, simulation, 0, 0)
    start = settings_of_widths(posterior, fit) if dense and fit is not None else None
    if start is None:
        spent = [posterior.adapt(path, 0.0, state, seed, n_steps, previous=None)]
        if dense:  # again, from the variances that the diagonal metric came to
            previous = {**spent[0].settings, **dense}
            spent.append(posterior.adapt(path, 0.0, state, seed, n_steps, previous=previous))
    else:
        spent = [posterior.adapt(path, 0.0, state, seed, -(-n_steps // FEWER), previous={**start, **dense})]
    adaptations = spent[-1:]
    draws = [usable]
    while betas[-1] < 1.0:
        beta = _guarded_knot(betas, draws[-1])
        if len(betas) == 1:
            state = base[_resample(beta * usable, generator)]
        seed = seed_sequence(root, Purpose.TUNE, simulation, 0, len(betas))
        adaptation = posterior.adapt(path, beta, state, seed, n_steps, previous={**adaptations[-1].settings, **dense})
        state = adaptation.state
        betas.append(beta)
        adaptations.append(adaptation)
        spent.append(adaptation)
        draws.append(adaptation.log_ratio)
    kernel = Kernel(
        betas=np.array(betas),
        settings=_stack([item.settings for item in adaptations]),
        log_ratio=tuple(draws),
        source=source,
        n_gradients=sum(item.n_gradients for item in spent),
        n_evaluations=sum(item.n_evaluations for item in spent) + len(base),
        correlation=correlation,
    )
    return Pilot(kernel, path, base_log_ratio, kernel.log_ratio[-1])


def settings_of_widths(posterior: Posterior, fit: ReferenceFit) -> Settings | None:
    """Return kernel settings of a fit with a metric of the widths of its law; None where it is no law given scales.

    None too where the kernel has no metric.
    """
    stretch = getattr(posterior, "stretch", None)
    if not fit.reference.is_given or stretch is None or "inverse_metric" not in fit.settings:
        return None
    spread = widths(fit.reference)
    if not ((spread > 0.0) & np.isfinite(spread)).all():
        return None
    plain = {**fit.settings, "inverse_metric": np.ones_like(fit.settings["inverse_metric"])}
    settings: Settings = stretch(plain, spread)
    return settings


def correlation_along(posterior: Posterior, path: Path) -> FloatArray | None:
    """Return the correlations of a path's reference where a kernel of this posterior gains by them, else None."""
    if not getattr(posterior, "takes_correlation", False) or path.fitted is None:
        return None
    correlation = correlation_of(path.fitted)
    return correlation if correlation is not None and is_strong(correlation) else None


def _guarded_knot(betas: list[float], log_ratio: FloatArray) -> float:
    """Return the next knot, at least so far that geometric steps of this size reach 1 within `MAX_KNOTS`."""
    beta = next_knot(betas[-1], log_ratio, KNOT_OVERLAP)
    left = MAX_KNOTS - len(betas)
    slowest = betas[-1] ** (1.0 - 1.0 / left) if left > 1 else 1.0
    return min(1.0, max(beta, slowest)) if betas[-1] > 0.0 else beta


def _resample(log_weight: FloatArray, generator: np.random.Generator) -> int:
    finite = np.flatnonzero(np.isfinite(log_weight))
    if len(finite) == 0:
        return 0
    weights = np.exp(log_weight[finite] - log_weight[finite].max())
    return int(generator.choice(finite, p=weights / weights.sum()))


def _stack(settings: list[Settings]) -> dict[str, NDArray[np.float64]]:
    return {name: np.stack([item[name] for item in settings]) for name in settings[0]}
