"""Texts of the plots: as large, and on as many lines, as the figure has room for, from a column to a projector."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bread.reading.plots.plot_axes import below

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LETTER = 0.55  # mean width over height
_ENOUGH = 60.0  # letters across the place of the axes, at which no text is made smaller
_SMALLEST = 0.62  # of the size that the user's settings give
_LINE = 1.25  # distance of lines over height
_NAME = 0.4  # of the width, at most, for names beside the axes
_NUMBER = 6  # letters of a number beside the axes
_LEGEND = 0.5  # of the width, for the title of a legend that stands in the axes
_REASON = 44  # letters of a line that stands in place of a plot
_HEIGHT = 0.75  # of the height for the label of the y axis


def begin(ax: Axes) -> None:
    """Make labels small enough for the place that the axes have; call before anything is drawn."""
    scale = _scale(ax)
    if scale == 1.0:
        return
    for axis, name in ((ax.xaxis, "x"), (ax.yaxis, "y")):
        labels = axis.get_ticklabels()
        size = float(labels[0].get_fontsize()) if labels else _label_size(ax)
        ax.tick_params(axis=name, which="both", labelsize=scale * size)  # type: ignore[arg-type]
        axis.label.set_fontsize(scale * _label_size(ax))
        axis.get_offset_text().set_fontsize(scale * size)


def finish(ax: Axes, *, legend: dict[str, Any] | None = None, is_below: bool = False, columns: int = 1) -> None:
    """Break title and labels into lines that fit; draw the legend, below the axes where they are narrow.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        On which `begin` was called, with its title and labels.
    legend : dict, optional
        What ``ax.legend`` takes where there is room; None for no legend.
    is_below : bool
        Whether the legend lies below the axes in any case.
    columns : int
        Of the legend below axes that are wide; it has one where they are narrow.
    """
    scale = _scale(ax)
    width, height = _place(ax)
    title = ax.title
    title.set_fontsize(scale * float(title.get_fontsize()))
    ax.yaxis.label.set_text(_filled(ax.get_ylabel(), _HEIGHT * height, float(ax.yaxis.label.get_fontsize())))
    inner = width - max(_left(one) for one in _column(ax))  # both are centred over the axes, not over their place
    title.set_text(_filled(title.get_text(), inner, float(title.get_fontsize())))
    ax.xaxis.label.set_text(_filled(ax.get_xlabel(), inner, float(ax.xaxis.label.get_fontsize())))
    if legend is None:
        return
    options = {"framealpha": 0.8, "edgecolor": "none", **legend}  # it may lie on curves
    if options.get("title"):
        room = (0.8 if scale < 1.0 else _LEGEND) * width
        options["title"] = _filled(str(options["title"]), room, float(ax.xaxis.label.get_fontsize()))
    if scale < 1.0:
        for name in ("loc", "ncols", "fontsize", "columnspacing", "labelspacing"):
            options.pop(name, None)
        size = float(ax.xaxis.label.get_fontsize())
        options |= {"fontsize": size, "title_fontsize": size, "labelspacing": 0.25, "handlelength": 1.6}
    if scale < 1.0 or is_below:
        options |= {
            "loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "bbox_transform": below(ax, _depth(ax)),
            "borderaxespad": 0.0, "handletextpad": 0.4, "ncols": columns if scale == 1.0 else 1,
        }  # fmt: skip
    ax.legend(**options)


def say_why(ax: Axes, reason: str) -> None:
    """Write in the place of a plot why there is none."""
    ax.clear()
    ax.set_axis_off()
    begin(ax)
    size = float(ax.xaxis.label.get_fontsize())
    words = "\n".join(textwrap.wrap(reason, _REASON))
    ax.text(0.5, 0.5, words, ha="center", va="center", transform=ax.transAxes, parse_math=False, fontsize=size)


def is_small(ax: Axes) -> bool:
    """Return whether the axes are narrow for their texts, and the legend lies below them."""
    return _scale(ax) < 1.0


def names_that_fit(ax: Axes, names: Sequence[str], kinds: Sequence[str] | None = None) -> list[str]:
    """Return names for the ticks of the y axis, shortened in the middle where they would take most of the width.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    names : sequence of str
    kinds : sequence of str, optional
        What each is, in brackets behind its name, or below it where both take too much room.
    """
    labels = ax.yaxis.get_ticklabels()
    size = float(labels[0].get_fontsize()) if labels else _label_size(ax)
    room = max(8, int(_NAME * _place(ax)[0] / (_LETTER * size)))
    half = (room - 1) // 2
    shown = [name if len(name) <= room else f"{name[:half]}…{name[-half:]}" for name in names]
    if kinds is None:
        return shown
    together = [f"{name} ({kind})" for name, kind in zip(names, kinds, strict=True)]
    return [
        one if len(one) <= room else f"{name}\n({kind})" for one, name, kind in zip(together, shown, kinds, strict=True)
    ]


def _scale(ax: Axes) -> float:
    """Return by what texts are multiplied so that enough letters stand across the place of the axes."""
    letters = _place(ax)[0] / (_LETTER * _label_size(ax))
    return min(1.0, max(_SMALLEST, letters / _ENOUGH))


def _label_size(ax: Axes) -> float:
    """Return the size in points that the user's settings give labels."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    return float(FontProperties(size=rcParams["axes.labelsize"]).get_size_in_points())


def _place(ax: Axes) -> tuple[float, float]:
    """Return width and height, in points, of the part of the figure that belongs to the axes, labels included."""
    figure = ax.get_figure()
    assert figure is not None
    whole = [72.0 * float(size) / float(figure.dpi) for size in (figure.bbox.width, figure.bbox.height)]
    spec = ax.get_subplotspec()
    if spec is None:
        box = ax.get_position()
        return float(box.width) * whole[0], float(box.height) * whole[1]
    grid = spec.get_gridspec()
    shares: list[float] = []
    sides: Any = (
        (grid.get_width_ratios(), grid.ncols, spec.colspan), (grid.get_height_ratios(), grid.nrows, spec.rowspan),
    )  # fmt: skip
    for ratios, n, span in sides:
        known = list(ratios) if ratios is not None else [1.0] * n
        shares.append(sum(known[span.start : span.stop]) / sum(known))
    return whole[0] * shares[0], whole[1] * shares[1]


def _filled(text: str, points: float, size: float) -> str:
    """Return a text in lines of at most so many points."""
    letters = max(12, int(points / (_LETTER * size)))
    kept = text.replace(" = ", "\u00a0=\u00a0")  # on one line
    lines = [textwrap.fill(line, letters, break_long_words=False) for line in kept.split("\n")]
    return "\n".join(lines).replace("\u00a0", " ")


def _column(ax: Axes) -> list[Axes]:
    """Return the axes that stand in one column with these, whose left edges a layout aligns."""
    figure, spec = ax.get_figure(), ax.get_subplotspec()
    assert figure is not None
    if spec is None:
        return [ax]
    grid, span = spec.get_gridspec(), spec.colspan
    places = [(one, one.get_subplotspec()) for one in figure.axes]
    return [one for one, own in places if own is not None and own.get_gridspec() is grid and own.colspan == span]


def _left(ax: Axes) -> float:
    """Return how far, in points, ticks and label reach to the left of the axes, about."""
    labels = ax.yaxis.get_ticklabels()
    size = float(labels[0].get_fontsize()) if labels else float(ax.yaxis.label.get_fontsize())
    texts = [label.get_text() for label in labels]
    letters = max((_NUMBER if "$" in text else max(map(len, text.split("\n"))) for text in texts), default=0)
    letters = letters or (_NUMBER if len(ax.get_yticks()) else 0)
    own = ax.get_ylabel()
    own_lines = own.count("\n") + 1 if own else 0
    return _LETTER * size * letters + _LINE * float(ax.yaxis.label.get_fontsize()) * own_lines + 10.0


def _depth(ax: Axes) -> float:
    """Return how far, in points, ticks and label reach below the axes."""
    labels = [label for label in ax.xaxis.get_ticklabels() if label.get_text()]
    size = float(labels[0].get_fontsize()) if labels else float(ax.xaxis.label.get_fontsize())
    lines = max((label.get_text().count("\n") + 1 for label in labels), default=1)
    own = ax.get_xlabel()
    own_lines = own.count("\n") + 1 if own else 0
    return _LINE * (size * lines + float(ax.xaxis.label.get_fontsize()) * own_lines) + 10.0
