"""A model of two nodes whose density given its parents may lack something, for tests of the integrals of priors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from bread.backends.base import Identity, Layout, Model, ModelInfo, Node, RealData, Replicates, Simulations
from bread.errors import UnsupportedModelError

SHAPE = 2.0


def lacks_nothing(mu):
    return 0.0 * mu


@dataclass(frozen=True)
class ToyPriors(Model):
    """mu ~ N(0, 1); x given mu: independent Gamma(2, rate exp(mu)), a state holds mu and log x.

    ``missing(mu)`` is added to every term of x, in nats. ``drawn_shape`` is that of replicates.
    ``breaks`` raises for states with a large x.
    """

    missing: Callable = lacks_nothing
    n: int = 3
    breaks: float = np.inf
    is_joint: bool = False  # one term for all of x
    is_known: bool = False
    can_replicate: bool = True
    drawn_shape: float = SHAPE

    @property
    def info(self):
        layout = Layout(
            ("mu", *(f"x[{i}]_log__" for i in range(self.n))),
            np.zeros(1 + self.n, dtype=bool),
            ("mu",),
            {"mu": (), "x": ("x_dim_0",)},
            {"mu": np.array([0]), "x": np.arange(1, 1 + self.n)},
        )
        return ModelInfo(Identity("toy", "toy", "toy", "none", {"toy": "1"}), layout, RealData({}, {}))

    def nodes(self):
        return (
            Node("mu", "parameter", {"mu": ()}),
            Node("x", "latent", {"x": (self.n,)}, log_integral=0.0 if self.is_known else None),
        )

    def simulate(self, n, *, fixed, seed):
        rng = np.random.default_rng(seed)
        mu = rng.standard_normal(n)
        x = rng.gamma(SHAPE, size=(n, self.n)) * np.exp(-mu)[:, None]
        states = np.column_stack([mu, np.log(x)])
        return Simulations(states, self.constrain(states), {})

    def replicate(self, state, node, n, *, seed, data=None):
        if not self.can_replicate:
            raise UnsupportedModelError("no replicates here.")
        rng = np.random.default_rng(seed)
        values = rng.gamma(self.drawn_shape, size=(n, self.n)) * np.exp(-state[0])
        return Replicates(np.concatenate([np.exp(state[None, 1:]), values]))

    def constrain(self, states):
        return {"mu": states[:, 0], "x": np.exp(states[:, 1:])}

    def unconstrain(self, parameters):
        return np.column_stack([parameters["mu"], np.log(parameters["x"])])

    def condition(self, data):
        raise NotImplementedError

    def node_log_prior(self, node, states):
        assert node == "x"
        mu, log_x = states[:, :1], states[:, 1:]
        with np.errstate(over="ignore"):
            terms = SHAPE * (mu + log_x) - np.exp(mu + log_x) - gammaln(SHAPE) + self.missing(mu)
        terms = np.where(mu + log_x > self.breaks, -np.inf, terms)
        return terms.sum(axis=1, keepdims=True) if self.is_joint else terms
