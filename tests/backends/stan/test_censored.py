"""Censored outcomes: what is read, what is refused by name, the law of the draws, and exact log evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import stats
from scipy.special import comb, gammaln

from bread.backends.stan.analysis.analyse import analyse
from bread.backends.stan.analysis.program import Program
from bread.backends.stan.language.source import Source
from bread.statistics.bounds.alarms import combined_p_value
from tests.support.conformance import check_evidence, tuned_kernel
from tests.support.direct_models import direct_tests
from tests.support.stan_conjugate import opened
from tests.support.stan_corpus_table import SUPPORTED, Case, analysed, stanc
from tests.support.stan_mutants import Mutant, Original, interpreter, is_constant, mutants, simulate

CENSORED = [case for case in SUPPORTED if "4.censored" in case.rows]
RANGE = "adds the probability of a range, as of a censored observation, and "


def case_of(name: str) -> Case:
    return next(case for case in CENSORED if case.name == name)


def read(case: Case, observed: list[str] | None = None, text: str | None = None, **data: Any) -> Program:
    source = Source.from_text(text or case.source.text)
    return analyse(source, observed=observed, data={**case.data, **data}, stanc=stanc)


def reason(program: Program) -> str:
    assert program.split_refusal is None and program.simulator_refusal is not None
    return program.simulator_refusal.reason


# ---- what is read, what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", CENSORED, ids=lambda case: case.name)
def test_likelihood_is_that_of_the_simulator(case: Case) -> None:
    """Draw by draw, by densities and distribution functions that no Stan code has a part in."""
    program = analysed(case.name)
    assert program.is_automatic and program.observed == case.observed
    run = interpreter(program, case.data)
    draws, _ = simulate(program, run, 40, default_rng(5))
    difference = np.array([np.subtract(run.log_density(one.values), one.own) for one in draws])
    assert len(draws) == 40 and is_constant(difference, draws)
    # negative control: one more observation is said to be censored than was
    flags = [name for name in case.observed if np.asarray(case.data[name]).dtype.kind in "i" and name != "y"]
    if flags:
        moved = [{**one.values, flags[0]: np.roll(one.values[flags[0]], 1)} for one in draws]
        changed = np.array([np.subtract(run.log_density(a), b.own) for a, b in zip(moved, draws, strict=True)])
        assert not is_constant(changed, draws)


def test_limits_that_only_censored_observations_have() -> None:
    case = case_of("censored_on_both_sides")
    y = case.data["Y"]
    assert read(case).is_automatic
    several = reason(read(case, Y=[*y[:4], 1.2, y[5]]))
    assert several == RANGE + (
        "the limits, which 'Y' holds for the censored observations, differ (1.2, 1.5): those of the others are not "
        "among the data."
    )
    beyond = reason(read(case, Y=[*y[:5], 1.6]))
    assert beyond == RANGE + (
        "an observation that is not censored (Y[6] = 1.6) lies beyond the limit of the others on the right (1.5): what "
        "censors is not known."
    )
    assert "(Y[1] = 0.1) lies beyond the limit of the others on the left (0.2)" in reason(read(case, Y=[0.1, *y[1:]]))
    assert "without the data" in reason(analyse(case.source, observed=None, data=None, stanc=stanc))
    assert "other values in the data (2)" in reason(read(case, cens=[2, *case.data["cens"][1:]]))
    unnamed = read(case, observed=["Y"])
    assert "which observations are censored (`cens[n]`) is not among the outcomes" in reason(unnamed)
    assert unnamed.simulator_refusal is not None and "observed=" in unnamed.simulator_refusal.remedy
    # nobody is censored on one side: there is no limit, and nothing to say about it
    assert read(case, cens=[0, 1, 0, 0, 1, 0]).is_automatic


def test_limits_that_are_data() -> None:
    case = case_of("censored_below_quantification")
    assert read(case).is_automatic
    assert "(y[4] = 0.3) lies beyond its limit on the interval" in reason(read(case, y=[0.8, 0.2, -1, 0.3, 0.4]))
    assert "(y[1] = -1.5) lies beyond its limit on the left" in reason(read(case, y=[-1.5, 0.2, -1, 1.7, 0.4]))


# Of the exponential times of four patients the second was censored; `c` should be the limit of all of them.
LIMITS_IN_DATA = """data {
  int<lower=1> N;
  vector<lower=0>[N] y;
  vector[N] c;
  array[N] int<lower=0, upper=1> cens;
}
parameters {
  real<lower=0> rate;
}
model {
  rate ~ gamma(3, 2);
  for (n in 1 : N) {
    if (cens[n] == 1) target += exponential_lccdf(c[n] | rate);
    else target += exponential_lpdf(y[n] | rate);
  }
}
"""
PATIENTS = {"N": 4, "y": [0.7, 1.5, 0.2, 0.9], "c": [2, 1.5, 2, 1], "cens": [0, 1, 0, 0]}
UNCENSORED = "an observation that is not censored (y[1] = 0.7)"
TO_DO = (
    "Data are simulated with the limit of every observation, where it would have been censored; bread does not guess it"
)


def read_patients(text: str = LIMITS_IN_DATA, **data: Any) -> Program:
    return analyse(Source.from_text(text), observed=["y", "cens"], data={**PATIENTS, **data}, stanc=stanc)


@pytest.mark.parametrize(
    ("c", "why"),
    [
        ([0.7, 1.5, 0.2, 0.9], f"{UNCENSORED} is its own limit on the right (0.7 in 'c')"),
        ([0, 1.5, 0, 0], f"{UNCENSORED} lies beyond its limit on the right (0 in 'c')"),
        ([2, 1.5, np.nan, 1], "'c' is NaN at 3, for an observation that is not censored."),
        ([np.inf, 1.5, np.inf, np.inf], "'c' is inf for all observations that are not censored, and for no other"),
        ([99, 1.5, 99, 99], "'c' is 99 for all observations that are not censored, and for no other"),
    ],
    ids=["the outcome itself", "zero", "nan", "infinity", "a code"],
)  # fmt: skip
def test_limits_of_the_censored_alone_are_refused_and_named(c: list[float], why: str) -> None:
    program = read_patients(c=c)
    assert why in reason(program)
    assert program.simulator_refusal is not None
    assert program.simulator_refusal.remedy.startswith(
        f"{TO_DO}. Let `c[n]` be that, also where nothing was censored. Or pass simulator="
    )


def test_limits_of_all_are_read() -> None:
    assert read_patients().is_automatic
    assert read_patients(c=[2, 1.5, np.inf, 2]).is_automatic  # one of them could not have been censored
    # of whole numbers an outcome may be its limit: it is censored beyond
    counts = LIMITS_IN_DATA.replace("vector<lower=0>[N] y", "array[N] int y").replace("exponential_l", "poisson_l")
    counts = counts.replace("vector[N] c", "array[N] int c").replace("poisson_lpdf", "poisson_lpmf")
    assert read_patients(counts, y=[1, 2, 0, 3], c=[4, 2, 0, 3]).is_automatic


def test_limits_that_are_outcomes_are_refused_with_what_to_write() -> None:
    """The limit stands in the place of the outcome; an interval begins there."""
    own = read_patients(LIMITS_IN_DATA.replace("lccdf(c[n]", "lccdf(y[n]"), y=[0.7, 1.5, 0.2, 1.6])
    assert own.simulator_refusal is not None and own.simulator_refusal.remedy.startswith(
        f"{TO_DO}. Declare it in the data, `vector[N] limit;`, fill it for the observations that were not censored, "
        "too (infinity where nothing would have been), and write `exponential_lccdf(limit[n] | ...)`."
    )
    interval = "log_diff_exp(exponential_lcdf(c[n] | rate), exponential_lcdf({}[n] | rate))"
    text = LIMITS_IN_DATA.replace("exponential_lccdf(c[n] | rate)", interval)
    refused = read_patients(text.replace("{}", "y"))
    assert "the ends `y[n]`, ... of intervals are outcomes" in reason(refused)
    assert refused.simulator_refusal is not None
    assert "`vector[N] low; vector[N] high;`" in refused.simulator_refusal.remedy
    given = text.replace("{}", "low").replace("vector[N] c;", "vector[N] c; vector[N] low;")
    assert read_patients(given, c=[2, 2, 0.1, 0.6], low=[1, 1.5, 0, 0.5]).is_automatic  # as that says


def test_another_law_of_those_that_are_censored_is_refused() -> None:
    """The probability must be that of the law which observations that are seen have."""
    case = case_of("censored_on_both_sides")
    for old, new in [
        ("lccdf(Y[n] | rate)", "lccdf(Y[n] | 2 * rate)"),
        ("lccdf(Y[n] | rate)", "lccdf(Y[n] + 0.1 | rate)"),
        ("lccdf(Y[n] | rate)", "lcdf(Y[n] | rate)"),
        ("exponential_lccdf(Y[n] | rate)", "lognormal_lccdf(Y[n] | 0, rate)"),
        ("exponential_lccdf(Y[n] | rate)", "2 * exponential_lccdf(Y[n] | rate)"),
        ("exponential_lccdf(Y[n] | rate)", "exponential_lccdf(Y[n] | rate) - 0.1"),
        ("exponential_lpdf(Y[n] | rate)", "exponential_lpdf(Y[n] | rate) + exponential_lpdf(Y[n] | 2 * rate)"),
        ("lccdf(Y[n] | rate)", "lccdf(rate | rate)"),
    ]:
        assert old in case.source.text
        program = read(case, text=case.source.text.replace(old, new), observed=["Y", "cens"])
        assert not program.is_automatic, new


@pytest.mark.parametrize("name", ["censored_below_quantification", "censored_tobit"])
def test_mutants_have_a_right_end(name: str) -> None:
    """Refused, or simulated by their own law, which the comparison tells from the original's."""
    case = case_of(name)
    original = Original(case, analysed(name), 30)
    ends: dict[str, int] = {}
    changed = [one for i, one in enumerate(mutants(case)) if i % 9 == 0]
    for old, new in [("y[n] < U", "y[n] < U + 0.4"), ("y[n] < U", "y[n] < U - 0.4"), ("y[n] < U", "y[n] < slope"),
                     ("below[n] == 2", "below[n] == 1"), ("log_diff_exp(normal_lcdf(quantified[n]",
                      "log_diff_exp(normal_lcdf(quantified[n] + 1")]:  # fmt: skip
        if old in case.source.text:
            changed.append(Mutant("by hand", case.source.text.replace(old, new, 1)))
    for mutant in changed:
        verdict = original.verdict(mutant, 30)
        if verdict is None:
            continue
        ends[verdict.outcome] = ends.get(verdict.outcome, 0) + 1
        if verdict.same_law is not None:
            assert verdict.same_law != verdict.is_told, mutant
        elif verdict.outcome == "refused by the comparison":
            assert mutant.kind == "by hand", mutant
    assert sum(ends.values()) >= 6 and ends.get("simulated by its own law", 0) >= 1, ends
    # conditions that are not those of the limit: nothing but the comparison can see that
    assert ends.get("refused by the comparison", 0) >= (2 if name == "censored_tobit" else 0), ends


# ---- the law of the draws --------------------------------------------------------------------------------------


def test_shares_beyond_the_limits_are_those_of_the_law() -> None:
    """200 draws of five outcomes: counts of each range within 4 standard errors; with a wrong limit they are not."""
    case = case_of("censored_below_quantification")
    program = analysed(case.name)
    draws, _ = simulate(program, interpreter(program, case.data), 200, default_rng(7))
    mu, sigma = (np.array([one.values[name] for one in draws])[:, None] for name in ("mu", "sigma"))
    marks = np.array([one.values["below"] for one in draws])
    y = np.array([one.values["y"] for one in draws])

    def excess(quantified: np.ndarray) -> np.ndarray:
        low = stats.norm.cdf(-1, mu, sigma) + np.zeros_like(y)
        high = stats.norm.cdf(quantified, mu, sigma)
        z = []
        for code, share in ((2, low), (1, high - low), (0, 1 - high)):
            residual = (marks == code) - share
            z.append(residual.sum() / np.sqrt((share * (1 - share)).sum()))
        return np.abs(z)

    limits = np.asarray(case.data["quantified"])
    assert (excess(limits) < 4).all()
    assert (excess(limits + 0.4) > 4).any()
    assert (y[marks == 2] == -1).all() and (y[marks == 0] > np.broadcast_to(limits, y.shape)[marks == 0]).all()


# ---- compiled --------------------------------------------------------------------------------------------------


def log_evidence(data: Any) -> float:
    """Exponential times with a gamma law of their rate, and limits on both sides.

    (1 - exp(-rate c))^k of k times below c is a sum of k + 1 powers, each with a gamma integral.
    """
    y, cens = np.asarray(data["Y"]), np.asarray(data["cens"])
    n_seen, n_below = (cens == 0).sum(), int((cens == -1).sum())
    total, limit = y[cens >= 0].sum(), y[cens == -1].max(initial=0.0)
    j = np.arange(n_below + 1)
    terms = (
        (-1.0) ** j
        * comb(n_below, j)
        * np.exp(3 * np.log(2) - gammaln(3) + gammaln(3 + n_seen) - (3 + n_seen) * np.log(2 + total + j * limit))
    )
    return float(np.log(terms.sum()))


def test_the_evidence_by_hand_is_that_of_quadrature() -> None:
    case = case_of("censored_on_both_sides")
    y, cens = np.asarray(case.data["Y"]), np.asarray(case.data["cens"])
    rate = np.linspace(1e-6, 40, 400_001)[:, None]
    law = stats.expon(scale=1 / rate)
    each = np.where(cens == 0, law.logpdf(y), np.where(cens == 1, law.logsf(y), law.logcdf(y))).sum(axis=1)
    value = np.trapezoid(np.exp(each) * stats.gamma(3, scale=0.5).pdf(rate[:, 0]), rate[:, 0])
    assert np.isclose(log_evidence(case.data), np.log(value), rtol=0, atol=1e-6)


@pytest.mark.stan
@pytest.mark.statistical
@pytest.mark.slow
def test_exact_evidence_is_inside_the_sandwich() -> None:
    """T = 512, 4 chains, 20 simulations, 3 standard errors."""
    case = case_of("censored_on_both_sides")
    model = opened(case.source.text, case.data)
    check_evidence(model, tuned_kernel(model), log_evidence=log_evidence)
    # negative control: the evidence of data of which all were seen
    with pytest.raises(AssertionError, match="wrong side"):
        check_evidence(
            model, tuned_kernel(model), log_evidence=lambda data: log_evidence({**data, "cens": np.zeros(6)})
        )
    # a limit ends the density of what is seen there: outcomes are not moved across it, and nothing is called a bug
    tests = direct_tests(model, 1)
    assert min(float(combined_p_value(test.p_values.ravel())) for test in tests.tests) > 1e-4
    assert any(name == "outcome score of Y" for name in tests.left_out), tests.left_out


def log_evidence_of_patients(data: Any, limits: Any = PATIENTS["c"]) -> float:
    """Exponential times, limits that are known, and a gamma law of the rate: a gamma integral."""
    is_seen = np.asarray(data["cens"]) == 0
    events = int(is_seen.sum())
    time = np.where(is_seen, np.asarray(data["y"]), np.asarray(limits)).sum()
    return float(3 * np.log(2) - gammaln(3) + gammaln(3 + events) - (3 + events) * np.log(2 + time))


@pytest.mark.stan
@pytest.mark.statistical
@pytest.mark.slow
def test_limits_of_all_have_exact_evidence() -> None:
    """T = 512, 4 chains, 20 simulations, 3 standard errors."""
    model = opened(LIMITS_IN_DATA, PATIENTS, observed=["y", "cens"])
    kernel = tuned_kernel(model)
    check_evidence(model, kernel, log_evidence=log_evidence_of_patients)
    with pytest.raises(AssertionError, match="wrong side"):  # negative control: other limits
        check_evidence(model, kernel, log_evidence=lambda data: log_evidence_of_patients(data, limits=np.full(4, 0.05)))
