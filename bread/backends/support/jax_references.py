"""References as arrays, and their log densities in JAX: one compiled function for all references of one form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bread.backends.base import FloatArray
from bread.errors import UnsupportedModelError
from bread.paths.mixture import Component, MixtureReference
from bread.paths.nested import NestedReference

Arrays = tuple[Any, ...]
LogDensity = Callable[[Any, Arrays], Any]  # (state, arrays) -> nats

SMALL = 64  # coordinates up to which a matrix that is not needed costs less than another compiled function
_KNOTS = 8  # knots of a nested reference are filled up to a multiple of it


class PackedReference(NamedTuple):
    """A reference as arrays.

    Attributes
    ----------
    form : tuple
        References of equal form share a compiled function.
    arrays : tuple of ndarray
    """

    form: tuple[Any, ...]
    arrays: Arrays


def is_known(reference: Any) -> bool:
    """Return whether JAX can be given the formula of a reference; the prior path has none and needs none."""
    return reference is None or isinstance(reference, MixtureReference | NestedReference)


def pack(reference: Any) -> PackedReference:
    """Return a reference as arrays.

    Raises
    ------
    UnsupportedModelError
        Its formula is not known: it is not one of bread's own.
    """
    if isinstance(reference, MixtureReference):
        form, arrays = _pack_mixture(reference)
        return PackedReference(("mixture", *form), arrays)
    if isinstance(reference, NestedReference):
        return _pack_nested(reference)
    raise UnsupportedModelError(
        f"path= is a {type(reference).__name__}, whose formula JAX is not given. Pass draws as path=, to which one of "
        "bread's own is fitted, or leave path= out."
    )


def log_density_of(form: tuple[Any, ...]) -> LogDensity:
    """Return the log density (nats) of references of one form, as JAX traces it."""
    return _mixture(form[1:]) if form[0] == "mixture" else _nested(form)


def _pack_mixture(reference: MixtureReference) -> tuple[tuple[Any, ...], Arrays]:
    parts = reference.components
    dim, number = reference.dim, 1 << (len(parts) - 1).bit_length()
    has_matrix = dim <= SMALL or any(part.matrix is not None or part.stretch is not None for part in parts)
    has_degrees = any(part.degrees is not None for part in parts)
    mean, scale = np.zeros((number, dim)), np.ones((number, dim))
    degrees, log_factor = np.full((number, dim), np.inf), np.full(number, -np.inf)
    matrix = np.broadcast_to(np.eye(dim), (number, dim, dim)).copy() if has_matrix else np.zeros((number, 0, 0))
    for index, (part, weight) in enumerate(zip(parts, reference.weights, strict=True)):
        mean[index], scale[index] = part.mean, part.scale
        log_factor[index] = np.log(weight) + part.log_normaliser
        if has_matrix:
            matrix[index] = _matrix_of(part, dim)
        if part.degrees is not None:
            degrees[index] = part.degrees
    return (dim, number, has_matrix, has_degrees), (mean, scale, matrix, degrees, log_factor)


def _matrix_of(part: Component, dim: int) -> FloatArray:
    if part.matrix is not None:
        return part.matrix
    if part.directions is not None and part.stretch is not None:
        return np.eye(dim) + (part.directions * (1.0 / part.stretch - 1.0)) @ part.directions.T
    return np.eye(dim)


def _mixture(form: tuple[Any, ...]) -> LogDensity:
    import jax
    import jax.numpy as jnp

    _, number, has_matrix, has_degrees = form

    def component(state: Any, mean: Any, scale: Any, matrix: Any, degrees: Any, log_factor: Any) -> Any:
        z = (state - mean) / scale
        if has_matrix:
            z = (matrix * z).sum(axis=-1)
        terms = -0.5 * z * z
        if has_degrees:
            is_normal = jnp.isinf(degrees)
            nu = jnp.where(is_normal, 1.0, degrees)
            terms = jnp.where(is_normal, terms, -0.5 * (nu + 1.0) * jnp.log1p(z * z / nu))
        return terms.sum() + log_factor

    def log_density(state: Any, arrays: Arrays) -> Any:
        if number == 1:
            return component(state, *(one[0] for one in arrays))
        return jax.nn.logsumexp(jax.vmap(component, in_axes=(None, 0, 0, 0, 0, 0))(state, *arrays))

    return log_density


def _pack_nested(reference: NestedReference) -> PackedReference:
    origins, widths, coefficients = reference.pieces
    extra = -len(reference.knots) % _KNOTS
    filled = [np.concatenate([one, np.repeat(one[-1:], extra, axis=0)]) for one in (origins, widths, coefficients)]
    knots = np.concatenate([reference.knots, np.full(extra, np.inf)])  # pieces beyond the last are never met
    centre = np.insert(reference.centre, reference.driver, 0.0)
    matrix = np.insert(reference.matrix, reference.driver, 0.0, axis=1)
    marginal_form, marginal = _pack_mixture(reference.marginal)
    own = (np.asarray(reference.driver), knots, *filled, centre, matrix, np.asarray(reference.log_normaliser))
    return PackedReference(("nested", reference.dim, len(knots), *marginal_form), (*own, *marginal))


def _nested(form: tuple[Any, ...]) -> LogDensity:
    import jax.numpy as jnp

    marginal = _mixture(form[3:])

    def log_density(state: Any, arrays: Arrays) -> Any:
        driver, knots, origins, widths, coefficients, centre, matrix, log_normaliser = arrays[:8]
        u = state[driver]
        piece = jnp.searchsorted(knots, u)
        x = (u - origins[piece]) / widths[piece]
        c = coefficients[piece]
        mean, log_scale = c[0] + x * (c[1] + x * (c[2] + x * c[3]))
        residual = ((matrix * (state - centre)).sum(axis=-1) - mean) * jnp.exp(-log_scale)
        own = marginal(u[None], arrays[8:])
        return own + log_normaliser - (0.5 * residual**2 + log_scale).sum()

    return log_density
