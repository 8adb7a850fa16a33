"""Kernels of BlackJAX and NumPyro before `bread.debug`, on every target that fits.

    python benchmarks/jax_samplers.py [--budget 0.05] [--seed 1] [--only blackjax] [--target log-gamma]

Needs `pip install "bread-mcmc[jax]"`. Target by target, each row one kernel: a line of Markdown with the verdict, the
smallest p-value after correction, the test that gave it, whether it is reversible, and seconds. Kernels run as after
warm-up, at fixed settings. Those that are not exact by design (unadjusted Langevin dynamics) are left out, and so are
NumPyro's kernels that need a model, and its ensembles.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import infer

from bread.debugging.bare import BareSubject
from bread.debugging.battery import BUDGET, run_battery
from bread.debugging.target import Target
from bread.debugging.targets import default_targets
from bread.testing.blackjax_kernels import BlackJAXKernel
from bread.testing.numpyro_kernels import NumPyroKernel

Build = Callable[[Target], Any]


def density_of(target: Target) -> Callable[[Any], Any]:
    """Return the log density as a function of JAX arrays: those of the default targets take the module to use."""
    log_density: Callable[..., Any] = target.log_density
    return lambda x: log_density(x, jnp)


def spread_of(target: Target) -> Any:
    """Return the squared half width of the middle two thirds of each coordinate."""
    low, high = np.quantile(target.simulate(4000, np.random.default_rng(3)), [1.0 / 6.0, 5.0 / 6.0], axis=0)
    return np.maximum(0.5 * (high - low), 0.05) ** 2


def hmc_like(algorithm: Any, **options: Any) -> Build:
    """Return a builder of a kernel with a diagonal metric."""
    return lambda target: BlackJAXKernel(
        algorithm(density_of(target), inverse_mass_matrix=spread_of(target), **options)
    )


def random_walk(target: Target) -> Any:
    width = np.sqrt(spread_of(target))
    return BlackJAXKernel(
        blackjax.additive_step_random_walk(
            density_of(target), lambda key, position: width * jax.random.normal(key, position.shape)
        )
    )


def rosenbluth(target: Target) -> Any:
    width = np.sqrt(spread_of(target))
    return BlackJAXKernel(
        blackjax.rmh(
            density_of(target), lambda key, position: position + width * jax.random.normal(key, position.shape)
        )
    )


def independent(target: Target) -> Any:
    width, centre = 2.0 * np.sqrt(spread_of(target)), np.median(target.simulate(4000, np.random.default_rng(4)), axis=0)

    def draw(key: Any) -> Any:
        return centre + width * jax.random.t(key, 4.0, centre.shape)

    def log_proposal(new: Any, old: Any) -> Any:
        return jax.scipy.stats.t.logpdf((old.position - centre) / width, 4.0).sum()

    return BlackJAXKernel(blackjax.irmh(density_of(target), draw, log_proposal))


def langevin(algorithm: Any, step_size: float) -> Build:
    return lambda target: BlackJAXKernel(algorithm(density_of(target), step_size * float(spread_of(target).min())))


def numpyro_hmc(kind: Any, **options: Any) -> Build:
    def build(target: Target) -> Any:
        density = density_of(target)
        return NumPyroKernel(
            kind(
                potential_fn=lambda x: -density(x),
                step_size=0.5 * float(np.sqrt(spread_of(target).min())),
                adapt_step_size=False,
                adapt_mass_matrix=False,
                **options,
            )
        )

    return build


KERNELS: dict[str, Build] = {
    "blackjax.nuts": hmc_like(blackjax.nuts, step_size=0.5),
    "blackjax.nuts, depth 2": hmc_like(blackjax.nuts, step_size=0.5, max_num_doublings=2),
    "blackjax.hmc": hmc_like(blackjax.hmc, step_size=0.5, num_integration_steps=4),
    "blackjax.dynamic_hmc": hmc_like(blackjax.dynamic_hmc, step_size=0.5),
    "blackjax.mala": langevin(blackjax.mala, 0.3),
    "blackjax.barker_proposal": langevin(blackjax.barker_proposal, 0.5),
    "blackjax.additive_step_random_walk": random_walk,
    "blackjax.rmh": rosenbluth,
    "blackjax.irmh": independent,
    "numpyro.NUTS": numpyro_hmc(infer.NUTS),
    "numpyro.NUTS, depth 2": numpyro_hmc(infer.NUTS, max_tree_depth=2),
    "numpyro.HMC": numpyro_hmc(infer.HMC, trajectory_length=1.5),
    "numpyro.BarkerMH": numpyro_hmc(infer.BarkerMH),
}


def row(name: str, build: Callable[[], Any], target: Target, budget: float, seed: int) -> str:
    """Return the line of one kernel on one target."""
    began = time.perf_counter()
    try:
        result = run_battery([BareSubject(target, build(), build=build)], budget=int(budget * BUDGET), seed=seed)
    except Exception as error:
        text = f"{type(error).__name__}: {str(error).splitlines()[0][:100]} | | | "
    else:
        least = min(result.tests, key=lambda test: np.nan_to_num(test.p_value, nan=2.0))
        said = "bug" if result.alarm else "no bug found"
        turned = "" if result.is_reversible else "not reversible"
        text = f"{said} | {result.p_value:.2g} | {least.name} | {turned}"
    return f"| {name} | {target.name} | {text} | {time.perf_counter() - began:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="kernels whose name begins so")
    parser.add_argument("--target", default="", help="targets whose name begins so")
    wanted = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"BlackJAX {blackjax.__version__}, NumPyro {numpyro.__version__}, JAX {jax.__version__}\n", flush=True)
    print("| kernel | target | verdict | smallest p | its test | | s |\n|---|---|---|---|---|---|---|", flush=True)
    for target in default_targets("continuous"):
        if not target.name.startswith(wanted.target):
            continue
        for name, build in KERNELS.items():
            if name.startswith(wanted.only):
                print(row(name, partial(build, target), target, wanted.budget, wanted.seed), flush=True)


if __name__ == "__main__":
    main()
