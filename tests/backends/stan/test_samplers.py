"""The driver's samplers against Stan's own classes: the same random numbers must give the same chains, bit for bit."""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path as File
from unittest.mock import patch

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng
from scipy import stats

from bread.backends.base import AnnealRun, Kernel
from bread.backends.stan.native import build
from bread.backends.stan.native.kernels import StanKernel
from bread.backends.stan.native.library import StanLibrary
from bread.backends.stan.posterior import StanPosterior
from bread.paths.kinds import Path, PriorPath, ReferencePath
from bread.paths.mixture import diagonal
from tests.support.stan_engine_programs import BETAS, HMC, NUTS, compiled, toolchain

pytestmark = [pytest.mark.stan, pytest.mark.slow]

# More coordinates than a register holds; and a region that the program rejects, of half-width `gap`.
DIM = 38
PROGRAM = """
functions { real bread_temper(real x);
}
data {
  vector[37] y;
  real gap;
}
parameters {
  vector[37] theta;
  real<lower=0> scale;
}
model {
  if (abs(theta[1] - 0.7) < gap) {
    reject("theta[1] is in the gap");
  }
  theta ~ std_normal();
  scale ~ lognormal(0, 0.5);
  target += bread_temper(normal_lpdf(y | theta * scale, 0.7));
}
"""
Y = default_rng(1).normal(size=DIM - 1)
PATHS: dict[str, Path] = {
    "prior": PriorPath(),
    "reference": ReferencePath(diagonal(np.full(DIM, 0.1), np.full(DIM, 0.8))),
}


@functools.cache
def with_stans_classes(program: str = PROGRAM) -> StanLibrary:
    """Compile a program with a driver whose samplers are Stan's own classes."""
    with tempfile.TemporaryDirectory() as folder:
        sources = File(folder) / "cpp"
        shutil.copytree(build.SOURCES, sources)
        text = (sources / "driver.cpp").read_text()
        for own, stans in (("DiagonalNuts", "diag_e_nuts"), ("DiagonalStaticHmc", "diag_e_static_hmc")):
            assert f"Kernel<{own}>" in text
            text = text.replace(f"Kernel<{own}>", f"Kernel<stan::mcmc::{stans}>")
        (sources / "driver.cpp").write_text(text)
        with patch.object(build, "SOURCES", sources):
            return StanLibrary(build.build_library(program, toolchain(), filename="test.stan"))


def run(library: StanLibrary, kernel: StanKernel, path: Path, direction: str, seed: int = 2) -> AnnealRun:
    gap = 0.15 if kernel is NUTS else 0.0
    posterior = StanPosterior(library.instance({"y": Y, "gap": gap}), None, kernel)
    metric = np.exp(default_rng(3).normal(0.0, 0.3, DIM))
    frozen = Kernel(np.array([0.0]), {"step_size": np.array([0.4]), "inverse_metric": metric[None]})
    start = default_rng(4).normal(0.0, 0.6, (20, DIM))
    start[np.abs(start[:, 0] - 0.7) < 0.15, 0] = 0.0
    seeds = SeedSequence(seed).spawn(len(start))
    return posterior.anneal(path, BETAS, frozen, direction=direction, initial=start, seeds=seeds)


def differs(run: AnnealRun, other: AnnealRun) -> list[str]:
    names = ("log_ratio", "state_at_base", "state_at_end", "log_base_density", "n_gradients", "n_divergences")
    return [name for name in names if not np.array_equal(getattr(run, name), getattr(other, name))]


@pytest.mark.parametrize("kernel", [NUTS, HMC], ids=["NUTS", "HMC"])
@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_chains_are_those_of_stans_own_classes(kernel: StanKernel, direction: str, path: Path) -> None:
    own = run(compiled(PROGRAM), kernel, path, direction)
    stans = run(with_stans_classes(), kernel, path, direction)
    assert not differs(own, stans)
    assert own.n_divergences.sum() > 0 and not own.failure.any()  # trees of NUTS end in the rejected region
    assert len(differs(own, run(compiled(PROGRAM), kernel, path, direction, seed=5))) > 3


GAP = """
functions { real bread_temper(real x);
}
parameters {
  real theta;
}
model {
  if (abs(theta - 0.7) < 0.15) {
    reject("theta is in the gap");
  }
  theta ~ std_normal();
}
"""


def law_after_a_transition(library: StanLibrary) -> float:
    """Return the p-value of the law of theta after one transition of static HMC from exact draws."""
    n, rng = 15_000, default_rng(6)
    states = rng.normal(size=(2 * n, 1))
    states = states[np.abs(states[:, 0] - 0.7) >= 0.15][:n]
    posterior = StanPosterior(library.instance({}), None, HMC)
    frozen = Kernel(np.array([0.0]), {"step_size": np.array([0.6]), "inverse_metric": np.ones((1, 1))})
    seeds = SeedSequence(7).spawn(n)
    moved = [
        posterior.evolve(PriorPath(), frozen, 0.0, state, (1,), seed).states[0, 0]
        for state, seed in zip(states, seeds, strict=True)
    ]
    low, high = stats.norm.cdf([0.55, 0.85])
    below = stats.norm.cdf(moved)
    uniform = np.where(below < high, below, below - (high - low)) / (1 - (high - low))
    return float(stats.kstest(uniform, "uniform").pvalue)


@pytest.mark.statistical
def test_static_hmc_is_invariant_where_the_program_rejects_states_midway() -> None:
    assert law_after_a_transition(compiled(GAP)) > 1e-3
    # Negative control: Stan's own class is not.
    assert law_after_a_transition(with_stans_classes(GAP)) < 1e-4
