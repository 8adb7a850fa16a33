"""The low rank model of Grosse, Ghahramani & Adams (2015), small: RMSE of log evidence against work.

Rows y_i ~ N(0, V V' + s^2 I), the factors of the rows summed out, V ~ N(0, 1) in each entry: the observations are rows,
independent given V. One data set is simulated; annealing by temperature from the exact V and from the prior gives
the truth where both ends agree to 1 nat. Then each estimator is run many times: annealed importance sampling by
temperature (8 chains) and, row by row, particle filters forward and from the exact draw (K particles x moves).

    python examples/papers/bdmc_low_rank.py --output output

Work is counted in gradients of the density, a row less of data costing as much as all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from bread_figures import arguments, save, write_csv
from numpy.random import SeedSequence, default_rng
from scipy.special import logsumexp

from bread.backends.base import Kernel
from bread.backends.reference import HMCKernel
from bread.backends.reference.model import ReferenceModel
from bread.paths.kinds import PriorPath
from bread.running.block_kernels import block_ends, tuned_targets
from bread.running.particles import Filter, conditional, forward, harmonic

RANK, FEATURES, NOISE = 2, 5, 0.7
PARTICLES, TUNE = 8, 60
HEADER = ("estimator", "setting", "gradients", "rmse", "bias", "truth", "gap", "runs")


@dataclass(frozen=True, eq=False)
class LowRank(ReferenceModel):
    """Rows of a low rank matrix with noise, their own factors summed out; exact evidence is not known."""

    y: Any
    kernel: Any = HMCKernel(6)  # noqa: RUF009  (a frozen value)
    per_observation: ClassVar[tuple[str, ...]] = ("y",)
    coordinates = tuple(f"V[{i}]" for i in range(FEATURES * RANK))
    parameters: ClassVar = {"V": ("feature", "factor")}
    observed: ClassVar = {"y": ("observation", "feature")}

    @property
    def observed_data(self):
        """The rows."""
        return {"y": np.asarray(self.y)}

    @property
    def coords(self):
        """Numbers of rows and columns."""
        return {"observation": np.arange(len(self.y)), "feature": np.arange(FEATURES)}

    def summarise(self, data):
        """Return the scatter matrix."""
        return {"scatter": np.einsum("rni,rnj->rij", data["y"], data["y"])}

    def log_prior(self, states):
        """Return the sum of standard normal log densities."""
        return -0.5 * (states**2 + np.log(2 * np.pi)).sum(axis=-1)

    def _inverse(self, states):
        v = states.reshape(*states.shape[:-1], FEATURES, RANK)
        covariance = v @ v.swapaxes(-1, -2) + NOISE**2 * np.eye(FEATURES)
        return v, np.linalg.inv(covariance), np.linalg.slogdet(covariance)[1]

    def log_likelihood(self, states, statistics):
        """Return the log density of all rows."""
        _, inverse, log_determinant = self._inverse(states)
        constant = len(self.y) * (FEATURES * np.log(2 * np.pi) + log_determinant)
        return -0.5 * (constant + (inverse * statistics["scatter"]).sum(axis=(-2, -1)))

    def gradient_log_density(self, beta, states, statistics):
        """Return the gradient with respect to V."""
        v, inverse, _ = self._inverse(states)
        middle = inverse @ statistics["scatter"] @ inverse - len(self.y) * inverse
        return beta * (middle @ v).reshape(states.shape) - states

    def draw_state(self, generator, fixed: Mapping[str, Any]):
        """Draw V."""
        return np.ravel(fixed["V"]) if "V" in fixed else generator.standard_normal(FEATURES * RANK)

    def draw_data(self, parameters, generator):
        """Draw factors and noise of the rows."""
        n = len(self.y)
        means = generator.standard_normal((n, RANK)) @ parameters["V"].T
        return {"y": means + NOISE * generator.standard_normal((n, FEATURES))}

    def constrain(self, states):
        """Return V as a matrix."""
        return {"V": states.reshape(-1, FEATURES, RANK)}

    def unconstrain(self, parameters):
        """Return V as a vector."""
        return np.reshape(parameters["V"], (-1, FEATURES * RANK))

    def log_evidence_of_rows(self, statistics):
        """Not known."""
        raise NotImplementedError("not known")

    def draw_posterior_of(self, statistics, n, generator):
        """Not known."""
        raise NotImplementedError("not known")


def tempered_kernel(posterior, seed):
    """Return a kernel adapted at a few temperatures."""
    betas, path = np.array([0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0]), PriorPath()
    first, *seeds = SeedSequence(seed).spawn(1 + len(betas))
    state, previous, found = posterior.draw_base(path, [first])[0], None, []
    for beta, own in zip(betas, seeds, strict=True):
        adapted = posterior.adapt(path, float(beta), state, own, TUNE, previous)
        state, previous = adapted.state, adapted.settings
        found.append(adapted.settings)
    return Kernel(betas, {name: np.array([one[name] for one in found]) for name in found[0]})


def anneal(posterior, kernel, n_steps, exact, runs, seed):
    """Return log evidence of runs of AIS, forward or from an exact draw, and gradients of one."""
    betas, path, n = np.linspace(0.0, 1.0, n_steps + 1) ** 4, PriorPath(), runs * PARTICLES
    seeds = SeedSequence(seed).spawn(2 * n)
    start = posterior.draw_base(path, seeds[n:]) if exact is None else np.tile(exact, (n, 1))
    run = posterior.anneal(
        path, betas, kernel, direction="forward" if exact is None else "reverse", initial=start, seeds=seeds[:n]
    )
    sign = 1.0 if exact is None else -1.0
    weights = sign * run.log_weight.reshape(runs, PARTICLES)
    return sign * (logsumexp(weights, axis=1) - np.log(PARTICLES)), int(run.n_gradients.sum()) // runs


def main():
    options = arguments(__doc__)
    n_rows, runs, longest = (10, 10, 300) if options.quick else (25, 25, 3000)
    rng = default_rng(options.seed)
    exact = rng.standard_normal(FEATURES * RANK)
    blank = LowRank(np.zeros((n_rows, FEATURES)))
    data = blank.draw_data({"V": exact.reshape(FEATURES, RANK)}, rng)
    model = LowRank(data["y"])
    posterior = model.condition(data)
    kernel = tempered_kernel(posterior, 1)

    below, _ = anneal(posterior, kernel, longest, None, 4, 2)
    above, _ = anneal(posterior, kernel, longest, exact, 4, 3)
    truth, gap = (below.mean() + above.mean()) / 2, above.mean() - below.mean()
    print(f"log evidence {truth:.2f} nats, gap of the sandwich {gap:.2f} nats (T = {longest + 1})")
    if gap > 1.0:
        print("The sandwich has not closed to 1 nat: errors below are about its middle.")

    rows = []

    def add(name, setting, values, gradients):
        error = values - truth
        rmse, bias = float(np.sqrt((error**2).mean())), float(error.mean())
        rows.append((name, setting, gradients, rmse, bias, float(truth), float(gap), runs))
        print(f"{name:24s} {setting:14s} {gradients:8d} gradients  RMSE {rmse:7.2f}  bias {bias:7.2f}")

    for i, n_steps in enumerate((10, 30, 100) if options.quick else (10, 30, 100, 300, 1000)):
        add("AIS", f"T={n_steps + 1}", *anneal(posterior, kernel, n_steps, None, runs, 10 + i))
        add("reverse AIS", f"T={n_steps + 1}", *anneal(posterior, kernel, n_steps, exact, runs, 20 + i))
    targets = tuned_targets(model, data, block_ends(n_rows, None), TUNE, SeedSequence(5))
    for particles, moves in ((8, 1), (8, 3)) if options.quick else ((8, 1), (8, 10), (32, 3), (128, 3)):
        how = Filter(particles, moves=moves)
        for name, estimator, given in (
            ("SMC", forward, ()), ("conditional SMC", conditional, (exact,)), ("harmonic (SHME)", harmonic, (exact,)),
        ):  # fmt: skip
            seeds = [SeedSequence(31 + len(name), spawn_key=(particles, moves, run)) for run in range(runs)]
            found = estimator(targets, how, *given, seeds)
            add(name, f"K={particles} x {moves}", found.log_evidence, int(found.n_gradients.mean()))

    write_csv(options.output / "bdmc_low_rank.csv", HEADER, rows)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for name in dict.fromkeys(row[0] for row in rows):
        kept = sorted(row[2:5] for row in rows if row[0] == name)
        work = [row[0] for row in kept]
        left.plot(work, [row[1] for row in kept], "o-", label=name)
        right.plot(work, [row[2] for row in kept], "o-", label=name)
    right.axhspan(-gap / 2, gap / 2, color="0.85", label="sandwich")
    left.set(xscale="log", yscale="log", xlabel="gradients of a run", ylabel="RMSE of log evidence (nats)")
    right.set(xscale="log", xlabel="gradients of a run", ylabel="mean error (nats)")
    right.legend(fontsize="small")
    save(figure, options.output / "bdmc_low_rank.png")


if __name__ == "__main__":
    main()
