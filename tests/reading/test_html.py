"""The page of a report: whole, without network, readable by everyone, and safe from what users' models say."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bread
from bread.errors import BreadError, InvalidArgumentError, MissingDependencyError
from bread.reading.page.contents import contents_of
from bread.reading.page.palette import DARK, GRAPHIC_PAIRS, LIGHT, TEXT_PAIRS
from bread.reading.page.svg import drawn, for_page, make_room, power_of_ten, shortened
from bread.report import container as report
from bread.report.compat import group_names, make_container, read_attributes, read_group
from tests.support.fake_results import DAYS, constrain, fake_result, model_info, shift_reverse_starts
from tests.support.pages import Page, contrast
from tests.support.situations import look_of

pytest.importorskip("matplotlib")

HOSTILE = "<script>alert('x')</script>"
QUOTES = '"><img src=x onerror=alert(1)>'
DOLLARS = r"$\frac{$ a_b^{ --!> ]]> &amp; ü"


def reported(**options: Any) -> Any:
    return report.to_container(fake_result(**options), constrain)


def interrupted(**options: Any) -> Any:
    result = fake_result(gap=0.3, n_confirm=0, **options)
    result.is_interrupted = True
    return report.to_container(result, constrain)


def nothing() -> Any:
    result = fake_result()
    result.runs.clear()
    result.is_interrupted, result.observed_draws, result.fit_check = True, None, None
    return report.to_container(result, constrain)


def hostile() -> Any:
    """Names, labels, notes and settings that would be markup, mathematics or an end of something."""
    coords = {"school": np.array([HOSTILE, QUOTES, DOLLARS]), "day": DAYS}
    identity = {"name": HOSTILE, "kernel": QUOTES, "notes": (HOSTILE, QUOTES, DOLLARS, "\x00\x1b[31m\u202e{{ 7 * 7 }}")}
    info = model_info(coords=coords, versions={HOSTILE: QUOTES}, observed={HOSTILE: np.arange(3.0)}, **identity)
    result = fake_result(gap=0.01, posterior_shift=0.0, misfit=True, info=info, simulate_from="fitted")
    result.settings |= {"hyperparameters": [HOSTILE, DOLLARS], "data": "/a/" + HOSTILE}
    result.warnings.append(QUOTES)
    check = result.fit_check
    assert check is not None
    tests = tuple(replace(one, node=replace(one.node, name=DOLLARS + one.node.name)) for one in check.tests)
    result.fit_check = replace(check, tests=tests)
    return report.to_container(result, constrain)


CASES = {
    "converged": lambda: reported(gap=0.01),
    "not converged": lambda: reported(gap=6.0),
    "inconclusive": lambda: reported(gap=0.05, simulate_from="fitted"),
    "mismatch": lambda: reported(gap=0.01, observed_extra=8.0, n_forward=179),
    "bug": lambda: report.to_container(shift_reverse_starts(fake_result(gap=0.01)), constrain),
    "disagreement": lambda: reported(gap=0.01, posterior_shift=1.5, misfit=True),
    "interrupted": interrupted,
    "one temperature": lambda: reported(gap=0.01, temperatures=(16,), n_draws=0, n_forward=0, n_search=0),
    "nothing": nothing,
    "hostile": hostile,
}


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {}


@pytest.fixture
def page_of(pages: dict[str, str]) -> Any:
    def page(name: str) -> str:
        if name not in pages:
            pages[name] = bread.to_html(CASES[name]())
        return pages[name]

    return page


@pytest.mark.parametrize("name", CASES)
def test_every_page_is_whole_and_needs_no_network(name: str, page_of: Any) -> None:
    text = page_of(name)
    page = Page(text)
    assert text.startswith("<!doctype html>") and page.faults == [] and page.is_whole
    assert all(tag == "a" and value.startswith("https://") for tag, value in page.outside)
    assert not re.search(r"url\((?!#)|@import|javascript:", text)
    assert "default-src 'none'" in text
    said = contents_of(CASES[name](), with_figures=False)
    assert (all(line in page.text for line in said.lines) and said.details in page.text) or name == "hostile"
    for words in (said.banner.word, *(number.name for number in said.numbers), *(one.title for one in said.tables)):
        assert words in page.text
    if name != "hostile":
        assert bread.__version__ in page.text and ("Git commit" in page.text) == ("git_commit" in attributes(name))


def attributes(name: str) -> dict[str, Any]:
    return read_attributes(CASES[name]())


def test_the_parser_finds_what_it_looks_for() -> None:
    """Negative controls of the tests above."""
    assert Page("<p><script></script></p>").faults and Page("<p onclick='x'></p>").faults and Page("<p><b></p>").faults
    assert not Page("<p id='a'></p><p id='a'></p>").is_whole and not Page("<a href='#b'></a>").is_whole
    assert Page("<svg><use xlink:href='http://x/y'/></svg>").outside == [("use", "http://x/y")]


@pytest.mark.parametrize(
    ("name", "tone"),
    [
        ("converged", "good"), ("not converged", "caution"), ("inconclusive", "open"), ("mismatch", "alarm"),
        ("bug", "alarm"), ("disagreement", "alarm"), ("interrupted", "open"), ("nothing", "open"),
    ],
)  # fmt: skip
def test_colour_and_word_are_the_verdicts(name: str, tone: str, page_of: Any) -> None:
    page, verdict = Page(page_of(name)), bread.verdict(CASES[name]())
    classes = [given["class"] for tag, given in page.elements if tag == "header"]
    assert classes == [f"banner {tone}"]
    assert verdict.status.capitalize() in page.text
    assert (tone == "good") == bool(verdict)
    assert ("interrupted: this is what was finished" in page.text) == (name in ("interrupted", "nothing"))


def test_what_is_hostile_stays_text(page_of: Any) -> None:
    text = page_of("hostile")
    page = Page(text)
    assert HOSTILE in page.text and QUOTES in page.text and DOLLARS in page.text
    assert "<script" not in text and "<img" not in text and "{{ 7 * 7 }}" in text
    assert not set("\x00\x1b\u202e") & set(text)
    assert sum(given.get("role") == "img" for _, given in page.elements) == 6  # no plot is lost to a name


def test_plots_have_alternatives_in_words(page_of: Any) -> None:
    page = Page(page_of("disagreement"))
    plots = [given for _, given in page.elements if given.get("role") == "img"]
    assert len(plots) == 6 and all(len(given["aria-label"]) > 40 for given in plots)
    assert len({given["aria-label"] for given in plots}) == 6
    assert "nan" not in " ".join(given["aria-label"] for given in plots)
    hidden = [given for tag, given in page.elements if tag == "svg"]
    assert all(given.get("aria-hidden") == "true" for given in hidden) and len(hidden) == 7
    headings = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert headings[0] == 1 and headings.count(1) == 1 and max(np.diff(headings)) <= 1
    assert all(given.get("scope") for tag, given in page.elements if tag == "th")
    is_landmark = (tag == "section" or given.get("role") == "region" for tag, given in page.elements)
    named = [given["aria-labelledby"] for (_, given), is_one in zip(page.elements, is_landmark, strict=True) if is_one]
    assert len(named) == len(set(named)) > 5  # a screen reader lists them


def test_what_cannot_be_drawn_is_said(page_of: Any) -> None:
    page = Page(page_of("one temperature"))
    assert "Consistency: it needs at least two numbers of temperatures" in page.text
    assert "Draws: there were no draws" in page.text


def test_a_page_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise MissingDependencyError('Plots need matplotlib: pip install "bread-mcmc[plots]"')

    monkeypatch.setattr("bread.reading.page.figures.import_pyplot", missing)
    page = Page(bread.to_html(reported(gap=0.01)))
    assert page.is_whole and 'pip install "bread-mcmc[plots]"' in page.text and "Temperatures" in page.text


def test_a_plot_that_fails_does_not_break_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> str:
        raise RuntimeError(HOSTILE)

    monkeypatch.setattr("bread.reading.page.figures.drawn", fails)
    text = bread.to_html(reported(gap=0.01))
    assert f"it could not be drawn (RuntimeError: {HOSTILE})" in Page(text).text and "<script" not in text


def test_groups_that_are_missing_break_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bread.reading.page.figures.drawn", lambda draw, *_: "<svg></svg>")
    made = reported(gap=0.01, posterior_shift=0.0)
    groups = {name: read_group(made, name) for name in group_names(made)}
    for name in set(groups) - {"certificate"}:
        left = {one: group for one, group in groups.items() if one != name and group is not None}
        assert Page(bread.to_html(make_container(left, read_attributes(made)))).is_whole, name


@pytest.mark.slow
def test_the_same_report_gives_the_same_page(tmp_path: Path, page_of: Any) -> None:
    import matplotlib as mpl

    made = CASES["disagreement"]()
    first = bread.to_html(made)
    with mpl.rc_context({"axes.facecolor": "red", "font.size": 30.0, "svg.fonttype": "none", "figure.dpi": 300}):
        assert bread.to_html(made) == first
    made.to_netcdf(tmp_path / "report.nc")
    assert bread.to_html(tmp_path / "report.nc") == first
    assert first != page_of("converged")


@pytest.mark.parametrize("colours", [LIGHT, DARK])
def test_contrast(colours: dict[str, str]) -> None:
    low = {pair: contrast(colours[pair[0]], colours[pair[1]]) for pair in TEXT_PAIRS}
    assert min(low.values()) >= 4.5, low
    graphics = {pair: contrast(colours[pair[0]], colours[pair[1]]) for pair in GRAPHIC_PAIRS}
    assert min(graphics.values()) >= 3.0, graphics
    assert contrast("#ffffff", "#000000") == pytest.approx(21.0) and contrast("#777777", "#ffffff") < 4.5
    assert set(LIGHT) == set(DARK)


def test_every_colour_of_a_plot_is_one_of_the_page(page_of: Any) -> None:
    """Else it would not turn with the page, and could not be told from the dark."""
    for name in ("disagreement", "inconclusive"):
        colours = re.findall(r"(?:fill|stroke): (#[0-9a-f]{3,6})", page_of(name))
        assert colours == [], set(colours)
    assert "var(--fig-1, #0072b2)" in page_of("disagreement")


def test_svg_is_cleaned() -> None:
    raw = (
        '<?xml version="1.0"?><!DOCTYPE svg><svg width="9pt" viewBox="0 0 9 9"><metadata>x</metadata><defs>'
        '<style type="text/css">*{x}</style><clipPath id="p1"></clipPath></defs><!-- <b> -->'
        '<g id="a" clip-path="url(#p1)"><use xlink:href="#a" style="fill: #0072b2"/></g></svg>'
    )
    found = for_page(raw, "one")
    assert found.count("one-p1") == 2 and '"one-a"' in found and '"#one-a"' in found and "var(--fig-1" in found
    assert not re.search(r"metadata|<style|<!--|DOCTYPE|width=", found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawing = drawn(lambda figure: figure.subplots().set_title(DOLLARS + HOSTILE + "漢"), 3.0, 2.0, "two")
    assert "script" not in drawing and Page(drawing).is_whole


@pytest.mark.parametrize(
    ("value", "text"), [(1e-4, "10⁻⁴"), (0.01, "0.01"), (1.0, "1"), (-1000.0, "−10³"), (0.0, "0"), (5e-4, "0.0005")]
)
def test_powers_of_ten(value: float, text: str) -> None:
    assert power_of_ten(value) == text


@pytest.mark.parametrize("is_made", [True, False])
def test_long_names_leave_plots_their_room(is_made: bool) -> None:
    """The layout of a plot fails, with a warning, where a name takes all its room."""
    from matplotlib.figure import Figure

    long = "a_name_that_does_not_end_" * 12
    figure = Figure(figsize=(4.9, 3.5), layout="constrained")
    ax = figure.subplots()
    ax.set_yticks([0.0, 1.0], [long, "mu"])
    ax.set(xlabel=long, ylabel=f"P({long})", title=f"{long}: differs")
    if is_made:
        make_room(figure)
        figure.draw_without_rendering()
        assert ax.get_position().width > 0.4 and ax.get_position().height > 0.4
    else:
        with pytest.warns(UserWarning, match="collapsed to zero"):
            figure.draw_without_rendering()
    assert len(shortened(long)) <= 24 and shortened("mu") == "mu" and shortened(long).endswith("not_end_")


def test_pages_are_written_whole_and_over_pages_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bread.reading.page.html.page_of", lambda *_: "<!doctype html>\n<p>new</p>\n")
    made, path = reported(gap=0.01, n_draws=0), tmp_path / "page.html"
    assert bread.to_html(made, path) == path and bread.to_html(made, str(path)) == path
    path.write_text("<!DOCTYPE HTML> old", encoding="utf-8")
    assert bread.to_html(made, path).read_text(encoding="utf-8").endswith("<p>new</p>\n")
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]
    other = tmp_path / "report.nc"
    other.write_bytes(b"\x89HDF\r\n")
    with pytest.raises(InvalidArgumentError, match="is no HTML page, so it is not replaced"):
        bread.to_html(made, other)
    assert other.read_bytes() == b"\x89HDF\r\n"
    with pytest.raises(InvalidArgumentError, match="does not exist"):
        bread.to_html(made, tmp_path / "none" / "page.html")
    with pytest.raises(InvalidArgumentError, match="is a folder"):
        bread.to_html(made, tmp_path)

    def full(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(BreadError, match="cannot be written to .*: no space left"):
        bread.to_html(made, path)
    assert "new" in path.read_text(encoding="utf-8") and len(list(tmp_path.iterdir())) == 2
    with pytest.raises(InvalidArgumentError, match="report of bread.check"):
        bread.to_html({"a": 1})


def test_a_first_look_is_drawn_and_described() -> None:
    columns = {"shift": [0.01, 0.5], "shift_se": [0.03, 0.03], "sd_ratio": [1.0, 1.1], "sd_ratio_se": [0.02, 0.02],
               "detectable_shift": [0.15, 0.15], "detectable_sd_ratio": [0.1, 0.1]}  # fmt: skip
    look = look_of(p_value=1e-5).assign({name: ("parameter", np.array(values)) for name, values in columns.items()})
    made = report.to_container(fake_result(gap=0.01, posterior_shift=0.0, temperatures=(4, 8)), constrain)
    groups = {name: read_group(made, name) for name in group_names(made)}
    text = bread.to_html(make_container({**groups, "first_look": look}, read_attributes(made)))
    assert "fig-first_look" in text and "means by up to 0.5 standard deviations" in " ".join(text.split())
    assert "fig-first_look" not in bread.to_html(made)
    without = {name: group for name, group in groups.items() if name not in ("bounds", "certificate")}
    assert "fig-first_look" in bread.to_html(make_container({**without, "first_look": look}, read_attributes(made)))
