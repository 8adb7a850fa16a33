"""What is read of a model before it is opened: its sites, its data, what depends on what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from bread.backends.numpyro.precision import key_of
from bread.backends.numpyro.program import Program, log_density
from bread.backends.numpyro.refusals import (
    refuse_changes,
    refuse_data,
    refuse_fixed,
    refuse_site,
    refuse_without,
)
from bread.backends.support.hyperparameters import Parents
from bread.errors import UnsupportedModelError

RUNS = 5  # prior draws at which a model is looked at
_ROUND_TRIP = 1e-6


def to_double(value: Any) -> Any:
    """Return an argument of the model with floats in double precision; what holds no numbers as it is.

    Arrays stay NumPy's or JAX's own, which tell apart what they can be indexed by. To be called in
    `precision.double_precision`.

    Raises
    ------
    UnsupportedModelError
        Elements of it are masked.
    """
    if np.ma.is_masked(value):
        raise UnsupportedModelError(
            f"An argument of the model has {np.sum(value.mask)} masked values, and JAX drops the mask. Leave missing "
            "data out, or declare them as a latent site of their own."
        )
    if not isinstance(value, (np.ndarray, jax.Array)) or jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):
        return value
    array = np.array(value)
    array = array.astype(np.float64) if array.dtype.kind == "f" else array
    return jnp.asarray(array) if isinstance(value, jax.Array) else array


def read(program: Program, *, draws_prior: bool = True) -> tuple[dict[str, NDArray[Any]], Parents]:
    """Return the real data, and what each free variable depends on; refuse what is not exact.

    Not ``draws_prior``: the density of the prior is enough, which may be improper and have factors.

    To be called in `precision.double_precision`.

    Raises
    ------
    UnsupportedModelError
        The model cannot be simulated or annealed exactly.
    """
    watch = partial(refuse_site, draws_prior=draws_prior)
    runs = [program.run(_key(number), {}, watch=watch) for number in range(RUNS)]
    refuse_changes(runs)
    refuse_without(runs[0])
    refuse_fixed(runs)
    data = refuse_data(runs)
    draws = [{name: sites[name]["value"] for name in (*program.latents, *program.observed)} for sites in runs]
    _refuse_coordinates(program, draws)
    _refuse_other_randomness(program, draws[0])
    _refuse_unrelated(program, draws)
    _refuse_latents_of_data(program, draws)
    _refuse_data_used_twice(program, draws[0], data)
    return data, _parents(program, draws)


def _key(number: int) -> Any:
    return key_of(np.array([1, number], dtype=np.uint32))


def _log_densities(program: Program, values: Any, number: int = 0, arguments: Any = None) -> dict[str, float]:
    sites = program.run(_key(number), values, arguments)
    return {name: float(log_density(site)) for name, site in sites.items() if site["type"] == "sample"}


def _refuse_coordinates(program: Program, draws: Sequence[dict[str, Any]]) -> None:
    for draw in draws:
        for name in program.latents:
            if np.asarray(draw[name]).dtype != np.float64:
                raise UnsupportedModelError(
                    f"The site {name!r} is drawn as {np.asarray(draw[name]).dtype}; models are computed in double "
                    "precision. Pass arrays as arguments of the model, and name no single-precision type in it."
                )
        state = np.asarray(program.unconstrain(draw))
        back = program.constrain(state)
        for name in program.latents:
            value = np.asarray(draw[name])
            if not np.allclose(back[name], value, rtol=_ROUND_TRIP, atol=_ROUND_TRIP * np.abs(value).max(initial=0.0)):
                raise UnsupportedModelError(
                    f"The site {name!r} does not come back from its unconstrained coordinates (a prior draw on or "
                    f"beside "
                    "the border of its support, or an angle). Use a distribution whose draws stay inside."
                )
    for name, site in program.run(_key(0), draws[0]).items():
        if site["type"] == "sample" and log_density(site).dtype != np.float64:
            raise UnsupportedModelError(
                f"The log density of the site {name!r} has type {log_density(site).dtype}; models are computed in "
                "double precision. Pass arrays as arguments of the model, and name no single-precision type in it."
            )


def _refuse_other_randomness(program: Program, draw: dict[str, Any]) -> None:
    if _log_densities(program, draw, 1) != _log_densities(program, draw, 2):
        raise UnsupportedModelError(
            "The density differs between two runs at the same values of all sites: the model draws random numbers "
            "outside of its sites. Draw them by numpyro.sample."
        )


def _refuse_unrelated(program: Program, draws: Sequence[dict[str, Any]]) -> None:
    first = {name: draws[0][name] for name in program.observed}
    found = [_log_densities(program, {**draw, **first}) for draw in draws]
    for name in program.observed:
        if all(one[name] == found[0][name] for one in found):
            raise UnsupportedModelError(
                f"The observed site {name!r} depends on no latent site: its data say nothing of the parameters. "
                f"Leave the "
                "site out, or write what it depends on (a site that is given belongs into the arguments)."
            )


def _refuse_latents_of_data(program: Program, draws: Sequence[dict[str, Any]]) -> None:
    """Refuse a prior that depends on the data: it is drawn from beside simulated data, whatever the data are."""
    usual = _log_densities(program, draws[0])
    for name in program.observed:
        for draw in draws[1:]:
            found = _log_densities(program, {**draws[0], name: draw[name]})
            for factor in program.factors:
                if found[factor] != usual[factor]:
                    raise UnsupportedModelError(
                        f"numpyro.factor {factor!r} depends on the observed site {name!r}: it is a part of the "
                        "likelihood, which simulated data do not follow. Write it as a distribution of an observed "
                        "site."
                    )
            for latent in program.latents:
                if found[latent] != usual[latent]:
                    raise UnsupportedModelError(
                        f"The latent site {latent!r} depends on the observed site {name!r}, so that its prior changes "
                        f"with the data. Draw {latent!r} before {name!r}, and let {name!r} depend on it."
                    )


def _refuse_data_used_twice(program: Program, draw: dict[str, Any], data: dict[str, NDArray[Any]]) -> None:
    """Refuse data that are also a covariate, or in a prior: simulated data would not take their place there."""
    arguments = (program.args, program.kwargs)
    leaves, tree = jax.tree.flatten(arguments)
    usual = _log_densities(program, draw)
    for place, leaf in enumerate(leaves):
        for altered in _altered(leaf):
            other = jax.tree.unflatten(tree, [*leaves[:place], altered, *leaves[place + 1 :]])
            try:
                sites = program.run(_key(0), draw, other)
                changed = [
                    name for name in program.observed if not np.array_equal(sites[name]["infer"].get("obs"), data[name])
                ]
                own = {name: float(log_density(sites[name])) for name in usual}
            except Exception:  # other values of this argument are no data of the model
                continue
            where = [name for name in usual if own[name] != usual[name]]
            if changed and where:
                raise UnsupportedModelError(
                    f"An argument of the model holds the data of {changed[0]!r} and also changes the distribution of "
                    f"{where[0]!r}: there the real data would stand beside simulated ones. Use what numpyro.sample "
                    "returns in their place, and no data in priors."
                )


def _altered(leaf: Any) -> Iterator[Any]:
    """Yield other values of an argument: turned, one element moved, all moved; sums see one of them, ranges another."""
    if isinstance(leaf, float):
        yield leaf + 1.0
        return
    if not isinstance(leaf, (np.ndarray, jax.Array)) or jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended):
        return
    array = np.asarray(leaf)
    if not array.size or array.dtype.kind not in "fiub" or (array.ndim == 0 and array.dtype.kind != "f"):
        return
    is_first = np.arange(array.size).reshape(array.shape) == 0
    others = [np.roll(array.ravel(), 1).reshape(array.shape)]
    if array.dtype.kind == "b":
        others.append(array ^ is_first)
    else:
        others += [array + is_first.astype(array.dtype), array + np.ones((), array.dtype)]
    for other in others:
        if not np.array_equal(other, array):
            yield jnp.asarray(other) if isinstance(leaf, jax.Array) else other


def _parents(program: Program, draws: Sequence[dict[str, Any]]) -> Parents:
    """Return the free variables that the law of each free variable depends on, found by changing one at a time."""
    usual = _log_densities(program, draws[0])
    found: dict[str, list[str]] = {name: [] for name in program.latents}
    for name in program.latents:
        changed = [_log_densities(program, {**draws[0], name: draw[name]}) for draw in draws[1:]]
        for other in program.latents:
            if other != name and any(one[other] != usual[other] for one in changed):
                found[other].append(name)
    return {name: tuple(parents) for name, parents in found.items()}
