"""A report that lacks a group, a variable or an attribute: every reader answers, or names it in one line."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import matplotlib
import numpy as np
import pytest
import typer

import bread
from bread.cli.output import Output
from bread.errors import BreadError, InvalidArgumentError
from bread.reading.as_json import as_json
from bread.report import container as report
from bread.report.compat import group_names, make_container, read_attributes, read_group
from bread.report.opening import opened_report
from tests.support.fake_results import constrain, fake_result
from tests.support.verb_reports import MADE, made

matplotlib.use("Agg")

COLUMNS = ["error", "error_limit", "jeffreys", "role", "n_gradients"]


def shown(read: Any, **options: Any) -> None:
    """Print as `bread show` does."""
    output = redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO())
    with output[0], output[1], pytest.raises(typer.Exit), opened_report(read) as found:
        Output(**options).show(found)


def as_json_of(read: Any) -> dict[str, Any]:
    with opened_report(read) as found:
        return as_json(found)


def drawn(plot: Callable[[Any], Any]) -> Callable[[Any], None]:
    def read(made: Any) -> None:
        from matplotlib import pyplot

        try:
            plot(made)
        finally:
            pyplot.close("all")

    return read


READERS: dict[str, Callable[[Any], Any]] = {
    "verdict": bread.verdict,
    "summary": bread.summary,
    "summary, bounds": lambda made: bread.summary(made, kind="bounds"),
    "evidence": lambda made: str(bread.evidence(made)),
    "bayes_factor": lambda made: str(bread.bayes_factor(made, made)),
    "to_markdown": bread.to_markdown,
    "as_json": as_json_of,
}
CHEAP_READERS = ("verdict", "summary", "summary, bounds")
SLOW_READERS: dict[str, Callable[[Any], Any]] = {
    "to_html": bread.to_html,
    "add_quantities": lambda made: bread.add_quantities(made, {"q": lambda draw: float(draw["mu"])}),
    **{name: drawn(getattr(bread, name)) for name in bread.__all__ if name.startswith("plot")},
    "plot_unbiased": drawn(bread.lab.plot_unbiased),
}


def lacking(whole: Any) -> Iterator[tuple[str, Any]]:
    """Yield copies of a report without one group, one variable, or one attribute, each with its name."""
    attributes = read_attributes(whole)
    groups = {name: read_group(whole, name) for name in group_names(whole)}
    for attribute in attributes:
        if attribute != "bread_version":  # without that it is no report
            yield attribute, make_container(groups, {k: v for k, v in attributes.items() if k != attribute})
    for name, group in groups.items():
        assert group is not None
        yield name, make_container({k: v for k, v in groups.items() if k != name}, attributes)
        for variable in group.variables:
            yield f"{name}.{variable}", make_container({**groups, name: group.drop_vars(str(variable))}, attributes)
        for attribute in group.attrs:
            less = group.assign_attrs({})
            del less.attrs[attribute]
            yield f"{name}, attribute {attribute}", make_container({**groups, name: less}, attributes)


def require_one_line(kind: str, readers: dict[str, Callable[[Any], Any]], step: int = 1) -> int:
    """Read every ``step``-th of the damaged reports; return how often a reader said what is missing."""
    n_refused = 0
    for what, less in list(lacking(made(kind)))[::step]:
        for reader, read in readers.items():
            try:
                read(less)
            except BreadError as error:
                assert "\n" not in str(error), (what, reader)
                n_refused += 1
            except typer.Exit:
                pass
            except Exception as error:
                raise AssertionError(f"{reader} of a report of {kind} without {what}: {error!r}") from error
    return n_refused


@pytest.mark.parametrize("kind", MADE)
def test_what_is_missing_is_said_in_one_line(kind: str) -> None:
    readers = {name: read for name, read in READERS.items() if kind != "check" or name in CHEAP_READERS}
    assert require_one_line(kind, readers, 1 if kind != "check" else 4) > 0


@pytest.mark.parametrize("kind", MADE)
def test_every_report_has_its_figure_and_its_table(kind: str) -> None:
    from matplotlib import pyplot

    ax = bread.plot(made(kind))
    ax.figure.canvas.draw()
    assert ax.has_data()
    pyplot.close("all")
    assert len(bread.summary(made(kind)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", MADE)
def test_every_reader_on_everything_that_may_be_missing(kind: str) -> None:
    readers = READERS | SLOW_READERS | {"show": lambda made: shown(made, is_json=False)}
    readers |= {"show --json": lambda made: shown(made, is_json=True)}
    assert require_one_line(kind, readers) > 0


def test_the_message_names_what_is_missing() -> None:
    whole = made("check")
    groups = {name: read_group(whole, name) for name in group_names(whole)}
    less = make_container({**groups, "bounds": groups["bounds"].drop_vars("role_used")}, read_attributes(whole))
    with pytest.raises(InvalidArgumentError, match="^report lacks 'role_used', which reports of this version of bread"):
        bread.summary(less, kind="bounds")


def test_a_table_without_rows_has_the_columns_of_one_with_rows() -> None:
    result = fake_result(temperatures=(4, 8), n_search=2, n_confirm=3, n_forward=0, n_draws=0)
    whole = bread.summary(report.to_container(result, constrain), kind="bounds")
    result.runs.clear()
    result.roles.clear()
    result.schedules.clear()
    empty = bread.summary(report.to_container(result, constrain), kind="bounds")
    assert list(empty.columns) == list(whole.columns) and empty[COLUMNS].empty


def test_a_newcomers_lines_never_fail_wherever_a_check_was_stopped() -> None:
    """As many of the runs, roles and tests as there were when it was stopped; seed fixed."""
    rng = np.random.default_rng(5)
    for n_left in (0, 1, 2, 5, 20, 40):
        result = fake_result(temperatures=(4, 8), n_search=2, n_confirm=6, n_forward=2, n_draws=20 * int(n_left > 30))
        for key in [key for key in result.runs][n_left:]:
            del result.runs[key]
        result.is_interrupted = True
        result.repeats.clear()
        if rng.random() < 0.5:
            result.fit_check = None
        if not n_left:
            result.kernels.clear()
            result.base_log_ratio = []
        found = report.to_container(result, constrain)
        assert "bad" not in bread.verdict(found).details and bread.verdict(found).status
        bread.summary(found)
        assert not bread.summary(found, kind="bounds")[COLUMNS].isna().all(axis=None) or not n_left or n_left < 40


@pytest.mark.parametrize("kind", MADE)
def test_a_verdict_has_the_attributes_of_its_kind_alone(kind: str) -> None:
    verdict, numbers = bread.verdict(made(kind)), set(bread.Verdict.__annotations__) - {"status", "details"}
    has = {name for name in numbers if hasattr(verdict, name)}
    assert verdict.status and isinstance(verdict.details, str)
    assert has == {"check": numbers - {"best"}, "debug": {"direct_p_value"}, "compare": {"best"}}.get(kind, set())
    if "error_limit" not in has:
        with pytest.raises(AttributeError, match="no 'error_limit', which is of another kind of report. It has "):
            verdict.error_limit  # noqa: B018


@pytest.mark.parametrize("kind", [kind for kind in MADE if kind not in ("check", "debug")])
def test_what_prints_checks_refuses_reports_of_other_verbs(kind: str) -> None:
    for read in (as_json, bread.to_markdown, lambda made: Output(False).show(made)):
        with pytest.raises(InvalidArgumentError, match=f"one of bread\\.(lab\\.)?{kind}. Read it by bread.verdict"):
            read(made(kind))
