"""A verdict in a notebook: HTML that is safe and legible on any theme, and lines of text."""

from __future__ import annotations

import pickle
import re

import pytest

import bread
from bread.reading.page.banner import banner_of
from bread.reading.verdict import Verdict
from bread.report import container as report
from tests.support.fake_results import constrain, fake_result
from tests.support.pages import Page, contrast

HOSTILE = "<script>alert(1)</script>"


class Printer:
    """IPython's, as far as it is used."""

    def __init__(self) -> None:
        self.said = ""

    def text(self, text: str) -> None:
        self.said += text


@pytest.mark.parametrize("gap", [0.01, 6.0])
def test_a_verdict_in_a_notebook(gap: float) -> None:
    verdict = bread.verdict(report.to_container(fake_result(gap=gap), constrain))
    page = Page(verdict._repr_html_())
    assert page.is_whole and page.outside == [] and page.ids == []
    assert all(line in page.text for line in verdict.split("\n")) and verdict.details in page.text
    assert "<style" not in verdict._repr_html_() and "<details>" in verdict._repr_html_()
    printer = Printer()
    verdict._repr_pretty_(printer, False)
    assert printer.said == str(verdict)
    assert pickle.loads(pickle.dumps(verdict))._repr_html_() == verdict._repr_html_()


def test_its_colours_have_contrast_wherever_it_stands() -> None:
    for status in ("converged", "not converged", "inconclusive", "mismatch", "bug"):
        text = Verdict(status.upper(), HOSTILE, status=status, details=HOSTILE)._repr_html_()
        found = re.search(r"background: (#\w{6}); color: (#\w{6})", text)
        assert found is not None and contrast(found[1], found[2]) >= 4.5
        assert HOSTILE in Page(text).text and Page(text).faults == []


def test_an_unknown_status_is_never_good() -> None:
    assert banner_of("splendid").tone == "open" and banner_of("").word == ""
