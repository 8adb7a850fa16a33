"""Programs spelled out: own functions, `reduce_sum`, lists of indices; outcomes with probability on single values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from scipy import stats
from scipy.special import betaln

from bread.backends.stan.analysis.analyse import analyse
from bread.backends.stan.analysis.program import Program
from bread.backends.stan.language.source import Source
from tests.support.conformance import check_evidence, tuned_kernel
from tests.support.stan_conjugate import opened
from tests.support.stan_corpus_table import SUPPORTED, Case, analyse_text, analysed, stanc
from tests.support.stan_mutants import Mutant, Original, drawn, interpreter, is_constant, mutants

SPELLED = [case for case in SUPPORTED if "2.spelled-out" in case.rows or "4.points" in case.rows]


def case_of(name: str) -> Case:
    return next(case for case in SPELLED if case.name == name)


def read(name: str, *changes: tuple[str, str]) -> Program:
    case = case_of(name)
    text = case.source.text
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return analyse(Source.from_text(text), observed=list(case.observed), data=case.data, stanc=stanc)


@pytest.mark.parametrize("case", SPELLED, ids=lambda case: case.name)
def test_spelled_out_program_has_the_lines_of_the_users_and_its_simulator_its_law(case: Case) -> None:
    program = analysed(case.name)
    assert program.is_automatic and program.written.text == case.source.text
    written, spelled = (text.split("\n") for text in (program.written.text, program.source.text))
    changed = [i for i, (a, b) in enumerate(zip(written, spelled, strict=True), 1) if a != b]
    assert all(line >= min(case.likelihood_lines) or case.name == "own_density" for line in changed)
    run, rng = interpreter(program, case.data), default_rng(5)
    if (
        case.name == "reduce_sum_regression"
    ):  # with a distribution that the interpreter lacks: its compiled proof has it
        return
    draws = [drawn(program, run.simulate(rng)) for _ in range(20)]
    difference = np.array([np.subtract(run.log_density(one.values), one.own) for one in draws])
    assert is_constant(difference, draws)
    if "4.points" in case.rows:
        y = np.array([one.values["y"] for one in draws])
        assert 0.1 < (y == 0).mean() < 0.7
        # negative control: one zero is seen as another value
        draws = [one for one in draws if (one.values["y"] == 0).any()]
        moved = [{**one.values, "y": np.where(one.values["y"] == 0, 0.5, one.values["y"])} for one in draws]
        changed = np.array([np.subtract(run.log_density(a), b.own) for a, b in zip(moved, draws, strict=True)])
        assert not is_constant(changed, draws)


def test_a_mass_of_several_numbers_is_that_of_its_statements() -> None:
    text = (
        "functions { real two_lpmf(array[] int k, real m) { int n = size(k); return poisson_log_lpmf(k | m); } }"
        "data { int N; array[N] int z; } parameters { real mu; } model { mu ~ normal(0, 1); z ~ two(mu); }"
    )
    program = analyse_text(text)
    assert program.is_automatic and program.observed == ("z",) and "two_lpmf(z" not in program.tempered
    changed = analyse_text(text.replace("return poisson_log_lpmf(k | m);", "return poisson_log_lpmf(k | m) / n;"))
    assert not changed.is_automatic and "several values" in str(changed.simulator_refusal)


# What has no other form, or another one: the program as it stands is refused, in the user's own words.
NOT_SPELLED = [
    ("hurdle_in_parallel", ("    return ptarget;", "    for (n in 1 : N) return ptarget; return 0;"), ""),
    ("hurdle_in_parallel", ("reduce_sum(partial", "0.5 * reduce_sum(partial"), "reduce_sum"),
    ("hurdle_in_parallel", ("return bernoulli_lpmf(1 | hu);", "return 2 * bernoulli_lpmf(1 | hu) - y;"), "reduce_sum"),
    ("hurdle_in_parallel", ("bernoulli_lpmf(0 | hu) + lognormal", "bernoulli_lpmf(0 | hu) - lognormal"), "reduce_sum"),
    ("censored_by_lists", ("Nrcens = 0", "Nrcens = 1"), ""),
    ("censored_by_lists", ("Jrcens[Nrcens] = n;", "Jrcens[Nrcens] = N + 1 - n;"), ""),
    ("censored_by_lists", ("cens[n] == 1", "cens[n] != 0"), ""),
    ("censored_by_lists", ("      Nrcens += 1;\n", "      Nrcens += 1; if (n == 2) Nrcens += 1;\n"), ""),
    ("censored_by_lists", ("mu[Jrcens[1 : Nrcens]]", "mu[Jevent[1 : Nrcens]]"), ""),
    ("censored_by_lists", ("mu[Jrcens[1 : Nrcens]]", "mu[1 : Nrcens]"), ""),
    ("censored_by_lists", ("for (n in 1 : N) {\n    if", "for (n in 1 : N) if (n > 1) {\n    if"), ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "what"), NOT_SPELLED, ids=[change[1] for _, change, _ in NOT_SPELLED])
def test_what_is_no_plain_call_is_refused_in_the_users_words(name: str, change: tuple[str, str], what: str) -> None:
    program = read(name, change)
    if program.is_automatic:  # a loop over data is one that a draw can be made in; its law must be the program's
        pytest.fail(f"taken: {program.source.text}")
    refusal = program.split_refusal or program.simulator_refusal
    assert refusal is not None and "bread_r" not in str(refusal) and program.source.text == program.written.text
    assert what in refusal.construct


def test_mutants_have_a_right_end() -> None:
    """Refused, or simulated by their own law; weights that do not sum to one are rejected at every draw."""
    case = case_of("zero_one_inflated")
    original = Original(case, analysed(case.name), 8)
    by_kind = {mutant.kind: mutant for mutant in mutants(case)}
    by_hand = [("log1m(zoi)", "log1m(0.5 * zoi)"), ("log(zoi) + log(coi)", "log(zoi)"), ("y[n] == 1", "y[n] == 0.5")]
    changed = [Mutant("by hand", case.source.text.replace(old, new)) for old, new in by_hand]
    ends: dict[str, list[str]] = {}
    for mutant in [*by_kind.values(), *changed]:
        verdict = original.verdict(mutant, 8)
        if verdict is None:
            continue
        ends.setdefault(verdict.outcome, []).append(mutant.kind)
        assert verdict.outcome != "refused by the comparison", mutant
        if verdict.same_law is not None:
            assert verdict.same_law != verdict.is_told, mutant
    assert ends["no draws"].count("by hand") == 2 and sum(map(len, ends.values())) >= 8, ends


def log_evidence(data: Any) -> float:
    """A beta law of the share of zeros, and normal laws of two means with known variances."""
    y, z = np.asarray(data["y"]), np.asarray(data["z"])
    seen, k = np.log(y[y > 0]), int((y == 0).sum())
    value = betaln(2 + k, 3 + len(y) - k) - betaln(2, 3) - seen.sum()
    for values, mean, sd, noise in ((seen, 0.5, 1.0, 0.8), (z, -1.0, 2.0, 1.5)):
        if len(values):
            n = len(values)
            law = stats.multivariate_normal(np.full(n, mean), noise**2 * np.eye(n) + sd**2)
            value += law.logpdf(values)
    return float(value)


@pytest.mark.stan
@pytest.mark.statistical
@pytest.mark.slow
def test_exact_evidence_is_inside_the_sandwich() -> None:
    """T = 512, 4 chains, 20 simulations, 3 standard errors: `reduce_sum` of the user's compiled, and a hurdle."""
    case = case_of("hurdle_in_parallel")
    model = opened(case.source.text, case.data, observed=list(case.observed))
    notes = "\n".join(model.info.identity.notes)
    assert "The tempered program has the density of the original one" in notes
    assert (
        "reduce_sum" in model.program.written.text and "reduce_sum(" not in model.program.tempered.split("model {")[1]
    )
    kernel = tuned_kernel(model)
    check_evidence(model, kernel, log_evidence=log_evidence)
    # negative control: the evidence had none of the zeros been drawn
    with pytest.raises(AssertionError, match="wrong side"):
        check_evidence(model, kernel, log_evidence=lambda data: log_evidence({**data, "y": data["y"] + 1e-3}))
