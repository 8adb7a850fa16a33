"""A matplotlib figure as SVG inside a page: colours of the page, ids of its own, no text that could be markup.

Letters are drawn as paths, so that a plot looks the same wherever it is read, and names of a model never reach the
markup: the comments in which matplotlib repeats them are taken out.
"""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bread.reading.page.palette import LIGHT

INK, SURFACE = "#1a1f25", "#ffffff"  # of axes and letters; of what covers lines
_COLOURS = {
    "#0072b2": "fig-1", "#d55e00": "fig-2", "#000000": "fig-3", "#7f7f7f": "fig-4", "#999999": "fig-4",
    INK: "fig-ink", SURFACE: "panel",
}  # fmt: skip
_SETTINGS = {
    "svg.fonttype": "path",
    "svg.hashsalt": "bread",
    "text.parse_math": False,  # a dollar in a name is a dollar
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "legend.fontsize": 8.0,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    **{name: INK for name in ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")},
}
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LONGEST_NAME = 24
_LETTER = 0.53  # width over height, on average
_SPILL = 1.15  # a title may be a little longer than its axes
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


@contextmanager
def own_style() -> Iterator[None]:
    """Draw with settings of the page alone, whatever style the user chose."""
    import matplotlib as mpl
    from cycler import cycler

    with mpl.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that the font lacks; names that leave a plot no room
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        mpl.rcParams["axes.prop_cycle"] = cycler(color=["#0072b2", "#d55e00", "#000000", "#d55e00", "#7f7f7f"])
        yield


def drawn(draw: Callable[[Any], None], width: float, height: float, prefix: str) -> str:
    """Return what ``draw`` draws in a new figure (inches) as an `<svg>` element whose ids begin with ``prefix``."""
    from matplotlib.figure import Figure

    with own_style():
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        make_room(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
    return for_page(buffer.getvalue(), prefix)


def make_room(figure: Any) -> None:
    """Break and shorten what is longer than a plot has room for, and write powers of ten without markup."""
    for ax in figure.axes:
        _write_powers_of_ten(ax)
        _shorten_names(ax)
    figure.draw_without_rendering()  # how wide the axes are is known from here on
    for ax in figure.axes:
        _wrap(ax)


def for_page(svg: str, prefix: str) -> str:
    """Return matplotlib's SVG as an element of a page, hidden from screen readers: its alternative is beside it."""
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<style\b.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'href="#', f'href="#{prefix}-', svg)
    svg = svg.replace("url(#", f"url(#{prefix}-")
    for colour, name in _COLOURS.items():
        svg = re.sub(rf"(fill|stroke): {colour}\b", rf"\1: var(--{name}, {LIGHT[name]})", svg, flags=re.IGNORECASE)
    head, rest = svg.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    opening = f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" {box[0] if box else ""} aria-hidden="true"'
    svg = f'{opening} focusable="false">{rest}'
    return re.sub(r"\n\s*", "\n", svg)


def _write_powers_of_ten(ax: Any) -> None:
    """Label logarithmic axes without mathematical markup."""
    from matplotlib.ticker import FuncFormatter, LogFormatterMathtext

    for axis in (ax.xaxis, ax.yaxis):
        if isinstance(axis.get_major_formatter(), LogFormatterMathtext):
            axis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))


def _shorten_names(ax: Any) -> None:
    """Shorten the names of rows, which tables hold whole, where they would leave the plot no room."""
    labels = [label.get_text() for label in ax.get_yticklabels()]
    if any(len(label) > _LONGEST_NAME for label in labels):
        ax.set_yticks(ax.get_yticks(), [shortened(label) for label in labels])


def shortened(name: str, longest: int = _LONGEST_NAME) -> str:
    """Return a name without its middle where it is long."""
    half = longest // 2
    return name if len(name) <= longest else f"{name[: half - 1]}…{name[-half:]}"


def _wrap(ax: Any) -> None:
    """Break titles, shorten what stands in or below the axes: nothing is longer than there is room for it."""
    width, height = (float(size) for size in ax.get_window_extent().size * 72.0 / ax.get_figure().dpi)
    for text, length in ((ax.title, width), (ax.yaxis.label, height)):
        letters = _letters(text, _SPILL * length)
        text.set_text("\n".join(textwrap.wrap(shortened(text.get_text(), 2 * letters), letters)))
    for text, spill in ((ax.xaxis.label, 1.5), *((text, 0.95) for text in ax.texts)):
        text.set_text(shortened(text.get_text(), _letters(text, spill * width)))


def _letters(text: Any, points: float) -> int:
    return max(int(points / (_LETTER * text.get_fontsize())), 12)


def power_of_ten(value: float) -> str:
    """Return 1000 as "10³"; numbers near 1, and what is no power of ten, plainly."""
    sign, text = ("−" if value < 0 else ""), f"{abs(value):.0e}"
    digits, exponent = text.split("e") if "e" in text else (text, "0")
    if digits != "1" or abs(int(exponent)) <= 2:
        return f"{value:g}".replace("-", "−")
    return f"{sign}10{str(int(exponent)).translate(_SUPERSCRIPT)}"
