"""The testbed of Grosse, Ghahramani & Adams (2015): RMSE of log evidence against work, on three latent variable models.

One data set is simulated, so that an exact posterior draw is known. Long chains annealed by temperature, from the prior
and in reverse from that draw, give the truth to their distance. Then each estimator is run several times: likelihood
weighting, the harmonic mean, annealed importance sampling (AIS), reverse AIS, Bennett's acceptance ratio of one pair,
the thermodynamic integral, and over rows SMC, conditional SMC from the exact draw, and the sequential harmonic mean.
In clustering and in binary attributes rows are also added with centres or features integrated out (``collapsed``), as
the paper does. Binary attributes are run as labels of a block Gibbs sampler and as discrete latents of a PyMC model.

    python examples/papers/bdmc_testbed.py --model clustering --output output

Work is counted in sweeps of the kernel and in CPU seconds. ``--small`` takes 25 rows, ``--quick`` so few that the log
evidence is summed exactly.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from bdmc_cases import KINDS, Case, case, in_pymc
from bdmc_collapsed import collapsed_targets
from bread_figures import arguments, save, write_csv
from numpy.random import SeedSequence

from bread.backends.base import FloatArray, Kernel
from bread.lab.particles import Filter, Targets, block_ends, conditional, forward, harmonic, tuned_targets
from bread.paths.kinds import PriorPath
from bread.paths.schedules import sigmoid
from bread.statistics.evidence import evidence

PATH = PriorPath()
KNOTS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
AT_ONCE = 20_000  # states that are kept at a time
HEADER = (
    "model", "estimator", "setting", "sweeps", "cpu_seconds", "rmse", "bias", "combined_error", "truth", "gap",
    "exact", "runs",
)  # fmt: skip
COLLAPSED = ", collapsed"
BELOW, ABOVE = ("likelihood weighting", "AIS", "SMC"), ("harmonic mean", "reverse AIS", "conditional SMC", "SHME")


@dataclass(frozen=True)
class Plan:
    """How large the data are, and how long each estimator runs."""

    shape: tuple[int, int, int]  # rows, columns, components
    runs: int
    truth: tuple[int, int]  # inverse temperatures, chains each way
    temperatures: tuple[int, ...]
    filters: tuple[tuple[int, int], ...]  # particles, moves
    proposals: tuple[int, ...]
    in_pymc: tuple[int, ...] = ()  # inverse temperatures of the PyMC model


FILTERS = ((1, 1), (1, 10), (1, 100), (8, 10), (32, 3), (128, 3))
PLANS = {
    "clustering": Plan((50, 25, 10), 25, (10_001, 8), (11, 101, 1001, 3001), FILTERS, (10, 1000, 10_000)),
    "low_rank": Plan((50, 25, 5), 25, (30_001, 8), (11, 101, 1001, 10_001), FILTERS, (10, 1000, 10_000)),
    "binary": Plan((50, 25, 10), 6, (60_001, 2), (11, 101, 1001), (*FILTERS[:2], (32, 1)), (10, 300), (101, 1001)),
}
FEW = ((1, 1), (8, 1), (8, 10))
SMALL = {
    "clustering": Plan((25, 5, 3), 25, (3001, 8), (11, 101, 1001), FEW, (10, 1000)),
    "low_rank": Plan((25, 5, 2), 25, (3001, 8), (11, 101, 1001), FEW, (10, 1000)),
    "binary": Plan((25, 5, 3), 10, (3001, 8), (11, 101, 1001), FEW, (10, 1000), (11, 101)),
}
QUICK = {
    "clustering": Plan((8, 3, 2), 25, (301, 8), (11, 101), ((1, 1), (32, 1)), (10, 100)),
    "low_rank": Plan((10, 2, 1), 25, (301, 8), (11, 101), ((1, 1), (32, 1)), (10, 100)),
    "binary": Plan((5, 3, 2), 25, (301, 8), (11, 101), ((1, 1), (32, 1)), (10, 100), (11, 101)),
}


@dataclass
class Bench:
    """A case with its kernels, and the rows of the table."""

    name: str
    case: Case
    runs: int
    tune: int
    truth: float = np.nan
    gap: float = np.nan
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    suffix: str = ""

    def __post_init__(self) -> None:
        self.posterior = self.case.by_temperature.condition(self.case.data)
        self.kernel = self._adapted(SeedSequence(1))

    def _adapted(self, seed: SeedSequence) -> Kernel:
        """Return a kernel adapted at a few inverse temperatures, by a chain that does not know the exact draw."""
        first, *seeds = seed.spawn(1 + len(KNOTS))
        state, previous, found = self.posterior.draw_base(PATH, [first])[0], None, []
        for beta, own in zip(KNOTS, seeds, strict=True):
            adapted = self.posterior.adapt(PATH, beta, state, own, self.tune, previous)
            state, previous = adapted.state, adapted.settings or None
            found.append(adapted.settings)
        return Kernel(np.array(KNOTS), {name: np.array([one[name] for one in found]) for name in found[0]})

    def anneal(self, n_temperatures: int, n: int, seed: int, *, is_reverse: bool) -> tuple[FloatArray, FloatArray]:
        """Return log weights and thermodynamic integrals of chains, forward or from the exact draw."""
        betas, found, integrals = sigmoid(n_temperatures), [], []
        at_once = max(1, AT_ONCE // n_temperatures)
        for first in range(0, n, at_once):
            few = min(at_once, n - first)
            starts, *seeds = SeedSequence(seed, spawn_key=(first,)).spawn(1 + few)
            exact = np.tile(self.case.joint, (few, 1))
            run = self.posterior.anneal(
                PATH, betas, self.kernel, direction="reverse" if is_reverse else "forward",
                initial=exact if is_reverse else self.posterior.draw_base(PATH, starts.spawn(few)), seeds=seeds,
            )  # fmt: skip
            found.append(run.log_weight)
            integrals += [evidence.thermodynamic_integral(betas, one[None]).value for one in run.log_ratio]
        return np.concatenate(found), np.array(integrals)

    def find_truth(self, n_temperatures: int, n: int) -> None:
        """Sandwich the log evidence."""
        began = time.process_time()
        up, down = (self.anneal(n_temperatures, n, 2 + i, is_reverse=bool(i))[0] for i in range(2))
        self.truth = evidence.bennett(up, down).value
        self.gap = evidence.harmonic_weight(down).value - evidence.average_weight(up).value
        seconds = (time.process_time() - began) / (2 * n)
        print(f"{self.name}: log evidence {self.truth:.2f} nats, gap {self.gap:.2f}, {seconds:.1f} CPU seconds a chain")
        print(f"  of single chains, B = {down.mean() - up.mean():.2f}; exact {self.case.exact}", flush=True)
        if self.gap > 1.0:
            print("The sandwich has not closed to 1 nat: errors below are about a value inside of it.")

    def add(self, estimator: str, setting: str, values: FloatArray, sweeps: int, seconds: float) -> None:
        """Add a row: errors of single runs, and of all runs combined."""
        error, combined = values - self.truth, np.nan
        if estimator.removesuffix(COLLAPSED) in BELOW:
            combined = evidence.average_weight(values).value - self.truth
        elif estimator.removesuffix(COLLAPSED) in ABOVE:
            combined = evidence.harmonic_weight(values).value - self.truth
        rmse, bias, each = float(np.sqrt((error**2).mean())), float(error.mean()), seconds / len(values)
        exact = np.nan if self.case.exact is None else self.case.exact
        estimator += self.suffix
        row = (self.name, estimator, setting, sweeps, each, rmse, bias, float(combined), self.truth, self.gap)
        self.rows.append((*row, exact, len(values)))
        print(
            f"{estimator:30s} {setting:12s} {sweeps:8d} sweeps {each:8.3f} s  RMSE {rmse:8.2f}  bias {bias:8.2f}  "
            f"combined {combined:8.2f}"
        )

    def run_temperatures(self, temperatures: tuple[int, ...]) -> None:
        """Run AIS both ways, and what both give together."""
        for i, n in enumerate(temperatures):
            found, seconds = [], []
            for is_reverse in (False, True):
                began = time.process_time()
                found.append(self.anneal(n, self.runs, 100 + 2 * i + is_reverse, is_reverse=is_reverse))
                seconds.append(time.process_time() - began)
            (up, integral), (down, _) = found
            pairs = np.array([evidence.bennett([a], [b]).value for a, b in zip(up, down, strict=True)])
            self.add("AIS", f"T={n}", up, n - 1, seconds[0])
            self.add("reverse AIS", f"T={n}", down, n - 1, seconds[1])
            self.add("BAR of a pair", f"T={n}", pairs, 2 * (n - 1), sum(seconds))
            self.add("thermodynamic integral", f"T={n}", integral, n - 1, seconds[0])

    def run_naive(self, proposals: tuple[int, ...]) -> None:
        """Weigh prior draws by the likelihood, and draws of a chain from the exact one by its inverse."""
        posterior = self.case.by_rows.condition(self.case.data)
        kernel = self.kernel if self.case.by_rows is self.case.by_temperature else Kernel(np.array([1.0]), {})
        for n in proposals:
            began, found = time.process_time(), []
            for run in range(self.runs):
                draws = posterior.draw_base(PATH, SeedSequence(200, spawn_key=(run,)).spawn(n))
                found.append(evidence.average_weight(posterior.log_ratio(PATH, draws)).value)
            self.add("likelihood weighting", f"n={n}", np.array(found), n, time.process_time() - began)
            began, found = time.process_time(), []
            for run in range(self.runs):
                seed = SeedSequence(300, spawn_key=(run,))
                chain = posterior.evolve(PATH, kernel, 1.0, self.case.alone, range(1, n + 1), seed)
                found.append(evidence.harmonic_weight(posterior.log_ratio(PATH, chain.states)).value)
            self.add("harmonic mean", f"n={n}", np.array(found), n, time.process_time() - began)

    def run_rows(self, targets: Targets, filters: tuple[tuple[int, int], ...], name: str = "") -> None:
        """Run particle filters over rows, both ways."""
        n_rows = len(targets.posteriors)
        exact = self.case.joint[-n_rows:] if name else self.case.alone
        for particles, moves in filters:
            sweeps, how = particles * moves * (n_rows - 1), Filter(particles, moves=moves)
            runs: tuple[tuple[str, Any, tuple[Any, ...], int], ...] = (
                ("SMC", forward, (), 0),
                ("conditional SMC", conditional, (exact,), moves * n_rows),
                ("SHME", harmonic, (exact,), particles * moves),
            )
            for estimator, run, given, extra in runs:
                key = 31 + len(estimator)
                seeds = [SeedSequence(key, spawn_key=(particles, moves, i)) for i in range(self.runs)]
                began = time.process_time()
                found = run(targets, how, *given, seeds).log_evidence
                seconds = time.process_time() - began
                self.add(estimator + name, f"K={particles} x {moves}", found, sweeps + extra, seconds)

    def targets(self) -> Targets:
        """Return the posteriors given the first rows, latents summed out where the case can."""
        n_rows = len(next(iter(self.case.data.values())))
        return tuned_targets(self.case.by_rows, self.case.data, block_ends(n_rows, None), self.tune, SeedSequence(5))


def draw(rows: list[tuple[Any, ...]], gap: float) -> Any:
    """Return RMSE and bias against work; filters, which have two knobs, without lines."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
    for i, name in enumerate(dict.fromkeys(row[1] for row in rows)):
        work, rmse, bias = np.array(sorted(row[4:7] for row in rows if row[1] == name)).T
        line = "" if "SMC" in name or "SHME" in name else "-"
        left.plot(work, rmse, f"{'os^vDPX*<>'[i % 10]}{line}", color=f"C{i % 9}", label=name)
        right.plot(work, bias, f"{'os^vDPX*<>'[i % 10]}{line}", color=f"C{i % 9}")
    right.axhspan(-gap / 2, gap / 2, color="0.85")
    left.axhline(10.0, color="0.5", linewidth=0.8, linestyle="--")
    left.set(xscale="log", yscale="log", xlabel="CPU seconds of a run", ylabel="RMSE of log evidence (nats)")
    right.set(xscale="log", xlabel="CPU seconds of a run", ylabel="mean error (nats)")
    right.set_yscale("symlog", linthresh=10.0)
    figure.legend(fontsize="small", loc="outside right center")
    return figure


def main() -> None:
    """Run a model's estimators, and write table and figure."""
    options = arguments(
        __doc__,
        ("--model", {"choices": tuple(KINDS), "default": "clustering", "help": "which model"}),
        ("--small", {"action": "store_true", "help": "25 rows of 5 columns"}),
    )
    plans = QUICK if options.quick else SMALL if options.small else PLANS
    plan = plans[options.model]
    data = case(options.model, *plan.shape, options.seed, is_small=options.quick)
    bench = Bench(options.model, data, plan.runs, 2)
    bench.find_truth(*plan.truth)
    bench.run_naive(plan.proposals)
    bench.run_temperatures(plan.temperatures)
    bench.run_rows(bench.targets(), plan.filters)
    if options.model != "low_rank":
        few = [one for one in plan.filters if max(one) <= 10]
        bench.run_rows(collapsed_targets(data.by_temperature), few, COLLAPSED)
    if plan.in_pymc:
        other = Bench(options.model, in_pymc(data), plan.runs, 50, bench.truth, bench.gap, bench.rows, ", PyMC")
        other.run_naive(plan.proposals[:1])
        other.run_temperatures(plan.in_pymc)
        other.run_rows(other.targets(), ((8, 1),))
    write_csv(options.output / f"bdmc_{options.model}.csv", HEADER, bench.rows)
    save(draw(bench.rows, bench.gap), options.output / f"bdmc_{options.model}.png")


if __name__ == "__main__":
    main()
