"""The verdict: one status, at most eight lines that answer what a user asks, and the details behind them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from bread.reading.other_verbs.compare import compare_answer, is_compare
from bread.reading.other_verbs.data_annealing import data_annealing_answer, is_data_annealing
from bread.reading.other_verbs.debug import debug_answer, is_debug
from bread.reading.other_verbs.path_sampling import is_path_sampling, path_sampling_answer
from bread.reading.other_verbs.unbiased import is_unbiased, unbiased_answer
from bread.reading.sentences.check_lines import check_answer
from bread.reading.sentences.findings import EXACT_SIMULATIONS, FEWEST_SIMULATIONS, Findings, read_findings
from bread.reading.sentences.first_look import first_look_answer, is_first_look
from bread.reading.sentences.fit import fit_status
from bread.reading.sentences.lines import Answer
from bread.reading.sentences.printable import printable
from bread.report.opening import takes_report

Status = Literal[
    "bug", "mismatch", "disagreement", "converged", "not converged", "inconclusive", "no bug found",
    "better", "trade-off", "cannot tell", "bounded", "sandwiched", "estimated",
    "no difference seen",
]  # fmt: skip


class Verdict(str):
    """The lines of a verdict, at most eight of at most 100 columns, with details and numbers as attributes.

    It has the attributes of its kind alone: all of these but ``best`` for a report of `bread.check` or `bread.look`
    (NaN, 0, "", None or False of what was not measured); beside ``status`` and ``details``, ``direct_p_value`` for one
    of `bread.debug`, and ``best`` for one of `bread.compare`.

    Attributes
    ----------
    details : str
        Everything else that is to be said, as sentences.
    status : {"bug", "mismatch", "disagreement", "converged", "not converged", "inconclusive"}
        Of a report of `bread.debug`: "bug" or "no bug found". Of one of `bread.look`: "disagreement", "no difference
        seen" or "inconclusive". Of one of `bread.compare`: "bug", "inconclusive", "better", "trade-off" or "cannot
        tell". Of one of `bread.lab.unbiased`: "bounded" or "inconclusive"; of `bread.lab.data_annealing`: "bug",
        "sandwiched" or "inconclusive"; of `bread.lab.path_sampling`: "bug", "estimated" or "inconclusive".
    error, error_lower, error_limit : float
        V, and its limits, each one-sided: on average over simulated data sets, no probability computed from one
        annealed draw is off by more than V. The limits take the simulated data sets for typical.
    error_limit_exact : float
        Limit of V that holds whatever the population of data sets is like.
    jeffreys : float
        B, the bound on the Jeffreys divergence, in nats; ``is_reliable`` says whether it has a finite mean.
    bound : {"V", "B"}
        Which of them decides: B where a target in nats was given and B has a finite mean.
    estimate, ci_lower, ci_upper, limit : float
        That bound with its limits, and what the upper one must not exceed.
    n_temperatures, n_simulations : int
    consistency_p_value, effect : float
        Do the real data anneal like simulated data? The difference in nats (positive: harder).
    fit : {"ok", "poor", "not tested"}
        Do the real data look like the model's? "poor" where ``fit_p_value`` <= 0.005, and, simulated from the prior,
        its rank among simulated data sets is at most 0.05. About the model, so no status, but where a parameter lies
        where its prior hardly lets it be.
    fit_p_value : float
    alarm_p_value, forms_p_value, rank_p_value : float
        Of the theory alarm, of the test that both forms of V have one mean, and of the weighted ranks.
    quantity_p_value : float
        Of the weighted ranks of quantities that were added, corrected for their number; NaN without any.
    direct_p_value : float
        Of the tests of exact draws: do simulator, density and kernel fit together? Corrected for all that was tested.
    agreement : bool or None
        Whether the user's own draws, or the fit's, agree with certified draws on the real data; None where that is
        not known: nothing was compared, or not all; the draws, or those they were compared with, were too few; or they
        differ by no more than V explains.
    comparison : {"agreement", "difference", "disagreement", "too few draws", ""}
        What came of it; "" where nothing was compared.
    n_missed_modes : int or None
        Modes on the real data that certified draws miss: 0 is "none found", never "there is none"; None where none
        were looked for.
    gap_location : float
        Inverse temperature below which half of the gap arises.
    best : str
        Of a report of `bread.compare`: the name of the best model; "" where none is, or nobody can tell.
    """

    status: Status
    details: str
    error: float
    error_lower: float
    error_limit: float
    error_limit_exact: float
    jeffreys: float
    is_reliable: bool
    bound: str
    estimate: float
    ci_lower: float
    ci_upper: float
    limit: float
    n_temperatures: int
    n_simulations: int
    consistency_p_value: float
    effect: float
    fit: Literal["ok", "poor", "not tested"]
    fit_p_value: float
    alarm_p_value: float
    forms_p_value: float
    rank_p_value: float
    quantity_p_value: float
    direct_p_value: float
    agreement: bool | None
    comparison: str
    n_missed_modes: int | None
    gap_location: float
    best: str

    def __new__(cls, *lines: str, **numbers: Any) -> Verdict:
        """Return these lines, such as a terminal may show, with these attributes."""
        verdict = super().__new__(cls, "\n".join(map(printable, lines)))
        verdict.__dict__.update(numbers)
        return verdict

    def __getattr__(self, name: str) -> Any:
        """Say which attributes there are, where one is asked for that this kind of report does not have."""
        raise AttributeError(
            f"This verdict has no {name!r}, which is of another kind of report. It has {', '.join(vars(self))}."
        )

    def __bool__(self) -> bool:
        """Whether the status is "converged", "no bug found" or "better"."""
        return self.status in ("converged", "no bug found", "better")

    def _repr_html_(self) -> str:
        """Return the verdict as notebooks show it."""
        from bread.reading.page.verdict_html import verdict_html

        return verdict_html(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the lines, where IPython shows text."""
        printer.text("Verdict(...)" if cycle else str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the attributes."""
        return (_restore, (str(self), dict(self.__dict__)))


def _restore(text: str, numbers: dict[str, Any]) -> Verdict:
    return Verdict(*text.split("\n"), **numbers)


@takes_report
def verdict(report: Any) -> Verdict:
    """Say in plain words what a report found.

    Parameters
    ----------
    report : InferenceData, DataTree or path
        From `bread.check`, `bread.debug`, `bread.compare`, `bread.lab.unbiased`, `bread.lab.path_sampling` or
        `bread.lab.data_annealing`, reopened from a file, or the path of that file (netCDF or zarr).

    Returns
    -------
    Verdict
        A string of at most eight lines of at most 100 columns: the status, a line or two for each question ("Your
        draws", "Certified draws", "Your data", "Not excluded"), a warning where there is one, and what to do now. The
        rest is in ``details``. The attribute ``status`` is the first of these that holds:

        * "bug": a test of exact draws (simulator against density, kernel against density) has p < 0.001; the
          integral of a prior varies with its parents (p < 0.001); or simulated from the prior or localised, and an
          exact test of the chains (theory alarm, forms of V, weighted ranks, those of quantities that
          `bread.add_quantities` added) has p <= 0.0033;
        * "mismatch": the real data do not anneal like simulated data (p <= 0.05 by each of four sets of chains on
          them): the bound says little about them;
        * "disagreement": the draws given as ``posterior=``, or the fit's, are of other data or fail the first look
          (p < 0.001; see `bread.look`), whatever the bound, and before "mismatch" where data were simulated at them;
          or, simulated from the posterior, an exact test of the chains has p <= 0.0033: these tests are of the draws
          that data were simulated at; or the bound is small enough, and the draws differ from the annealed ones by more
          than V explains;
        * "converged": V's limit is at most ``max_error`` (or B's upper end at most ``target``), and no mode was found
          on the real data that certified draws miss;
        * "not converged": V's lower limit is above that ("not shown to be near", never "wrong"), or a mode is missed:
          then whatever the bound, before "disagreement" and "inconclusive";
        * "inconclusive": in between, interrupted, fewer than 10 simulations, a parameter that lies where its prior
          hardly lets it be (fit p <= 0.005; one that data were simulated with, from 3 standard deviations on), own
          draws whose difference V may explain, or own draws that were given and not compared, for whatever reason: too
          few (100 effective ones of everything are needed), another model annealed ("localised"), no certified draws,
          or so few of them that a shift of one standard deviation would not have been seen.

        Of a report of `bread.debug`: "bug" where a test failed at its level, else "no bug found". Of a report of
        `bread.compare`: "bug" where a test of one model failed at its share of the level; "inconclusive" (interrupted,
        or fewer than 10 data sets); "better" (one is better than every other by at least one cost and worse by none);
        "trade-off" (that depends on the cost); else "cannot tell". Of a report of `bread.lab.unbiased`: "bounded"
        where the limit falls below ``max_error``, which rests on an assumption about longer meeting times; else
        "inconclusive". Of a report of `bread.lab.data_annealing`: "bug" where a test of exact draws has p < 0.001;
        "sandwiched" where the upper limit of the mean gap between the bounds on simulated data is at most ``max_gap``;
        else "inconclusive". Of a report of `bread.lab.path_sampling`: "bug" in the same way; "estimated" where all
        pairs met and the estimates show no heavy tail; else "inconclusive".

        ``bool(verdict)`` is True for "converged", "no bug found" and "better" alone. Numbers are about certified draws
        with this kernel and schedule.

    Raises
    ------
    InvalidArgumentError
        It is no report of bread.
    """
    return verdict_of(report)


def verdict_of(report: Any, spell: Callable[[str], str] = str) -> Verdict:
    """Return the verdict with messages spelt for a reader: `as_options` for those who use the command line."""
    answer = _answer(report).spelt(spell)
    details = printable(answer.details)
    return Verdict(*answer.lines(), details=details, **{**answer.numbers, "status": answer.status})


def _not_measured(*names: str) -> dict[str, Any]:
    """Return the numbers of these names where nothing was measured; of a check, without names."""
    kinds, unknown = Verdict.__annotations__, {"float": math.nan, "int": 0, "bool": False, "str": ""}
    return {name: unknown.get(kinds[name]) for name in names or set(kinds) - {"status", "details", "best"}}


def _answer(report: Any) -> Answer:
    """Return what a report of any verb says."""
    verbs: tuple[tuple[Callable[[Any], bool], Callable[[Any], Answer], dict[str, Any]], ...] = (
        (is_debug, debug_answer, _not_measured("direct_p_value")),
        (is_compare, compare_answer, _not_measured("best")),
        (is_first_look, first_look_answer, _not_measured()),
        (is_data_annealing, data_annealing_answer, {}),
        (is_unbiased, unbiased_answer, {}),
        (is_path_sampling, path_sampling_answer, {}),
    )
    for is_its, answer, numbers in verbs:
        if is_its(report):
            found = answer(report)
            return replace(found, numbers={**numbers, **found.numbers})
    findings = read_findings(report)
    return replace(check_answer(report, findings, _status(findings)), numbers=_numbers(findings))


def _numbers(findings: Findings) -> dict[str, Any]:
    """Return the attributes of a verdict on a check."""
    drawn = "" if findings.draws is None else findings.draws.status
    return {
        "error": findings.error,
        "error_lower": findings.error_lower,
        "error_limit": findings.error_upper,
        "error_limit_exact": findings.error_limit_exact,
        "jeffreys": findings.jeffreys,
        "is_reliable": findings.is_reliable,
        "bound": findings.decides,
        "estimate": findings.estimate,
        "ci_lower": findings.lower,
        "ci_upper": findings.upper,
        "limit": findings.limit,
        "n_temperatures": findings.n_temperatures,
        "n_simulations": findings.n_simulations,
        "consistency_p_value": findings.consistency_p_value,
        "effect": findings.effect,
        "fit": fit_status(findings.fit),
        "fit_p_value": math.nan if findings.fit is None else findings.fit.p_value,
        "alarm_p_value": findings.alarm_p_value,
        "forms_p_value": findings.forms_p_value,
        "rank_p_value": findings.rank_p_value,
        "quantity_p_value": findings.quantity_p_value,
        "direct_p_value": math.nan if findings.direct is None else findings.direct.p_value,
        "agreement": {"agreement": None if findings.not_compared else True, "disagreement": False}.get(drawn),
        "comparison": drawn,
        "gap_location": findings.gap_beta,
        "n_missed_modes": None if findings.modes is None else findings.modes.n_missed,
    }


def _status(findings: Findings) -> Status:
    """Return the first status that holds; comparisons with NaN (not tested) are False."""
    if findings.direct is not None and findings.direct.is_bug:
        return "bug"
    if findings.prior_integrals is not None and findings.prior_integrals.is_bug:
        return "bug"
    if findings.simulate_from in EXACT_SIMULATIONS and findings.chains_contradict:
        return "bug"
    look = findings.first_look
    if look is not None and look.is_disagreement and findings.simulate_from != "prior":  # data were drawn at these
        return "disagreement"
    if findings.contradicts_draws:
        return "disagreement"
    if findings.tests_disagree:
        return "inconclusive"
    if findings.is_unlike:
        return "mismatch"
    if look is not None and look.is_disagreement:
        return "disagreement"
    if findings.misses_mode:
        return "not converged"
    if findings.is_interrupted or not findings.is_confirmed or findings.n_failed:
        return "inconclusive"
    if findings.n_simulations < FEWEST_SIMULATIONS:
        return "inconclusive"
    if findings.is_certified:
        if findings.lacks_prior:
            return "inconclusive"
        compared = "" if findings.draws is None else findings.draws.status
        if compared == "disagreement":
            return "disagreement"
        return "inconclusive" if compared == "difference" or findings.lacks_own_draws else "converged"
    if findings.is_reached and findings.is_fit_doubtful:
        return "inconclusive"
    return "not converged" if findings.lower > findings.limit else "inconclusive"
