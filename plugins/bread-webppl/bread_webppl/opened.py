"""A WebPPL program, read and checked: the contract's `Model`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from bread.backends.base import (
    Data,
    Fit,
    FloatArray,
    Identity,
    Layout,
    Model,
    ModelInfo,
    OpenOptions,
    RealData,
    Simulations,
)
from bread.backends.support.arguments import require_parameters
from bread.backends.support.hyperparameters import choose_hyperparameters
from bread.errors import InvalidArgumentError, UnsupportedKernelError
from bread.paths.kinds import PriorPath
from bread_webppl.bridge import Bridge
from bread_webppl.given import Given, read_data
from bread_webppl.posterior import NO_REFERENCE, WebPPLPosterior
from bread_webppl.program import Program
from bread_webppl.structure import Structure, read
from bread_webppl.wrapper import Model as Wrapped

FIT_CHAINS, FIT_WARMUP, FIT_DRAWS = 4, 500, 500
FIT_UPDATES, MOST_THINNING = 200_000, 20  # of a chain, by which draws are thinned where transitions are short
KERNEL = "MH"


@dataclass(frozen=True)
class WebPPLModel(Model):
    """Implements `bread.backends.base.Model` for WebPPL.

    Attributes
    ----------
    description : ModelInfo
    program : Program
        The running program, with what was read of it.
    """

    description: ModelInfo
    program: Program

    @property
    def info(self) -> ModelInfo:
        """Names, dimensions, data."""
        return self.description

    @property
    def _structure(self) -> Structure:
        return self.program.structure

    def fingerprint(self) -> Any:
        """Return the program, its data, its packages' places and the length of a transition."""
        _, opening = self.program.bridge.opening[0]
        kept = ("program", "data", "observed", "packages")
        return {name: opening[name] for name in kept}, self.program.updates, self.description.identity.versions

    def simulate(self, n: int, *, fixed: Mapping[str, NDArray[Any]] | None, seed: SeedSequence) -> Simulations:
        """Draw sites and data jointly in one run of the program each; see `bread.backends.base.Model.simulate`.

        Raises
        ------
        InvalidArgumentError
            ``fixed`` names something that is no parameter, or a part of a site.
        """
        root = SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
        states, data = self.program.simulate(root.spawn(n), self._held(fixed or {}))
        return Simulations(states, self.constrain(states), self.program.given.named(data))

    def _held(self, fixed: Mapping[str, NDArray[Any]]) -> FloatArray | None:
        """Return the values of the sites that are held, NaN elsewhere."""
        if not fixed:
            return None
        require_parameters(tuple(fixed), self._structure.shapes)
        held = np.full(self.info.layout.dim, np.nan)
        for name, value in fixed.items():
            held[self._structure.positions[name]] = np.asarray(value, dtype=np.float64).ravel()
        starts = np.cumsum([0, *self._structure.sizes[:-1]])
        for start, size in zip(starts, self._structure.sizes, strict=True):
            if len(set(np.isnan(held[start : start + size]))) > 1:
                raise InvalidArgumentError(
                    f"fixed={list(fixed)} holds a part of a vector that the program draws at once. Return the whole "
                    "vector by one name."
                )
        return held

    def fit(self, *, seed: int, cores: int, progressbar: bool) -> Fit:
        """Run WebPPL's kernel on the real data, from prior draws: 4 chains of 500 draws, 1 to 20 transitions apart."""
        began = time.perf_counter()
        posterior = self.condition(self.info.data.observed)
        start, run = SeedSequence(seed).spawn(2)
        states = posterior.draw_base(PriorPath(), start.spawn(FIT_CHAINS))
        apart = int(np.clip(FIT_UPDATES // ((FIT_WARMUP + FIT_DRAWS) * self.program.updates), 1, MOST_THINNING))
        keep = apart * np.arange(FIT_WARMUP + 1, FIT_WARMUP + FIT_DRAWS + 1)
        chains = [
            self.constrain(posterior.evolve_from(state, 1.0, keep.tolist(), child).states)
            for state, child in zip(states, run.spawn(FIT_CHAINS), strict=True)
        ]
        draws = {name: np.array([chain[name] for chain in chains]) for name in self._structure.shapes}
        return Fit(draws, "WebPPL's MH", time.perf_counter() - began)

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Return the values of the sites by name, each (n, ...)."""
        structure = self._structure
        values = structure.coordinates.values(np.asarray(states, dtype=np.float64))
        return {
            name: values[:, structure.positions[name]].reshape(len(values), *shape).astype(structure.types[name])
            for name, shape in structure.shapes.items()
        }

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Return named values as states (n, dim)."""
        n = len(next(iter(parameters.values())))
        values = np.empty((n, self.info.layout.dim))
        for name, places in self._structure.positions.items():
            values[:, places] = np.asarray(parameters[name], dtype=np.float64).reshape(n, len(places))
        return self._structure.coordinates.states(values)

    def condition(self, data: Data) -> WebPPLPosterior:
        """Return the posterior given ``data``.

        Raises
        ------
        InvalidArgumentError
            An observed variable is missing or has another shape than the real one.
        """
        return WebPPLPosterior(self.program, self.program.given.flat(data))


def reads(model: Any) -> bool:
    """Return whether ``model`` is a `bread_webppl.Model`."""
    return isinstance(model, Wrapped)


def open_model(model: Wrapped, options: OpenOptions) -> WebPPLModel:
    """Read and check a `bread_webppl.Model`.

    Raises
    ------
    InvalidArgumentError
        An option means nothing to WebPPL's programs, or the data cannot be passed to one.
    UnsupportedModelError, UnsupportedKernelError
        Program or kernel cannot be treated exactly.
    MissingDependencyError
        Node.js or the npm package ``webppl`` is not installed.
    """
    options.refuse(("engine",), "means nothing to a WebPPL program, whose chains Node.js runs")
    options.refuse(("data", "observed"), "belongs into bread_webppl.Model(program, data, observed)")
    options.refuse(("simulator", "likelihood"), "means nothing to a WebPPL program, whose own statements are simulated")
    if options.kernel is not None and options.kernel != KERNEL:
        raise UnsupportedKernelError(
            f"kernel={options.kernel!r} cannot be run here. WebPPL programs take 'MH' (the default), WebPPL's "
            "Metropolis-Hastings over traces; give a site a driftKernel in the program."
        )
    name, text = model.text()
    given = read_data(model)
    opening = {
        "folder": None if model.node_modules is None else str(Path(model.node_modules).absolute()),
        "packages": [str(Path(one).absolute()) for one in model.packages],
        "program": text,
        "filename": f"{name}.wppl",
        "data": given.constants,
        "observed": given.description(),
    }
    bridge = Bridge(model.node, ())
    versions = bridge.keep("open", **opening)
    structure, given = read(bridge, given)
    updates = len(structure.sizes) if model.updates is None else int(model.updates)
    program = Program(bridge, structure, given, updates).with_gradients_checked()
    hyperparameters = choose_hyperparameters(structure.parents, options.hyperparameters)
    return WebPPLModel(_info(name, structure, given, hyperparameters, versions), program)


def _info(
    name: str, structure: Structure, given: Given, hyperparameters: tuple[str, ...], versions: Mapping[str, Any]
) -> ModelInfo:
    dim = len(structure.discrete)
    labels = [""] * dim
    for one, places in structure.positions.items():
        for place, index in zip(places, np.ndindex(structure.shapes[one]), strict=True):
            labels[place] = f"{one}[{', '.join(map(str, index))}]" if index else one
    constants = {one: np.asarray(value) for one, value in given.constants.items() if _is_numeric(value)}
    return ModelInfo(
        Identity(
            name,
            "webppl",
            "webppl",
            KERNEL,
            {"webppl": versions["version"], "node": versions["node"]},
            kernels_of="WebPPL",
        ),
        Layout(
            tuple(labels),
            structure.discrete,
            hyperparameters,
            {one: _dims(one, len(shape)) for one, shape in structure.shapes.items()},
            structure.positions,
            structure.coordinates.is_log | structure.coordinates.is_logit,
        ),
        RealData(
            given.observed,
            {one: _dims(one, value.ndim) for one, value in given.observed.items()},
            {one: (_dims(one, value.ndim), value) for one, value in constants.items()},
        ),
        {"reference": NO_REFERENCE},
    )


def _dims(name: str, n: int) -> tuple[str, ...]:
    return tuple(f"{name}_dim_{axis}" for axis in range(n))


def _is_numeric(value: Any) -> bool:
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except ValueError:  # ragged
        return False
