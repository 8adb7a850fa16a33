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
from numpyro.distributions import biject_to
from numpyro.primitives import Messenger

from bread.backends.numpyro.precision import double_precision, key_of

Values = Mapping[str, Any]


class Program:
    """The user's function with its arguments; to be used in `double_precision`.

    A pickled copy holds the function and its arguments alone: what else there is holds arrays, which JAX would round
    where they are loaded.

    Parameters
    ----------
    function : callable
    args : tuple
    kwargs : dict
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs

    def __getstate__(self) -> dict[str, Any]:
        return {"pickle": cloudpickle.dumps((self.function, self.args, self.kwargs))}

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
        held = handlers.substitute(function, data=dict(values))
        sites: dict[str, Any] = handlers.trace(handlers.seed(held, key)).get_trace(*args, **kwargs)
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
        return tuple(name for name, site in self._sites.items() if was_observed(site))

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
        values, parts = self.constrain(state), self._parts(state)
        sites = self.run(key_of(np.zeros(2, dtype=np.uint32)), {**values, **data})
        prior = likelihood = jnp.zeros(())
        for name in self.latents:
            jacobian = self.transforms[name].log_abs_det_jacobian(parts[name], values[name])
            prior = prior + log_density(sites[name]) + jnp.sum(jacobian)
        for name in self.observed:
            likelihood = likelihood + log_density(sites[name])
        return prior, likelihood

    def tempered(self, state: Any, beta: Any, data: Values) -> Any:
        """Return log prior + beta * log likelihood; at beta = 0 the likelihood plays no part, even where it is zero."""

        def whole() -> Any:
            prior, likelihood = self.densities(state, data)
            return prior + beta * likelihood

        return jax.lax.cond(beta == 0.0, lambda: self.densities(state, data)[0], whole)


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


def log_density(site: Mapping[str, Any]) -> Any:
    """Return the log density of a site at its value (nats), summed."""
    return jnp.sum(site["fn"].log_prob(site["value"]))
