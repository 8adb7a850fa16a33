"""Whole verdicts on borderline data, over seeds: status and fit change in at most 5% of runs."""

from collections import Counter

import pytest

import bread
from tests.support.borderline import BORDERLINE

N_SEEDS = 40


@pytest.mark.study
@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BORDERLINE)
def test_seeds_change_few_verdicts(name):
    answers = Counter()
    for seed in range(N_SEEDS):
        verdict = bread.verdict(bread.check(BORDERLINE[name], random_seed=seed, cores=1, progressbar=False))
        answers[verdict.status, verdict.fit] += 1
        print(name, seed, verdict.status, verdict.fit, f"{verdict.error_limit:.4f}", f"{verdict.fit_p_value:.4f}",
              verdict.consistency_p_value, flush=True)  # fmt: skip
    n_other = N_SEEDS - max(answers.values())
    print(f"{name}: {n_other} of {N_SEEDS} differ; {dict(answers)}")
    assert n_other <= N_SEEDS // 20
