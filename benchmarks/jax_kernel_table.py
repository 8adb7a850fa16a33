"""Kernels of BlackJAX and NumPyro as `jax_samplers.py` runs them, each with the targets that it fits.

Kernels run as after warm-up, at fixed settings. Left out: those that are not exact by design (unadjusted Langevin and
microcanonical dynamics, stochastic gradients, marginals by Laplace's method), those whose states are particles
(sequential Monte Carlo, nested sampling, NumPyro's SA) or orbits, and HMCECS, which needs subsampled data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import blackjax
import jax.numpy as jnp
import numpy as np
from blackjax.mcmc.integrators import mclachlan
from blackjax.mcmc.slice import direction_proposal, fixed_order, stepping_out
from jax_builders import (
    CONTINUOUS,
    ENSEMBLES,
    N_WALKERS,
    Build,
    density_of,
    ensemble,
    fixed,
    independent,
    metric,
    moments_of,
    normal_walk,
    numpyro_hmc,
    on_model,
    plain,
    random_walk,
    rosenbluth,
    shaped,
    spread_of,
    whole_independent,
    whole_walk,
    with_prior,
)
from jax_mixed_targets import discrete_model, mixed_model, mixed_targets
from numpyro import infer

from bread.debugging.target import Target
from bread.debugging.targets import copies, default_targets
from bread.testing.blackjax_kernels import BlackJAXKernel

DISCRETE = default_targets("discrete")
FINITE = tuple(target for target in DISCRETE if np.isfinite(target.upper).all())
WALKERS = tuple(copies(target, N_WALKERS) for target in ENSEMBLES.values())
MIXED = mixed_targets(FINITE)
LOG_GAMMA, CORRELATED, _, CURVED, FUNNEL, *_ = CONTINUOUS
SOME = (CORRELATED, CURVED, FUNNEL, CONTINUOUS[7])  # for options of kernels that are run on all; the last has walls
SOME_WALKERS = tuple(copies(target, N_WALKERS) for target in SOME)


class Row(NamedTuple):
    """A kernel and its targets."""

    build: Build
    targets: Sequence[Target]


TABLE: dict[str, Row] = {
    "blackjax.nuts": Row(metric(blackjax.nuts, step_size=0.5), CONTINUOUS),
    "blackjax.nuts, dense metric": Row(metric(blackjax.nuts, dense=True, step_size=0.5), SOME),
    "blackjax.nuts, depth 2": Row(metric(blackjax.nuts, step_size=0.5, max_num_doublings=2), SOME),
    "blackjax.nuts, mclachlan": Row(metric(blackjax.nuts, step_size=0.7, integrator=mclachlan), SOME),
    "blackjax.nuts, a scalar and a vector": Row(shaped({"a": np.zeros(()), "b": np.zeros(2)}), (LOG_GAMMA,)),
    "blackjax.nuts, a matrix": Row(shaped({"m": np.zeros((2, 2))}), (CURVED,)),
    "blackjax.hmc": Row(metric(blackjax.hmc, step_size=0.5, num_integration_steps=4), CONTINUOUS),
    "blackjax.hmc, dense metric": Row(metric(blackjax.hmc, dense=True, step_size=0.5, num_integration_steps=4), SOME),
    "blackjax.multinomial_hmc": Row(
        metric(blackjax.multinomial_hmc, step_size=0.5, num_integration_steps=4), CONTINUOUS
    ),
    "blackjax.dynamic_hmc": Row(metric(blackjax.dynamic_hmc, step_size=0.5), CONTINUOUS),
    "blackjax.dmhmc": Row(metric(blackjax.dmhmc, step_size=0.5), CONTINUOUS),
    "blackjax.rmhmc": Row(
        lambda target: BlackJAXKernel(blackjax.rmhmc(density_of(target), 0.3, jnp.diag(1.0 / spread_of(target)), 3)),
        CONTINUOUS[:7],
    ),
    "blackjax.gist_step_size": Row(metric(blackjax.gist_step_size, initial_step_size=1.0), CONTINUOUS),
    "blackjax.gist_step_size, asymmetric": Row(
        metric(blackjax.gist_step_size, initial_step_size=1.0, criterion="asymmetric"), SOME
    ),
    "blackjax.gist_trajectory_length": Row(
        metric(blackjax.gist_trajectory_length, step_size=0.4), (LOG_GAMMA, CORRELATED)
    ),
    "blackjax.ghmc": Row(plain(blackjax.ghmc, 0.4, momentum_inverse_scale=1.0, alpha=0.8, delta=0.3), CONTINUOUS),
    "blackjax.adjusted_mclmc": Row(plain(blackjax.adjusted_mclmc, 0.6, num_integration_steps=4), CONTINUOUS),
    "blackjax.adjusted_mclmc_dynamic": Row(plain(blackjax.adjusted_mclmc_dynamic, 0.6), CONTINUOUS),
    "blackjax.adjusted_mclmc, refreshed": Row(
        plain(blackjax.adjusted_mclmc, 0.6, num_integration_steps=4, L_proposal_factor=1.5), SOME
    ),
    "blackjax.mala": Row(
        lambda target: BlackJAXKernel(blackjax.mala(density_of(target), 0.3 * spread_of(target).min())), CONTINUOUS
    ),
    "blackjax.barker": Row(plain(blackjax.barker, 1.0), CONTINUOUS),
    "blackjax.barker, metric": Row(metric(blackjax.barker, step_size=0.8), SOME),
    "blackjax.additive_step_random_walk": Row(random_walk, SOME),
    "blackjax.normal_random_walk": Row(normal_walk, CONTINUOUS),
    "blackjax.rmh": Row(rosenbluth, CONTINUOUS),
    "blackjax.irmh": Row(independent, CONTINUOUS),
    "blackjax.slice_sampling": Row(plain(blackjax.slice_sampling, width=1.0), CONTINUOUS),
    "blackjax.slice_sampling, stepping out": Row(
        plain(blackjax.slice_sampling, width=0.3, interval=stepping_out, max_expansions=4), SOME
    ),
    "blackjax.slice_sampling, scaled directions": Row(
        lambda target: BlackJAXKernel(
            blackjax.slice_sampling(
                density_of(target), proposal_generator=direction_proposal(np.linalg.cholesky(moments_of(target)[1]))
            )
        ),
        SOME,
    ),
    "blackjax.coordinate_slice": Row(plain(blackjax.coordinate_slice), CONTINUOUS),
    "blackjax.coordinate_slice, fixed order": Row(
        plain(blackjax.coordinate_slice, coordinate_order=fixed_order, interval=stepping_out), SOME
    ),
    "blackjax.elliptical_slice": Row(with_prior(blackjax.elliptical_slice, "cov"), CONTINUOUS),
    "blackjax.mgrad_gaussian": Row(with_prior(blackjax.mgrad_gaussian, "covariance", step_size=0.5), CONTINUOUS),
    "blackjax.rmh, steps of one": Row(whole_walk, DISCRETE),
    "blackjax.irmh, uniform": Row(whole_independent, FINITE),
    "numpyro.NUTS": Row(numpyro_hmc(infer.NUTS), CONTINUOUS),
    "numpyro.NUTS, dense metric": Row(numpyro_hmc(infer.NUTS, dense=True), SOME),
    "numpyro.NUTS, depth 2": Row(numpyro_hmc(infer.NUTS, max_tree_depth=2), SOME),
    "numpyro.HMC": Row(numpyro_hmc(infer.HMC, trajectory_length=2.0), CONTINUOUS),
    "numpyro.HMC, num_steps": Row(numpyro_hmc(infer.HMC, dense=True, trajectory_length=None, num_steps=3), SOME),
    "numpyro.BarkerMH": Row(numpyro_hmc(infer.BarkerMH), CONTINUOUS),
    "numpyro.AIES, differences": Row(ensemble(infer.AIES, moves={infer.AIES.DEMove(): 1.0}), WALKERS),
    "numpyro.AIES, stretch": Row(ensemble(infer.AIES, moves={infer.AIES.StretchMove(): 1.0}), WALKERS),
    "numpyro.AIES, randomize_split": Row(ensemble(infer.AIES, randomize_split=True), SOME_WALKERS),
    "numpyro.ESS": Row(ensemble(infer.ESS), WALKERS),
    "numpyro.ESS, tune_mu=False": Row(ensemble(infer.ESS, tune_mu=False), SOME_WALKERS),
    "numpyro.ESS, Gaussian": Row(
        ensemble(infer.ESS, tune_mu=False, moves={infer.ESS.GaussianMove(): 1.0}), SOME_WALKERS
    ),
    "numpyro.ESS, KDE": Row(ensemble(infer.ESS, tune_mu=False, moves={infer.ESS.KDEMove(): 1.0}), SOME_WALKERS),
    "numpyro.ESS, random": Row(ensemble(infer.ESS, tune_mu=False, moves={infer.ESS.RandomMove(): 1.0}), SOME_WALKERS),
    "numpyro.DiscreteHMCGibbs": Row(
        on_model(lambda model: infer.DiscreteHMCGibbs(fixed(infer.NUTS, model)), mixed_model), MIXED
    ),
    "numpyro.DiscreteHMCGibbs, modified": Row(
        on_model(lambda model: infer.DiscreteHMCGibbs(fixed(infer.HMC, model), modified=True), mixed_model), MIXED
    ),
    "numpyro.DiscreteHMCGibbs, random_walk": Row(
        on_model(lambda model: infer.DiscreteHMCGibbs(fixed(infer.HMC, model), random_walk=True), mixed_model), MIXED
    ),
    "numpyro.DiscreteHMCGibbs, both": Row(
        on_model(
            lambda model: infer.DiscreteHMCGibbs(fixed(infer.HMC, model), random_walk=True, modified=True), mixed_model
        ),
        MIXED,
    ),
    "numpyro.DiscreteGibbs": Row(on_model(infer.DiscreteGibbs, discrete_model), FINITE),
    "numpyro.DiscreteGibbs, modified": Row(
        on_model(lambda model: infer.DiscreteGibbs(model, modified=True), discrete_model), FINITE
    ),
    "numpyro.MixedHMC": Row(
        on_model(lambda model: infer.MixedHMC(fixed(infer.HMC, model, trajectory_length=1.5)), mixed_model), MIXED
    ),
    "numpyro.MixedHMC, modified": Row(
        on_model(
            lambda model: infer.MixedHMC(fixed(infer.HMC, model, trajectory_length=1.5), modified=True), mixed_model
        ),
        MIXED,
    ),
    "numpyro.MixedHMC, random_walk": Row(
        on_model(
            lambda model: infer.MixedHMC(fixed(infer.HMC, model, trajectory_length=1.5), random_walk=True), mixed_model
        ),
        MIXED,
    ),
}
