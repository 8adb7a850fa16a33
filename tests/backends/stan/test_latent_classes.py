"""Mixtures of whole rows of outcomes: the law of the draws, what is refused, and exact log evidence."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng
from scipy.special import betaln, logsumexp

from tests.support.conformance import check_evidence, tuned_kernel
from tests.support.stan_conjugate import opened
from tests.support.stan_corpus_table import SUPPORTED, Case, analyse_text, analysed
from tests.support.stan_mutants import interpreter, is_constant, simulate

ROWS = [case for case in SUPPORTED if "4.mixture-rows" in case.rows]


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.name)
def test_likelihood_is_that_of_the_simulator(case: Case) -> None:
    program = analysed(case.name)
    assert program.is_automatic
    run = interpreter(program, case.data)
    draws, _ = simulate(program, run, 20, default_rng(5))
    difference = np.array([np.subtract(run.log_density(one.values), one.own) for one in draws])
    assert len(draws) == 20 and is_constant(difference, draws)
    assert len({str(one.values["y"]) for one in draws}) > 10
    # negative control: rows of one observation and another share elements
    moved = [{**one.values, "y": np.column_stack([one.values["y"][:, :1], np.roll(one.values["y"][:, 1:], 1, 0)])}
             for one in draws]  # fmt: skip
    changed = np.array([np.subtract(run.log_density(a), b.own) for a, b in zip(moved, draws, strict=True)])
    assert not is_constant(changed, draws)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("y[n] | mu[2], 0.5", "y[1] | mu[2], 0.5"),
        ("y[n] | mu[2], 0.5", "y[n, 1:2] | mu[2], 0.5"),
        ("y[n] | mu[2], 0.5", "y[n] + 1 | mu[2], 0.5"),
        ("y[n] | mu[2], 0.5", "y[n, 1] | mu[2, 1], 0.5"),
    ],
)
def test_components_of_other_elements_are_refused(old: str, new: str) -> None:
    case = next(case for case in ROWS if case.name == "mixture_of_rows")
    assert old in case.source.text
    assert not analyse_text(case.source.text.replace(old, new), ["y"]).is_automatic


def log_evidence(data: Any) -> float:
    """Every assignment of rows to the two classes, with a beta law of the share of the first."""
    y, p = np.asarray(data["y"]), np.asarray(data["p"])
    each = np.where(y[:, None] == 1, np.log(p), np.log1p(-p)).sum(axis=2)
    terms = []
    for classes in product((0, 1), repeat=len(y)):
        n_first = classes.count(0)
        law = betaln(2 + n_first, 3 + len(y) - n_first) - betaln(2, 3)
        terms.append(law + each[np.arange(len(y)), list(classes)].sum())
    return float(logsumexp(terms))


@pytest.mark.stan
@pytest.mark.statistical
@pytest.mark.slow
def test_exact_evidence_is_inside_the_sandwich() -> None:
    """T = 512, 4 chains, 20 simulations, 3 standard errors."""
    case = next(case for case in ROWS if case.name == "latent_classes")
    model = opened(case.source.text, case.data)

    def exact(data: Any) -> float:
        return log_evidence({**case.data, **data})

    kernel = tuned_kernel(model)
    check_evidence(model, kernel, log_evidence=exact)

    def shorter(data: Any) -> float:
        return log_evidence({"y": np.asarray(data["y"])[:, :2], "p": np.asarray(case.data["p"])[:, :2]})

    # negative control: rows of two items of the three
    with pytest.raises(AssertionError, match="wrong side"):
        check_evidence(model, kernel, log_evidence=shorter)
