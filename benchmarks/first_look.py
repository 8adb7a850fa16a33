"""What the first look sees, and how often it rings falsely: python benchmarks/first_look.py {level,hard,power,sizes}.

Exact draws of laws with gradients by hand (`first_look_laws.py`), 1000 a run. ``level``: share of "disagreement" at
right draws; ``hard``: of slow chains, few draws, heavy tails, edges. ``power``: at draws that are wrong in a known way.
``sizes``: how often the shift and the ratio of standard deviations lie within two standard errors of the truth.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
from first_look_laws import (
    CHAINS,
    DRAWS,
    HARD_LAWS,
    LAWS,
    Array,
    Law,
    correlated_posteriors,
    equicorrelated,
    gaussian,
    log_gamma,
    posterior_of,
    regression,
)  # fmt: skip
from numpy.random import Generator, default_rng

from bread.statistics.first_look.beginnings import beginning_test
from bread.statistics.first_look.first_look import LEVEL, FirstLook, first_look

SEED = 20261130
Case = Callable[[Generator], tuple[Law, Array]]


def look(law: Law, x: Array) -> FirstLook:
    return first_look(x, law.gradient(x), law.log_density)


def p_value(law: Law, x: Array) -> float:
    """Return what a look says of draws without discrete coordinates; both kinds of tests share its level."""
    beginning = beginning_test(law.log_density(x.reshape(-1, x.shape[-1])).reshape(x.shape[:2]), x)
    both = np.array([look(law, x).p_value, beginning])
    known = both[np.isfinite(both)]
    return float(len(known) * known.min()) if known.size else float("nan")


def level(n_runs: int, only: str, known: Mapping[str, Law] = LAWS) -> Iterator[str]:
    all_values, laws = [], {name: law for name, law in known.items() if only in name}
    for name, law in laws.items():
        rng = default_rng(SEED)
        p_values = np.array([p_value(law, law.draw(rng)) for _ in range(n_runs)])
        all_values.append(p_values)
        yield f"| {name} | {_shares(p_values)} |"
    yield f"| together | {_shares(np.concatenate(all_values))} |"


def _shares(p_values: Array) -> str:
    tested = np.isfinite(p_values)
    below = [int((p_values[tested] < limit).sum()) for limit in (LEVEL, 10.0 * LEVEL)]
    return f"{below[0]} of {len(p_values)} | {below[1]} | {int((~tested).sum())}"


def _one_of_ten(change: Callable[[Array], Array]) -> Case:
    def case(rng: Generator) -> tuple[Law, Array]:
        law = gaussian(equicorrelated(10, 0.8))
        x = law.draw(rng)
        x[..., 3] = change(x[..., 3])
        return law, x

    return case


def _one_outcome(rng: Generator) -> tuple[Law, Array]:
    x, y, law = regression(rng, 50, 10.0)
    stale = y.copy()
    stale[rng.integers(len(y))] += 3.0
    return law, posterior_of(x, stale, 10.0).draw(rng)


def _another_prior(rng: Generator) -> tuple[Law, Array]:
    x, y, law = regression(rng, 20, 1.0)
    return law, posterior_of(x, y, 2.0).draw(rng)


def _mean_field(covariance: Array) -> Case:
    def case(rng: Generator) -> tuple[Law, Array]:
        deviations = np.sqrt(1.0 / np.diag(np.linalg.inv(covariance)))  # of the nearest product law by KL(q || p)
        return gaussian(covariance), deviations * rng.standard_normal((CHAINS, DRAWS, len(covariance)))

    return case


def _lost_jacobian(rng: Generator) -> tuple[Law, Array]:
    """One of ten parameters is a precision with 10 observations: without its Jacobian the shape is 4 in place of 5."""
    normal, scale = gaussian(np.eye(9)), log_gamma(5.0, 1)
    law = Law(
        normal.draw,
        lambda x: np.concatenate([normal.gradient(x[..., :9]), scale.gradient(x[..., 9:])], axis=-1),
        lambda x: normal.log_density(x[..., :9]) + scale.log_density(x[..., 9:]),
    )
    return law, np.concatenate([normal.draw(rng), log_gamma(4.0, 1).draw(rng)], axis=-1)


def _cut_tail(correlation: float) -> Case:
    def case(rng: Generator) -> tuple[Law, Array]:
        covariance = equicorrelated(10, correlation)
        law = gaussian(covariance)
        x, root = law.draw(rng), np.linalg.cholesky(covariance)
        while (out := x[..., 3] > 1.645).any():
            x[out] = rng.standard_normal((int(out.sum()), 10)) @ root.T
        return law, x

    return case


def _warm_up(rng: Generator) -> tuple[Law, Array]:
    """Leave in a twentieth of each chain, on the way from a start four standard deviations out in all parameters."""
    law = gaussian(equicorrelated(10, 0.8))
    x, n = law.draw(rng), DRAWS // 20
    x[:, :n] += 4.0 * np.linspace(1.0, 0.0, n, endpoint=False)[:, None]
    return law, x


CASES: dict[str, Case] = {
    "shift of 0.15 sd, one of ten": _one_of_ten(lambda x: x + 0.15),
    "sd too small by 10%, one of ten": _one_of_ten(lambda x: 0.9 * x),
    "sd too large by 10%, one of ten": _one_of_ten(lambda x: 1.1 * x),
    "one outcome of 50 changed by 3 sd": _one_outcome,
    "prior sd 2 in place of 1, 20 outcomes": _another_prior,
    **{f"mean field: {name}": _mean_field(covariance) for name, covariance in correlated_posteriors().items()},
    "lost Jacobian of a scale": _lost_jacobian,
    "tail of 5% cut, independent": _cut_tail(0.0),
    "tail of 5% cut, correlated 0.8": _cut_tail(0.8),
    "warm-up left in": _warm_up,
}


def power(n_runs: int, only: str) -> Iterator[str]:
    for name, case in CASES.items():
        if only not in name:
            continue
        rng = default_rng(SEED)
        p_values = np.array([p_value(*case(rng)) for _ in range(n_runs)])
        yield f"| {name} | {np.mean(p_values < LEVEL):.2f} | {np.median(p_values):.1g} |"


def sizes(n_runs: int, only: str) -> Iterator[str]:
    for name, law in {**LAWS, "scales: log of gamma 5, d = 10": log_gamma(5.0, 10)}.items():
        if only not in name:
            continue
        rng = default_rng(SEED)
        for what, shift, ratio in (("right", 0.0, 1.0), ("shift 0.15, sd - 10%", 0.15, 0.9)):
            scores, told = [], []
            for _ in range(n_runs):
                x = law.draw(rng)
                truth = x.reshape(-1, x.shape[-1]).std(axis=0)
                if what != "right":  # the law of the moved draws is not the truth's: only of normal ones are both known
                    if not name.startswith("normal"):
                        break
                    x[..., 0] = ratio * x[..., 0] + shift
                    truth = np.ones(x.shape[-1])
                found = look(law, x)
                told.append(np.isfinite(found.shift[0]))
                if told[-1]:
                    scores.append(
                        [(found.shift[0] - shift / truth[0] / ratio) / found.shift_se[0],
                         (found.sd_ratio[0] - ratio) / found.sd_ratio_se[0]]
                    )  # fmt: skip
            if scores:
                inside = np.mean(np.abs(np.array(scores)) < 2.0, axis=0)
                yield f"| {name} | {what} | {np.mean(told):.2f} | {inside[0]:.2f} | {inside[1]:.2f} |"
            elif told:
                yield f"| {name} | {what} | 0 | | |"


STUDIES = {
    "level": (level, 50, "| law | disagreement | p < 0.01 | not tested |\n|---|---|---|---|"),
    "hard": (partial(level, known=HARD_LAWS), 50, "| law | disagreement | p < 0.01 | not tested |\n|---|---|---|---|"),
    "power": (power, 20, "| draws | seen | median p |\n|---|---|---|"),
    "sizes": (sizes, 40, "| law | draws | told | shift within 2 se | sd ratio within 2 se |\n|---|---|---|---|---|"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--only", default="", help="part of the name of a law, or of draws")
    options = parser.parse_args()
    study, n_runs, header = STUDIES[options.study]
    print(header)
    for row in study(options.runs or n_runs, options.only):
        print(row, flush=True)


if __name__ == "__main__":
    main()
