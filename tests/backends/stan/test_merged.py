"""Missing values that are parameters, merged with outcomes (brms `mi()`): exact evidence, mutants, what is refused."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from scipy import stats

from bread.backends.stan.analysis.analyse import analyse
from bread.backends.stan.analysis.program import Program
from bread.backends.stan.language.source import Source
from bread.errors import BreadError
from tests.support.conformance import check_evidence, check_simulate_is_exact, tuned_kernel
from tests.support.stan_conjugate import opened
from tests.support.stan_corpus_table import SUPPORTED, analysed, stanc
from tests.support.stan_mutants import Mutant, Original

CASE = next(case for case in SUPPORTED if case.name == "merged_missing")
LAW = "target += normal_lpdf(Yl_x | mu_x, sigma_x);"
MERGE = "Yl_x[Jmi_x] = Ymi_x;"
GUIDE = """data {
  int N_obs;
  int N_mis;
  array[N_obs] int<lower=1> ii_obs;
  array[N_mis] int<lower=1> ii_mis;
  vector[N_obs] y_obs;
}
transformed data {
  int N = N_obs + N_mis;
}
parameters {
  real mu;
  real<lower=0> sigma;
  vector[N_mis] y_mis;
}
transformed parameters {
  vector[N] y;
  y[ii_obs] = y_obs;
  y[ii_mis] = y_mis;
}
model {
  y ~ normal(mu, sigma);
  mu ~ normal(0, 1);
  sigma ~ lognormal(0, 0.3);
}
"""
GUIDE_DATA = {"N_obs": 3, "N_mis": 2, "ii_obs": [1, 5, 3], "ii_mis": [4, 2], "y_obs": [0.1, 0.5, -0.2]}
N, MISSING, SLOPE = 10, [3, 9, 1, 7], 2.0
# As the corpus has it, with known slope and scales: all is normal. brms gives Inf in the place of missing values.
KNOWN = CASE.source.text
KNOWN = KNOWN.replace("(bsp_y[1])", "2.0").replace("mu_y, sigma_y", "mu_y, 0.7").replace("mu_x, sigma_x", "mu_x, 1.3")
KNOWN = "\n".join(line for line in KNOWN.split("\n") if not any(n in line for n in ("bsp_y", "sigma_y", "sigma_x")))
KNOWN_DATA: dict[str, Any] = {
    "N": N, "Y_y": np.cos(np.arange(N)), "Nmi_x": len(MISSING), "Jmi_x": MISSING, "z": np.sin(np.arange(N)),
    "Y_x": np.where(np.isin(np.arange(1, N + 1), MISSING), np.inf, np.linspace(-1, 1, N)), "prior_only": 0,
}  # fmt: skip


def read(text: str, data: Any = None, observed: list[str] | None = None) -> Program:
    return analyse(Source.from_text(text), observed=observed, data=data, stanc=stanc)


def log_evidence(data: Any, spread: float = 1.3) -> float:
    """Return the normal evidence of y and of what is seen of x; missing x have standard deviation ``spread``."""
    missing = np.isin(np.arange(1, N + 1), MISSING)
    of_x = np.diag(np.where(missing, spread, 1.3) ** 2) + 4.0
    cross = SLOPE * of_x
    of_y = SLOPE**2 * of_x + 0.7**2 * np.eye(N) + 4.0
    covariance = np.block([[of_x, cross], [cross.T, of_y]])
    mean_x = -0.3 + 0.3 * KNOWN_DATA["z"]
    mean = np.concatenate([mean_x, 0.2 + SLOPE * mean_x])
    kept = np.concatenate([~missing, np.full(N, True)])
    values = np.concatenate([np.asarray(data["Y_x"]), np.asarray(data["Y_y"])])[kept]
    return float(stats.multivariate_normal(mean[kept], covariance[np.ix_(kept, kept)]).logpdf(values))


@pytest.mark.slow
@pytest.mark.stan
@pytest.mark.statistical
def test_evidence_with_a_missing_covariate_is_exact() -> None:
    """Within 3 standard errors over simulations."""
    model = opened(KNOWN, KNOWN_DATA)
    check_simulate_is_exact(model)
    kernel = tuned_kernel(model)
    check_evidence(model, kernel, log_evidence=log_evidence)
    with pytest.raises(AssertionError, match="wrong side"):  # negative control: missing values at their mean
        check_evidence(model, kernel, log_evidence=lambda data: log_evidence(data, 1e-3))


@pytest.mark.slow
@pytest.mark.stan
def test_an_index_that_comes_twice_is_refused() -> None:
    with pytest.raises(BreadError, match="names element 3 again"):
        opened(KNOWN, {**KNOWN_DATA, "Jmi_x": [3, 9, 3, 7]})


def test_the_statement_is_split_by_element() -> None:
    for text, data, names in ((CASE.source.text, CASE.data, ("Y_y", "Y_x")), (GUIDE, GUIDE_DATA, ("y_obs",))):
        program = read(text, data)
        assert program.is_automatic and program.observed == names and program.written.text == text
        assert program.source.text.count("\n") == text.count("\n")
        parts = [one.part for one in program.contributions if one.line == _line(text)]
        assert sorted(parts) == ["likelihood", "prior"]


def _line(text: str) -> int:
    return next(i for i, one in enumerate(text.split("\n"), 1) if "Yl_x |" in one or "y ~" in one)


@functools.cache
def original() -> Original:
    return Original(CASE, analysed("merged_missing"), 12)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LAW, "target += normal_lpdf(Yl_x | mu_x, square(sigma_x));"),
        pytest.param(LAW, "target += normal_lpdf(Yl_x | mu_x + 1, sigma_x);", marks=pytest.mark.slow),
        pytest.param(LAW, "target += cauchy_lpdf(Yl_x | mu_x, sigma_x);", marks=pytest.mark.slow),
        pytest.param("0.3 * z", "0.4 * z", marks=pytest.mark.slow),
        pytest.param("* Yl_x[n]", "* Y_x[n]", marks=pytest.mark.slow),
    ],
)
def test_another_law_is_simulated_by_its_own(old: str, new: str) -> None:
    assert old in CASE.source.text
    verdict = original().verdict(Mutant("merged", CASE.source.text.replace(old, new)), 12)
    assert verdict is not None and verdict.outcome == "simulated by its own law"
    assert verdict.same_law is False and verdict.is_told


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("vector[Nmi_x] Ymi_x;", "vector<lower=0>[Nmi_x] Ymi_x;", "no vector without bounds"),
        ("mu_x += Intercept_x", "mu_x += 0.2 * Yl_x + Intercept_x", "splits by element"),
        (LAW, "target += normal_lpdf(Yl_x | mu_x, exp(Yl_x[1]));", "splits by element"),
        (LAW, "target += normal_lpdf(Yl_x | mu_x, exp(Ymi_x[1]));", "splits by element"),
        ("mu_x += Intercept_x", "mu_x += 0.2 * Y_y + Intercept_x", "reads outcomes ('Y_y')"),
        (LAW, "for (n in 1:N) target += normal_lpdf(Yl_x[n] | mu_x[n], sigma_x);", "to a part of"),
        (LAW, "target += normal_lpdf(Yl_x[1:2] | mu_x[1:2], sigma_x);", "to a part of"),
        (MERGE, f"{MERGE} Yl_x[1] = 2;", "other statements"),
        (MERGE, f"if (N > 2) {MERGE}", "under conditions"),
        (MERGE, f"for (m in 1:2) {MERGE}", "under conditions"),
    ],
)
def test_what_is_not_proven_is_refused_with_its_reason(old: str, new: str, match: str) -> None:
    assert old in CASE.source.text
    program = read(CASE.source.text.replace(old, new), CASE.data)
    assert not program.is_automatic and match in str(program.simulator_refusal)


def test_a_constrained_whole_and_outcomes_that_are_not_named_are_refused() -> None:
    constrained = read(GUIDE.replace("vector[N] y;", "vector<lower=-9>[N] y;"), GUIDE_DATA, ["y_obs"])
    assert "has a constraint" in str(constrained.simulator_refusal)
    assert "'Y_x' is an outcome, too" in str(read(CASE.source.text, CASE.data, ["Y_y"]).simulator_refusal)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (MERGE, "Yl_x[Jmi_x] = 2 * Ymi_x;"),
        (LAW, f"{LAW} {LAW}"),
        (LAW, f"{LAW} Ymi_x ~ normal(0, 1);"),
        (LAW, "target += normal_lpdf(Yl_x | mu_x, sigma_x) - 0.1 * sum(square(Ymi_x));"),
        ("vector[N] Yl_x = Y_x;", "vector[N] Yl_x = 2 * Y_x;"),
        ("if (!prior_only) {", "if (prior_only) {"),
    ],
)
def test_other_laws_of_missing_values_are_refused(old: str, new: str) -> None:
    assert old in CASE.source.text
    assert not read(CASE.source.text.replace(old, new), CASE.data).is_automatic
    assert not read(CASE.source.text.replace(old, new), CASE.data, ["Y_y", "Y_x"]).is_automatic
