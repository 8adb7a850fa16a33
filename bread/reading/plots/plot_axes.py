"""Scales and ticks of the plots; labels of ticks do not touch each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bread.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FAR = 50.0  # times the median size: then one end of an axis hides the rest
_MARGIN = 0.05
_LETTER = 0.62  # width over height
_SPACE = 1.5  # between two labels, in letters


def import_pyplot() -> Any:
    """Return `matplotlib.pyplot`.

    Raises
    ------
    MissingDependencyError
        matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingDependencyError('Plots need matplotlib: pip install "bread-mcmc[plots]"') from error
    return pyplot


def new_axes(n_columns: int) -> list[Axes]:
    """Return the axes of a new figure, side by side."""
    width = 7.0 if n_columns == 1 else 5.2 * n_columns
    _, axes = import_pyplot().subplots(1, n_columns, figsize=(width, 4.4), layout="constrained", squeeze=False)
    return list(axes[0])


def temperature_axis(ax: Axes, temperatures: Any) -> None:
    """Make the x axis logarithmic, with a tick at every T that was run; those are named that have room."""
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(temperatures))
    low, high = np.log2(ax.get_xlim())
    letter = _LETTER * _font_size(ax.xaxis) / _points(ax, 0)
    named = _apart(
        sorted({float(value) for value in temperatures}, key=lambda value: (value != max(temperatures), value)),
        lambda tick: float((np.log2(tick) - low) / (high - low)),
        lambda a, b: letter * ((len(f"{a:.0f}") + len(f"{b:.0f}")) / 2 + _SPACE / 2),
    )
    ax.set_xticklabels([f"{value:.0f}" if value in named else "" for value in temperatures])
    ax.minorticks_off()
    ax.set_xlabel("number of temperatures")


def inverse_temperature_axis(ax: Axes, power: float, base_name: str) -> None:
    """Make the x axis one of ``beta ** power`` from 0 to 1, both ends named."""
    functions = (lambda x: np.maximum(x, 0.0) ** power, lambda x: np.maximum(x, 0.0) ** (1.0 / power))
    ax.set_xscale("function", functions=functions)
    ax.set_xlim(0.0, 1.0)
    ends = {0.0: f"0\n{base_name}", 1.0: "1\nposterior"}

    def label(tick: float) -> str:
        return ends.get(tick, f"{tick:g}")

    letter = _LETTER * _font_size(ax.xaxis) / _points(ax, 0)
    ticks = _apart(
        (0.0, 1.0, 0.1, 0.01, 0.5, 0.001, 0.3, 1e-4, 0.03, 0.2, 0.7, 1e-5, 0.003, 1e-6),
        lambda tick: float(tick**power),
        lambda a, b: letter * ((_width(label(a)) + _width(label(b))) / 2 + _SPACE),
    )
    ax.set_xticks(ticks)
    ax.set_xticklabels([label(tick) for tick in ticks])
    ax.minorticks_off()
    ax.set_xlabel("inverse temperature (power scale)" if power < 1.0 else "inverse temperature")


def compress(ax: Axes, values: Any) -> None:
    """Make the y axis logarithmic beyond 1 nat (or more) where some ``values`` are far larger than the rest."""
    size = np.abs(values[np.isfinite(values)])
    if not size.size or size.max() <= _FAR * max(float(np.median(size)), 1.0):
        return
    threshold = max(1.0, 10.0 ** np.ceil(np.log10(np.median(size) + 1e-9)))
    ax.set_yscale("symlog", linthresh=threshold)
    scale = ax.yaxis.get_transform()
    drawn = ax.dataLim.intervaly
    low, high = scale.transform(np.array([min(drawn[0], 0.0), max(drawn[1], 0.0)]))
    margin = _MARGIN * (high - low)
    bottom, top = scale.inverted().transform(np.array([low - margin, high + margin]))
    ax.set_ylim(bottom, top)
    decades = threshold * 10.0 ** np.arange(np.ceil(np.log10(size.max() / threshold)) + 1)
    inside = [tick for tick in (0.0, *-decades[::-1], *decades[::-1]) if bottom <= tick <= top]
    line = 2.0 * _font_size(ax.yaxis) / _points(ax, 1)
    ticks = _apart(
        inside, lambda tick: float((scale.transform(tick) - low) / (high - low + 2.0 * margin)), lambda a, b: line
    )
    ax.set_yticks(ticks)
    ax.minorticks_off()


def width_in_letters(ax: Axes) -> float:
    """Return how many letters of the size of the ticks' labels stand beside each other in the axes."""
    return _points(ax, 0) / (_LETTER * _font_size(ax.xaxis))


def below(ax: Axes, points: float) -> Any:
    """Return a transform whose (0.5, 0) lies so far below the middle of the lower edge of the axes."""
    from matplotlib.transforms import ScaledTranslation

    figure = ax.get_figure()
    assert figure is not None
    return ax.transAxes + ScaledTranslation(0.0, -points / 72.0, figure.dpi_scale_trans)


def _apart(
    candidates: Sequence[float], position: Callable[[float], float], gap: Callable[[float, float], float]
) -> list[float]:
    """Return, in increasing order, the candidates that keep their distance from all kept before them."""
    kept: list[float] = []
    for tick in candidates:
        if all(abs(position(tick) - position(other)) > gap(tick, other) for other in kept):
            kept.append(float(tick))
    return sorted(kept)


def _width(label: str) -> int:
    return max(map(len, label.split("\n")))


def _font_size(axis: Any) -> float:
    return float(axis.get_ticklabels()[0].get_fontsize()) if axis.get_ticklabels() else 10.0


def _points(ax: Axes, dimension: int) -> float:
    """Return the width (0) or height (1) of the axes in points."""
    inches = ax.get_window_extent().size[dimension] / ax.get_figure().dpi  # type: ignore[union-attr]
    return max(float(inches) * 72.0, 1.0)
