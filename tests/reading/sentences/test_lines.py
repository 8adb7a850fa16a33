"""The form of a verdict, over every status and verb: eight lines, a hundred columns, details, the same in HTML."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bread
from bread.reading.sentences.lines import LABEL, MOST, ROOM, WIDTH, Answer, cut, fitted, short
from bread.reading.sentences.printable import printable
from bread.report.compat import group_names, make_container, read_attributes, read_group
from tests.support.pages import Page
from tests.support.situations import MORE, NOWHERE, TWELVE, VERBS, checked, looked, mode, situation

LABELS = {
    "Your draws", "The fit's draws", "Certified draws", "Your data", "Not excluded", "WARNING", "Do now", "More",
    "Not certified", "Time", "Your model", "Tests", "Would be seen", "Not tested", "Likely", "Or", "Broken", "Steps",
    "Gradients", "Evaluations", "Seconds", "Data sets", "Chains", "Meetings", "Estimates", "Log evidence", "Scores",
}  # fmt: skip
STATUSES = {
    "bug", "mismatch", "disagreement", "converged", "not converged", "inconclusive", "no bug found", "better",
    "trade-off", "cannot tell", "bounded", "sandwiched", "estimated", "no difference seen",
}  # fmt: skip
EVERY = {**TWELVE, **MORE, **VERBS}


def require_form(verdict: bread.Verdict) -> None:
    """Fail unless a verdict has the form."""
    first, *lines = verdict.split("\n")
    assert len(lines) < MOST and max(map(len, (first, *lines))) <= WIDTH
    assert first.startswith(verdict.status.upper())
    assert all(line[:LABEL].strip() in LABELS | {""} and line[LABEL:].strip() for line in lines), verdict
    assert lines[0][:1] != " " and all(printable(line) == line for line in lines)
    assert ("warning" in first) == any(line.startswith("WARNING") for line in lines)
    assert verdict.details and printable(verdict.details) == verdict.details
    assert "annealed draws" not in f"{verdict} {verdict.details}"


@pytest.mark.parametrize("name", EVERY)
def test_every_verdict_has_the_form(name: str) -> None:
    verdict = bread.verdict(situation(name))
    require_form(verdict)
    assert "nan" not in verdict.replace("NaN", "") and "  " not in verdict.details and "None" not in verdict
    page = Page(verdict._repr_html_())
    assert page.is_whole and all(line in page.text for line in (*verdict.split("\n"), verdict.details))
    again = pickle.loads(pickle.dumps(verdict))
    assert str(again) == str(verdict) and repr(vars(again)) == repr(vars(verdict))


def test_every_status_is_walked() -> None:
    assert {bread.verdict(situation(name)).status for name in EVERY} == STATUSES


def test_the_documentation_shows_what_is_printed() -> None:
    """`python -m tests.support.situations` prints them again."""
    page = (Path(__file__).parents[3] / "docs" / "reading.md").read_text(encoding="utf-8")
    assert all(f"```text\n{bread.verdict(situation(name))}\n```" in page for name in TWELVE)


def test_an_error_is_not_claimed_where_it_does_not_hold() -> None:
    """P(x <= c) rests on the error of certified draws: not where nothing is certified, or your data are unlike."""
    said = {name: bread.verdict(situation(name)) for name in TWELVE}
    claims = {name for name, verdict in said.items() if "any P(x <= c) off by" in verdict}
    assert claims == {"all is well", "divergences", "an improper prior"} == {name for name in claims if said[name]}
    unlike = bread.verdict(looked(checked(posterior_shift=0.0, misfit=True)))
    assert unlike.status == "converged" and "any P(x <= c)" not in unlike and "unlike the model's" in unlike


def test_a_bound_that_was_measured_at_wrong_draws_says_so() -> None:
    others = looked(checked(simulate_from="fitted"), p_value=1e-6, shift=0.2)
    for wrong in (situation("at draws that are not the posterior's"), others):
        verdict = bread.verdict(wrong)
        assert verdict.status == "disagreement" and "if typical" not in verdict
        assert "on 20 data sets made at these draws" in verdict
    right = bread.verdict(situation("an improper prior"))
    assert "error estimated at most" in right and "if typical" in right and "at these draws" not in right


def test_draws_with_warm_up_are_not_to_be_made_longer() -> None:
    for name in ("a look at warm-up", "draws of other data", "a look at other data"):
        verdict = bread.verdict(situation(name))
        assert verdict.status == "disagreement" and "longer" not in verdict
    assert "leave the warm-up out" in bread.verdict(situation("a look at warm-up"))
    assert "sample longer" in bread.verdict(situation("an approximation"))  # the control


def test_gradients_say_nothing_of_a_missed_mode_and_are_not_quoted_there() -> None:
    verdict = bread.verdict(situation("a mode that nobody visited"))
    assert "no difference seen" not in verdict and "first look" in verdict.details.lower()
    both = bread.verdict(looked(checked(mode(missed=True, own=NOWHERE), posterior_shift=0.0), p_value=1e-6, shift=0.2))
    assert both.status == "disagreement" and "mean too high" in both and "miss mu = 8.1" in both


def test_what_lines_name_exists() -> None:
    for name in EVERY:
        for word in bread.verdict(situation(name)).split():
            if word.startswith("bread.") and word.rstrip(",;:.").count(".") == 1:
                assert hasattr(bread, word.removeprefix("bread.").split("(")[0].rstrip(",;:.")), word


@pytest.mark.parametrize("name", [one for one in (*TWELVE, *MORE) if "no look" not in one])
@pytest.mark.parametrize("long", ["p" * 80, "\x1b[31m\u202e, " * 10])
def test_names_of_any_length_fit(name: str, long: str) -> None:
    """A name of eighty letters keeps its ends; what stands behind it is not lost to it."""
    whole = situation(name)
    attributes = {
        key: value.replace("mu", long) if key.endswith("_parameter") else value
        for key, value in read_attributes(whole).items()
    }
    groups = {one: renamed(read_group(whole, one), long) for one in group_names(whole)}
    verdict = bread.verdict(make_container(groups, attributes))
    require_form(verdict)
    before = bread.verdict(whole)
    assert verdict.status == before.status
    assert [line[:LABEL] for line in verdict.split("\n") if line[0] != " "][1:] == [
        line[:LABEL] for line in before.split("\n") if line[0] != " "
    ][1:]


def renamed(group: Any, long: str) -> Any:
    """Return a group whose names "mu" and "y" are long ones."""
    for name in ("parameter", "node", "function_of", "function", "tested", "coordinate", "worst_variable"):
        if name in group.variables:
            texts = [str(one).replace("mu", long).replace("tau", long) for one in group[name].values]
            values = (group[name].dims, np.array(texts, dtype=np.str_))
            group = group.assign_coords({name: values}) if name in group.coords else group.assign({name: values})
    other = json.loads(str(group.attrs.get("other_data", "[]")))
    if other:
        group = group.assign_attrs(other_data=json.dumps([[long, *one[1:]] for one in other]))
    return group


def test_a_name_that_is_cut_keeps_its_number() -> None:
    verdict = bread.verdict(looked(names=("q" * 80, "tau"), p_value=1e-6, shift=0.2))
    line = next(line for line in verdict.split("\n") if "qqq" in line)
    assert "mean too high by 0.2 (0.03) sd (first look, p < 0.001)" in line and "q...q" in line
    assert "q" * 80 in verdict.details


words = st.text(st.characters(codec="utf-8"), max_size=300)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(LABELS)), words), max_size=9), st.lists(words), words, words)
def test_any_answer_fits(rows: list[tuple[str, str]], warnings: list[str], advice: str, finding: str) -> None:
    answer = Answer("converged", finding, tuple(rows), tuple(warnings), advice)
    lines = answer.lines()
    assert len(lines) <= MOST and max(map(len, lines)) <= WIDTH and all(printable(line) == line for line in lines)
    n_warnings = sum(bool(one) for one in warnings)
    assert (f", {n_warnings} warning" in lines[0]) == (n_warnings > 0) or "warning" in finding


def test_more_room_is_given_before_words_are_cut() -> None:
    rows = tuple((f"Label {i}", "word " * 12) for i in range(5))
    assert Answer("bug", "", (*rows, ("Last", "x" * 60)), details="d").lines()[-1].startswith("More")
    full = Answer("bug", "", (*rows, ("Last", "word " * 30)), details="d").lines()
    assert len(full) == MOST and full[-1].strip().endswith("word") and not any(line.startswith("More") for line in full)


@given(words, st.integers(12, ROOM))
def test_shorter_texts(text: str, room: int) -> None:
    assert len(cut(text, room)) <= room and len(short(text, room)) <= room
    assert len(text) > room or cut(text, room) == text


def test_a_name_gives_way_and_the_rest_does_not() -> None:
    name = "alpha[" + "x" * 90 + ", 17]"
    text = fitted(f"{name} is off by 0.2", name)
    assert len(text) == ROOM and text.endswith(", 17] is off by 0.2") and text.startswith("alpha[")
