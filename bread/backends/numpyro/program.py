"""A NumPyro model as functions of states and data: draws and densities, by NumPyro's own handlers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.distributions import ExpandedDistribution, ImproperUniform, Independent, Unit, biject_to
from numpyro.infer import init_to_uniform
from numpyro.primitives import Messenger

from bread.backends.numpyro.precision import double_precision, key_of

Values = Mapping[str, Any]
Base = Callable[[Any], Any] | None  # log density (nats) of a path's reference at one state; None on the prior path


class Program:
    """The user's function with its arguments; to be used in `double_precision`.

    A pickled copy holds what it is made of alone: what else there is holds arrays, which JAX would round where they are
    loaded.

    Parameters
    ----------
    function : callable
    args : tuple
    kwargs : dict
    real : mapping of str to ndarray, optional
        Values of the observed sites whose likelihood counts to the prior; none by default.
    """

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], real: Values | None = None
    ) -> None:
        self.function, self.args, self.kwargs, self.real = function, args, kwargs, real

    def __getstate__(self) -> dict[str, Any]:
        return {"pickle": cloudpickle.dumps((self.function, self.args, self.kwargs, self.real))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        with double_precision():
            self.__init__(*cloudpickle.loads(state["pickle"]))  # type: ignore[misc]
            _ = self.unconstrained_shapes  # here, not inside of what JAX traces, whose values must not be kept

    def run(
        self, key: Any, values: Values, arguments: Any = None, watch: Callable[[Any], None] | None = None
    ) -> dict[str, Any]:
        """Return the sites of one run by name: those in ``values`` have these values, all others are drawn.

        ``arguments`` are other ``(args, kwargs)``. Observed sites are drawn too. ``watch`` sees each site before it is
        drawn.
        """
        args, kwargs = (self.args, self.kwargs) if arguments is None else arguments
        function = _Uncondition(self.function)
        if watch is not None:
            function = _Watch(function, watch)
        held = handlers.seed(handlers.substitute(function, data=dict(values)), key)
        drawn = handlers.substitute(held, substitute_fn=_in_place_of_draws)
        sites: dict[str, Any] = handlers.trace(drawn).get_trace(*args, **kwargs)
        return sites

    @cached_property
    def _sites(self) -> dict[str, Any]:
        sites = self.run(key_of(np.array([0, 1], dtype=np.uint32)), {})
        return {name: site for name, site in sites.items() if site["type"] == "sample"}

    @cached_property
    def latents(self) -> tuple[str, ...]:
        """Names of the free variables, in the order of the model."""
        return tuple(name for name, site in self._sites.items() if not was_observed(site))

    @cached_property
    def observed(self) -> tuple[str, ...]:
        """Names of the observed sites."""
        return tuple(name for name, site in self._sites.items() if was_observed(site) and not is_factor(site))

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """Names of what ``numpyro.factor`` adds to the density: parts of the prior."""
        return tuple(name for name, site in self._sites.items() if is_factor(site))

    @cached_property
    def transforms(self) -> dict[str, Any]:
        """NumPyro's map from unconstrained coordinates to each free variable."""
        return {name: biject_to(self._sites[name]["fn"].support) for name in self.latents}

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each free variable."""
        return {name: np.shape(self._sites[name]["value"]) for name in self.latents}

    @cached_property
    def unconstrained_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each free variable in unconstrained coordinates."""
        return {name: np.shape(self.transforms[name].inv(self._sites[name]["value"])) for name in self.latents}

    @property
    def dim(self) -> int:
        """Number of unconstrained coordinates."""
        return sum(int(np.prod(shape, dtype=int)) for shape in self.unconstrained_shapes.values())

    def _parts(self, state: Any) -> dict[str, Any]:
        parts, low = {}, 0
        for name, shape in self.unconstrained_shapes.items():
            size = int(np.prod(shape, dtype=int))
            parts[name] = jnp.reshape(state[low : low + size], shape)
            low += size
        return parts

    def constrain(self, state: Any) -> dict[str, Any]:
        """Map one state (dim,) to the free variables."""
        return {name: self.transforms[name](part) for name, part in self._parts(state).items()}

    def unconstrain(self, values: Values) -> Any:
        """Map free variables to one state (dim,)."""
        return jnp.concatenate([jnp.ravel(self.transforms[name].inv(values[name])) for name in self.latents])

    def draw(self, numbers: Any, held: Values) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        """Return one state, its free variables and its data, drawn jointly; those in ``held`` have these values."""
        sites = self.run(key_of(numbers), held)
        values = {name: sites[name]["value"] for name in self.latents}
        return self.unconstrain(values), values, {name: sites[name]["value"] for name in self.observed}

    def densities(self, state: Any, data: Values) -> tuple[Any, Any]:
        """Return log prior (nats, Jacobian included) and log likelihood of one state (dim,)."""
        prior, likelihood = self._terms(state, data)
        return (prior if self.real is None else sum(self._terms(state, self.real))), likelihood

    def _terms(self, state: Any, data: Values) -> tuple[Any, Any]:
        values, parts = self.constrain(state), self._parts(state)
        sites = self.run(key_of(np.zeros(2, dtype=np.uint32)), {**values, **data})
        prior = likelihood = jnp.zeros(())
        for name in self.latents:
            jacobian = self.transforms[name].log_abs_det_jacobian(parts[name], values[name])
            prior = prior + log_density(sites[name]) + jnp.sum(jacobian)
        for name in self.factors:
            prior = prior + log_density(sites[name])
        for name in self.observed:
            likelihood = likelihood + log_density(sites[name])
        return prior, likelihood

    def ends(self, state: Any, data: Values, base: Base) -> tuple[Any, Any]:
        """Return log f_0 (nats) and the log ratio of the path from ``base`` at one state (dim,)."""
        prior, likelihood = self.densities(state, data)
        if base is None:
            return prior, likelihood
        reference = base(state)
        return reference, prior + likelihood - reference

    def tempered(self, state: Any, beta: Any, data: Values, base: Base = None) -> Any:
        """Return log f_0 + beta * log ratio.

        At beta = 0 the data play no part, even where their likelihood is zero, and at beta = 1 a reference plays none.
        """

        def inside() -> Any:
            prior, likelihood = self.densities(state, data)
            if base is None:
                return prior + beta * likelihood
            end = prior + likelihood
            return jnp.where(beta == 1.0, end, (1.0 - beta) * base(state) + beta * end)

        first = (lambda: self.densities(state, data)[0]) if base is None else (lambda: base(state))
        return jax.lax.cond(beta == 0.0, first, inside)


class _Uncondition(handlers.uncondition):  # type: ignore[misc]
    """Draws observed sites too, and marks them: in an ``infer`` of their own, as the user may share one among sites."""

    def process_message(self, msg: Any) -> None:
        if msg["type"] == "sample":
            msg["infer"] = dict(msg["infer"])
        super().process_message(msg)


class _Watch(Messenger):  # type: ignore[misc]
    """Shows every message to a function before it is answered."""

    def __init__(self, function: Any, look: Callable[[Any], None]) -> None:
        self._look = look
        super().__init__(function)

    def process_message(self, msg: Any) -> None:
        self._look(msg)


def was_observed(site: Mapping[str, Any]) -> bool:
    """Return whether a site of a run has ``obs=``."""
    return bool(site["infer"].get("was_observed", False))


def is_factor(site: Mapping[str, Any]) -> bool:
    """Return whether a site is one of ``numpyro.factor``: a term of the density, of no value."""
    return isinstance(site["fn"], Unit)


def _in_place_of_draws(site: Mapping[str, Any]) -> Any:
    """Return a value where a site without one has an improper prior, from which nothing can be drawn; else None."""
    fn = site.get("fn")
    while isinstance(fn, (ExpandedDistribution, Independent)):
        fn = fn.base_dist
    is_improper = isinstance(fn, ImproperUniform) and site["value"] is None
    return init_to_uniform(site) if is_improper else None


def log_density(site: Mapping[str, Any]) -> Any:
    """Return the log density of a site at its value (nats), summed."""
    return jnp.sum(site["fn"].log_prob(site["value"]))
