"""Models of NumPyro with discrete sites, on the default discrete targets: alone, and beside a continuous variable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpy.random import Generator

from bread.debugging.target import Target

LOG_2PI = float(np.log(2.0 * np.pi))
Model = Callable[[], None]


def centre(first: Any, second: Any) -> Any:
    """Mean of the continuous variable given the first two discrete ones."""
    return 0.8 * first - 0.5 * second


def mixed_targets(targets: Sequence[Target]) -> tuple[Target, ...]:
    """Return each law with one more coordinate, normal given the first two."""
    return tuple(_mixed(target) for target in targets)


def _mixed(target: Target) -> Target:
    k = target.dim

    def log_density(x: Any, xp: Any = np) -> Any:
        own: Callable[..., Any] = target.log_density
        return own(x[..., :k], xp) - 0.5 * (x[..., k] - centre(x[..., 0], x[..., 1])) ** 2 - 0.5 * LOG_2PI

    def simulate(n: int, rng: Generator) -> Any:
        whole = target.simulate(n, rng)
        return np.column_stack([whole, rng.normal(centre(whole[:, 0], whole[:, 1]), 1.0)])

    return replace(
        target, name=f"{target.name} and normal", dim=k + 1, log_density=log_density, simulate=simulate,
        is_discrete=(True,) * k + (False,), lower=(*target.lower, -np.inf), upper=(*target.upper, np.inf),
    )  # fmt: skip


def discrete_model(target: Target) -> tuple[Model, Callable[[Any], dict[str, Any]]]:
    """Return a model with a discrete site for each coordinate, and what makes its sites of a flat state."""
    log_density: Callable[..., Any] = target.log_density

    def model() -> None:
        sites = [
            numpyro.sample(f"d{i}", dist.DiscreteUniform(int(target.lower[i]), int(target.upper[i])))
            for i in range(target.dim)
        ]
        numpyro.factor("law", log_density(jnp.stack(sites) * 1.0, jnp))

    return model, lambda x: {f"d{i}": x[i].astype(int) for i in range(target.dim)}


def mixed_model(target: Target) -> tuple[Model, Callable[[Any], dict[str, Any]]]:
    """Return a model with a discrete site for each coordinate but the last, whose site is continuous."""
    k = target.dim - 1
    log_density: Callable[..., Any] = target.log_density

    def model() -> None:
        sites = [
            numpyro.sample(f"d{i}", dist.DiscreteUniform(int(target.lower[i]), int(target.upper[i]))) for i in range(k)
        ]
        x = numpyro.sample("x", dist.Normal(centre(1.0 * sites[0], 1.0 * sites[1]), 1.0))
        normal = dist.Normal(centre(1.0 * sites[0], 1.0 * sites[1]), 1.0).log_prob(x)
        numpyro.factor("law", log_density(jnp.stack([1.0 * d for d in sites] + [x]), jnp) - normal)

    return model, lambda x: {**{f"d{i}": x[i].astype(int) for i in range(k)}, "x": x[k]}
