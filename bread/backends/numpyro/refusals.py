"""What cannot be treated exactly, read from a few runs of the model at prior draws and refused before a check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import numpyro.distributions as dist

from bread.backends.numpyro.program import is_factor, was_observed
from bread.errors import UnsupportedModelError

Sites = Mapping[str, Any]
RESERVED_NAMES = ("simulation", "chain", "draw", "knot", "direction")  # dimensions of the report


def refuse_site(site: Mapping[str, Any], *, draws_prior: bool = True) -> None:
    """Refuse a site before it is drawn.

    Not ``draws_prior``: the density of the prior is enough.

    Raises
    ------
    UnsupportedModelError
        Names the site, the rule and what to do.
    """
    kind, name = site["type"], site.get("name")
    if kind == "sample":
        _refuse_sample(str(name), site, draws_prior)
    elif kind == "plate":
        size, subsample = site["args"]
        if subsample is not None and subsample != size:
            _refuse(
                f"The plate {name!r} takes a subsample of {subsample} of {size}, which changes from run to run; a "
                "posterior needs all data. Leave subsample_size out."
            )
    elif kind in ("param", "mutable", "control_flow"):
        _refuse(
            f"The model has a site {name!r} of type {kind!r}; only numpyro.sample, numpyro.deterministic and "
            "numpyro.plate are simulated. Write it with these (a fixed value in place of numpyro.param or a mutable, "
            "a plate or vectorised statements in place of scan and cond)."
        )


def refuse_without(sites: Sites) -> None:
    """Refuse a model without data, or without anything to infer.

    Raises
    ------
    UnsupportedModelError
        No site is observed, or none is latent.
    """
    samples = {name: site for name, site in sites.items() if site["type"] == "sample"}
    if not any(was_observed(site) and not is_factor(site) for site in samples.values()):
        _refuse(
            "The model has no observed site, so that there is no posterior to anneal to. Pass the data in args or "
            "kwargs, "
            f"so that at least one site has obs= (sites: {', '.join(samples) or 'none'})."
        )
    if all(was_observed(site) for site in samples.values()):
        _refuse("The model has no latent site: there is nothing to infer.")


def _refuse_sample(name: str, site: Mapping[str, Any], draws_prior: bool) -> None:
    if name in RESERVED_NAMES:
        _refuse(
            f"The model has a site {name!r}, which the report uses for a dimension of its own (reserved: "
            f"{', '.join(RESERVED_NAMES)}). Rename it in the model, for example to {name + '_'!r}."
        )
    if site.get("scale") is not None:
        _refuse(
            f"The site {name!r} is under numpyro.handlers.scale, which weights its density and not its draws. "
            "Leave the handler out."
        )
    for part in _parts(site["fn"]):
        if isinstance(part, dist.Unit) and draws_prior:
            _refuse(
                f"numpyro.factor {name!r} changes the density but not the simulator: parameters and data cannot be "
                "drawn jointly. Write the term as a distribution of a latent or of an observed site, or use "
                "simulate_from='posterior', which takes it as a part of the prior."
            )
        if isinstance(part, dist.ImproperUniform) and draws_prior:
            _refuse(
                f"The site {name!r} has an improper prior (ImproperUniform), which cannot be drawn from. Give it a "
                "proper one, such as a Normal with a wide scale, or use simulate_from='posterior'."
            )
        if isinstance(part, dist.MaskedDistribution):
            _refuse(
                f"The site {name!r} is masked (numpyro.handlers.mask, .mask() or obs_mask=): what is drawn there has "
                f"no "
                "density. Leave masked elements out of the arrays."
            )
        if isinstance(part, dist.Delta):
            _refuse(f"The site {name!r} is a Delta, which has no density. Use numpyro.deterministic.")
        if "Censored" in type(part).__name__:
            _refuse(
                f"The site {name!r} is a {type(part).__name__}, whose draws are not censored as its density is. "
                f"Write the "
                "outcome with a distribution that is drawn as its density says."
            )
    if not was_observed(site) and site["fn"].support.is_discrete:
        _refuse(
            f"The latent site {name!r} is discrete ({_law(site['fn'])}); NumPyro's HMC and NUTS move real "
            "coordinates alone. Sum it out (such as with MixtureSameFamily), or write the model in PyMC."
        )
    if not was_observed(site):
        try:
            dist.biject_to(site["fn"].support)
        except NotImplementedError:
            _refuse(
                f"The latent site {name!r} ({_law(site['fn'])}) has a support that NumPyro maps to no unconstrained "
                "coordinates. Write it by sites that have some, such as with numpyro.handlers.reparam."
            )


def _law(fn: Any) -> str:
    """Return the name of a distribution, without what only shapes it."""
    while isinstance(fn, (dist.ExpandedDistribution, dist.Independent)):
        fn = fn.base_dist
    return type(fn).__name__


def _parts(fn: Any) -> Iterator[Any]:
    """Return a distribution and those that it is made of."""
    yield fn
    for value in vars(fn).values():
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(one, dist.Distribution):
                yield from _parts(one)


def refuse_changes(runs: Sequence[Sites]) -> None:
    """Refuse models that are another one at another prior draw: other sites, shapes, distributions or supports.

    Raises
    ------
    UnsupportedModelError
        Names what differs.
    """
    first = runs[0]
    for other in runs[1:]:
        if list(first) != list(other):
            changed = sorted(set(first) ^ set(other)) or list(first)
            _refuse(
                f"The sites of the model depend on random values (stochastic control flow): {', '.join(changed)} "
                "are not the same in two prior draws. The number of coordinates must be fixed. Write branches as a "
                "mixture."
            )
        for name, site in first.items():
            if site["type"] != "sample":
                continue
            mine, its = site["fn"], other[name]["fn"]
            if type(mine) is not type(its) or np.shape(site["value"]) != np.shape(other[name]["value"]):
                _refuse(
                    f"The site {name!r} has another distribution or shape in another prior draw "
                    f"({type(mine).__name__} of "
                    f"shape {np.shape(site['value'])}, {type(its).__name__} of {np.shape(other[name]['value'])}; "
                    "stochastic control flow). Write branches as a mixture."
                )
            if not _same_support(mine.support, its.support):
                _refuse(
                    f"The support of the site {name!r} ({_law(mine)}) depends on other sites. Write it as a "
                    "transform of a site with a fixed support, such as upper * numpyro.sample(..., Uniform(0, 1))."
                )


def _same_support(one: Any, other: Any) -> bool:
    mine, its = _numbers_of(one), _numbers_of(other)
    return len(mine) == len(its) and all(
        type(left) is type(right) and (not isinstance(left, np.ndarray) or np.array_equal(left, right))
        for left, right in zip(mine, its, strict=True)
    )


def _numbers_of(constraint: Any) -> list[Any]:
    """Return what a constraint is made of, its attributes included: not every one is a tree of JAX."""
    found: list[Any] = [type(constraint)]
    for value in [*jax.tree.leaves(constraint), *vars(constraint).values()]:
        if isinstance(value, (np.ndarray, jax.Array, float, int)):
            found.append(np.asarray(value))
        elif isinstance(value, dist.constraints.Constraint) and value is not constraint:
            found.extend(_numbers_of(value))
    return found


def refuse_fixed(runs: Sequence[Sites]) -> None:
    """Refuse sites that are not drawn anew in every run.

    Raises
    ------
    UnsupportedModelError
        A handler inside of the model gives a site its value, or its random key.
    """
    for name, site in runs[0].items():
        if site["type"] != "sample":
            continue
        keys = [run[name]["kwargs"].get("rng_key") for run in runs]
        if any(key is None for key in keys):
            _refuse(
                f"The site {name!r} is given a value, by numpyro.handlers.substitute or replay, of which its density "
                "does not know. Use a number in its place, or leave the handler out."
            )
        numbers = [np.asarray(jax.random.key_data(key)) for key in keys]
        if all(np.array_equal(one, numbers[0]) for one in numbers[1:]):
            _refuse(
                f"The site {name!r} is drawn with the same random key in every run (rng_key=, or "
                "numpyro.handlers.seed), so that all draws are one. Leave the key out, and pass the function without "
                "a seed."
            )


def refuse_data(runs: Sequence[Sites]) -> dict[str, np.ndarray]:
    """Return the real data, or refuse them.

    Their type is what draws need: integers where the site draws integers and is given them, else double precision.

    Raises
    ------
    UnsupportedModelError
        Values are missing, outside the support, have another shape than what is drawn, or differ from run to run.
    """
    data = {}
    for name, site in runs[0].items():
        if site["type"] != "sample" or not was_observed(site) or is_factor(site):
            continue
        value = _plain(name, site)
        if any(not np.array_equal(value, _plain(name, run[name]), equal_nan=True) for run in runs[1:]):
            _refuse(
                f"obs= of the site {name!r} depends on other sites, and is no data. Let the distribution depend on "
                "them, such as Normal(mu, sigma) with obs=y in place of Normal(0, sigma) with obs=y - mu."
            )
        drawn = np.shape(site["value"])
        if value.shape != drawn:
            _refuse(
                f"The site {name!r} draws values of shape {drawn}, but obs= has shape {value.shape}: one draw would "
                f"stand "
                "for many data. Put the site into a numpyro.plate of that size, or .expand() its distribution."
            )
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            _refuse(
                f"obs= of the site {name!r} has {int((~np.isfinite(value)).sum())} values that are NaN or infinite. "
                f"Leave "
                "missing data out, or declare them as a latent site of their own."
            )
        inside = np.asarray(site["fn"].support(value))
        if not inside.all():
            _refuse(
                f"obs= of the site {name!r} has values outside the support of {_law(site['fn'])} "
                f"({int((~inside).sum())} of {inside.size}). Correct the data, or use another distribution."
            )
        data[name] = value
    return data


def _plain(name: str, site: Mapping[str, Any]) -> np.ndarray:
    given = site["infer"]["obs"]
    if np.ma.is_masked(given):
        _refuse(
            f"obs= of the site {name!r} has {np.sum(given.mask)} masked values. Leave missing data out, or declare "
            "them as a latent site of their own."
        )
    value = np.asarray(given)
    if value.dtype.kind not in "fiub":
        _refuse(
            f"obs= of the site {name!r} has the type {value.dtype}, and must be numbers. Convert it, for example by "
            "np.asarray(y, dtype=float)."
        )
    are_counts = value.dtype.kind in "iub" and np.asarray(site["value"]).dtype.kind in "iub"
    return value.astype(np.int64 if are_counts else np.float64)


def _refuse(message: str) -> None:
    raise UnsupportedModelError(message)
