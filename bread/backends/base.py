"""The contract between the core and a backend.

In one sentence: a backend simulates exactly, conditions on data, adapts a kernel into frozen settings, and
returns log ratios along annealed chains; everything else is core.

States are rows of a float array of shape (n, dim) in *unconstrained* coordinates; the Jacobian of the map to
the constrained parameters belongs to the prior. Discrete variables are coordinates that hold whole numbers.
Log quantities are in nats.

The number of coordinates is fixed: one ``dim`` for all states of a model, whatever the data. State spaces of varying
dimension (a mixture with an unknown number of components, reversible jump, programs whose control flow decides which
variables exist) are outside the contract, and a backend refuses such models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.info import Identity, Layout, ModelInfo, RealData
from bread.backends.nodes import Node, Replicates
from bread.backends.options import OpenOptions
from bread.backends.support.gradients import one_by_one
from bread.backends.support.posterior_draws import read_posterior
from bread.backends.support.rows import Rows, RowsOneByOne
from bread.backends.values import (
    Adaptation,
    AnnealRun,
    Data,
    Direction,
    Discarded,
    Evolution,
    Failure,
    Fit,
    FloatArray,
    IntArray,
    Kernel,
    Settings,
    Simulations,
)
from bread.errors import UnsupportedModelError
from bread.paths.kinds import Path
from bread.paths.mixture import Reference

__all__ = [
    "Adaptation",
    "AnnealRun",
    "Data",
    "Direction",
    "Discarded",
    "Evolution",
    "Failure",
    "Fit",
    "FloatArray",
    "Identity",
    "IntArray",
    "Kernel",
    "Layout",
    "Model",
    "ModelInfo",
    "Node",
    "OpenOptions",
    "Posterior",
    "RealData",
    "Replicates",
    "Rows",
    "Settings",
    "Simulations",
]


class Posterior(Protocol):
    """A model with one data set. Stateless for the caller: equal arguments give bit-equal results.

    A class that inherits from this one need not write what is called optional.

    Every method takes the path (`bread.paths`), whose tempered density is ``log f_0 + beta * log_ratio``.
    For a reference path f_0 is ``path.reference``; at beta = 0 the model's density is not evaluated by a kernel, and at
    beta = 1 the reference plays no part in one. ``draw_base(PriorPath(), ...)`` works for every model, whatever
    `ModelInfo.paths` says: prior draws are where pilots begin.
    """

    def draw_base(self, path: Path, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw from the path's base f_0, one state per seed; shape (len(seeds), dim)."""
        ...

    def draw_prior_batch(self, n: int, seed: SeedSequence) -> FloatArray | None:
        """Draw ``n`` independent states from the prior with one seed, shape (n, dim). Optional.

        For a backend that draws thousands at once faster than one by one; None, the default, where it does not.
        """
        return None

    def draw_tempered(self, beta: float, seeds: Sequence[SeedSequence]) -> FloatArray:
        """Draw exactly from the law at an inverse temperature of the prior path; shape (len(seeds), dim). Optional.

        For finite spaces and closed forms: `bread.debug` then tests the kernel between the ends of the path too.

        Raises
        ------
        UnsupportedModelError
            By default.
        """
        raise UnsupportedModelError(f"{type(self).__name__} cannot draw exactly from a tempered law.")

    def log_ratio(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log_ratio at each of ``states``, shape (n,); -inf is legal, exceptions become NaN.

        At many states the last bits may differ from those of single calls.
        """
        ...

    def log_density(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log f_1 (nats), up to a constant of model and data, at each of ``states``, shape (n,). Optional.

        The same function whatever the path: log prior and log likelihood together, Jacobians included. By default from
        `log_ratio`, on paths whose base is a reference.

        Raises
        ------
        UnsupportedModelError
            By default, on the prior path.
        """
        if path.reference is None:
            raise UnsupportedModelError(
                f"{type(self).__name__} has no log density on the prior path. Use path='reference'."
            )
        return np.asarray(self.log_ratio(path, states) + path.reference.log_density(states), dtype=np.float64)

    def log_base(self, path: Path, states: FloatArray) -> FloatArray:
        """Return log f_0 (nats), up to a constant of model and data, at each of ``states``, shape (n,). Optional.

        By default `log_density` less `log_ratio`, which is NaN where f_1 is zero.
        """
        with np.errstate(invalid="ignore"):
            return np.asarray(self.log_density(path, states) - self.log_ratio(path, states), dtype=np.float64)

    def end_gradient(self, path: Path, state: FloatArray) -> tuple[float, FloatArray]:
        """Return log f_1 (nats) and its gradient, shape (dim,), at one state; for reference paths. Optional.

        Raises
        ------
        DensityError
            The model rejects the state or raises.
        UnsupportedModelError
            By default: a backend without it says so for "reference" in `ModelInfo.path_refusals`.
        """
        raise UnsupportedModelError(
            f"{type(self).__name__} has no gradient of its density, which a reference is fitted by. Use path='prior'."
        )

    def end_gradients(self, path: Path, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what `end_gradient` does at several states, shapes (n,) and (n, dim); NaN where it would raise.

        One by one by default; a backend to which a call costs more than a gradient does all in one.

        Raises
        ------
        UnsupportedModelError
            As of `end_gradient`.
        """
        return one_by_one(self, path, states)

    def density_gradient(self, beta: float, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log prior + beta * log likelihood and its gradient, shapes (n,) and (n, dim). Optional.

        The tempered density of the prior path, whatever the path of the chains. Models without that path are asked for
        ``beta`` = 1 alone. NaN in the density where it raises; NaN in the gradient at discrete coordinates, and at
        those whose density does not vanish at both ends of the line (angles).

        Raises
        ------
        UnsupportedModelError
            By default: the score test is then left out of a check.
        """
        raise UnsupportedModelError(f"{type(self).__name__} offers no gradient of its density at given states.")

    def adapt(
        self, path: Path, beta: float, state: FloatArray, seed: SeedSequence, n_steps: int, previous: Settings | None
    ) -> Adaptation:
        """Adapt the kernel at ``beta`` with the PPL's own adaptation for ``n_steps`` from ``state``.

        ``previous`` are the settings of the knot before, a warm start.
        """
        ...

    def takes_reference(self, reference: Reference) -> bool:
        """Return whether chains can follow the path from a reference of bread's own. Optional; all by default."""
        return True

    @property
    def takes_correlation(self) -> bool:
        """Whether kernels may have a `Kernel.correlation`, and `adapt` settings with that of its start. Optional."""
        return False

    def stretch(self, settings: Settings, factor: FloatArray) -> Settings:
        """Return kernel settings for a law of standard deviations ``factor`` times as large, shape (dim,). Optional."""
        return settings

    def anneal(
        self,
        path: Path,
        betas: FloatArray,
        kernel: Kernel,
        *,
        direction: Direction,
        initial: FloatArray,
        seeds: Sequence[SeedSequence],
    ) -> AnnealRun:
        """Run one chain per row of ``initial``; one seed per chain.

        Forward: for t = 2..T weight theta_{t-1}, then move by the kernel at beta_t. Reverse: for t = T..2 move by the
        reversal of the kernel at beta_t, then weight theta_{t-1} (Grosse, Ancha & Roy 2016, equations 5 and 6).
        """
        ...

    def evolve(
        self, path: Path, kernel: Kernel, beta: float, state: FloatArray, keep: Sequence[int], seed: SeedSequence
    ) -> Evolution:
        """Run one chain of the frozen kernel at ``beta`` from ``state``; return the states after ``keep`` steps.

        ``keep`` is non-decreasing; 0 stands for ``state`` itself.
        """
        ...


@runtime_checkable
class Model(Protocol):
    """A user's model, read and checked: everything that must be refused was refused before this exists.

    Picklable with cloudpickle (workers receive it once). Never changes the user's object. A class that inherits from
    this one need not write what is called optional: there is a default, which may be a refusal.

    Optional, and False where it is missing: ``may_be_inherited``, whether the object may also be used in a process that
    is forked from this one. It holds then no process, socket or thread that both would use.
    """

    @property
    def info(self) -> ModelInfo:
        """Names, dimensions, data."""
        ...

    def fingerprint(self) -> Any:
        """Return what the model is: values that `bread.digests` takes, the same for the same model. Optional.

        By default the model itself, its data with it. The real data (`ModelInfo.data`) are compared on their own.
        """
        return self

    def simulate(self, n: int, *, fixed: Mapping[str, NDArray[Any]] | None, seed: SeedSequence) -> Simulations:
        """Draw parameters and data jointly, exactly; ``fixed`` are named parameters held at these values.

        Draw i uses ``seed.spawn(n)[i]`` alone (spawned from a fresh copy of ``seed``). A draw that numbers cannot
        represent raises, or is made again as a whole and counted in `Simulations.discarded`.
        """
        ...

    def fit(self, *, seed: int, cores: int, progressbar: bool) -> Fit:
        """Sample the posterior on the real data with the PPL's own sampler and its defaults. Optional.

        Raises
        ------
        UnsupportedModelError
            By default, or where sampling fails.
        """
        raise UnsupportedModelError(
            f"The backend {self.info.identity.backend!r} has no sampler that fits real data. Pass posterior= with "
            "draws of your own, or use simulate_from='prior', which needs no fit."
        )

    def read_posterior(self, posterior: Any) -> Fit:
        """Read the user's own draws (the `posterior=` argument of `bread.check`). Optional.

        By default from an InferenceData, a DataTree, a Dataset, or a dict of arrays (chain, draw, ...).

        Raises
        ------
        InvalidArgumentError
            They are no draws of this model; the message names the variable.
        """
        info = self.info
        values = self.constrain(np.zeros((1, info.layout.dim)))
        free = info.layout.positions or info.layout.parameters
        shapes = {name: values[name].shape[1:] for name in free}
        derived = {name: values[name].shape[1:] for name in info.layout.parameters if name not in free}
        return read_posterior(posterior, shapes, info.layout.parameters, info.data.coords, derived)

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Map states (n, dim) to named parameters (n, ...), keys as Layout.parameters."""
        ...

    def derive(self, states: FloatArray, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Return what depends on parameters and real data, and is no key of Layout.parameters, each (n, ...). Optional.

        Asked only for names that `read_posterior` returned draws of; by default there are none.
        """
        return {}

    def condition(self, data: Data) -> Posterior:
        """Return the posterior given ``data``; cheap, no compilation."""
        ...

    def rows(self, data: Mapping[str, NDArray[Any]]) -> Rows:
        """Return many posteriors at once: row i of ``data``, each (n, ...), goes with row i of the states. Optional.

        By default one after another. A backend whose densities take many data sets in one call does better.
        """
        return RowsOneByOne(self.condition, data)

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Map named free variables (n, ...) to states (n, dim): the inverse of `constrain`."""
        ...

    def localise(self, names: Sequence[str], reference: Reference) -> Model:
        """Return this model with ``reference`` in place of the prior of the named parameters. Optional.

        ``reference`` is a normalised density on the unconstrained coordinates of the named parameters, in the order of
        the state's coordinates (``positions``). Their prior statements and their Jacobians are left out, also where
        the prior is flat; everything that depends on them (the law of the other parameters, the likelihood) stays.
        `simulate`, `condition` and all densities of the returned model are those of the new model.

        Raises
        ------
        UnsupportedModelError
            By default, or where the law of the named parameters cannot be told from that of the others.
        """
        raise UnsupportedModelError(
            f"The backend {self.info.identity.backend!r} cannot replace a prior, which simulate_from='localised' "
            "needs. Use simulate_from='fitted' or 'prior'."
        )

    def given_real_data(self) -> Model:
        """Return this model with its posterior given the real data as its prior. Optional.

        Densities of ``condition(data)`` are then those given the real data and ``data``: log f_0 of the prior path is
        the log of prior times likelihood of the real data (and of any other factor), up to a constant; the log ratio is
        the log likelihood of ``data``. `simulate` holds all parameters; nothing is asked of draws from that prior.

        Raises
        ------
        UnsupportedModelError
            By default, or where data cannot be simulated given all parameters.
        """
        raise UnsupportedModelError(
            f"The backend {self.info.identity.backend!r} has no density of the real data and of simulated ones "
            "together, which simulate_from='posterior' needs. Use simulate_from='fitted' or 'prior'."
        )

    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes that the fit test is about, those that `replicate` refuses included. Optional.

        By default none: the fit is then not tested.
        """
        return ()

    def replicate(
        self, state: FloatArray, node: str, n: int, *, seed: SeedSequence, data: Data | None = None
    ) -> Replicates:
        """Draw ``n`` replicates of a node given its parents in ``state``, shape (dim,). Optional.

        ``data`` are the values of observed variables; by default the real data. A node is exchangeable with its
        replicates if the state is a posterior draw given those data. Values must not depend on anything below the node.

        Raises
        ------
        UnsupportedModelError
            By default, or where this node cannot be replicated; nothing is guessed.
        """
        raise UnsupportedModelError(f"The backend {self.info.identity.backend!r} cannot replicate parts of a model.")

    def node_log_prior(self, node: str, states: FloatArray, *, jacobian: bool = True) -> FloatArray:
        """Return the log density of a node of free variables given its parents, at ``states`` (n, dim). Optional.

        As the posterior's density has it: in unconstrained coordinates, Jacobian included; without ``jacobian`` in the
        model's own. Shape (n, part), in nats: factors, whose sum is the log density.
        -inf where it raises. Asked of nodes whose ``log_integral`` is None, and by `bread.debug`.

        Raises
        ------
        UnsupportedModelError
            By default, or for this node: whether it integrates to one is then not known.
        """
        raise UnsupportedModelError(
            f"The backend {self.info.identity.backend!r} has no log density of single variables given their parents."
        )
