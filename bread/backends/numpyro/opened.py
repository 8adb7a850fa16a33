"""A NumPyro model, read and checked: the contract's `Model`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any

import jax
import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray
from numpyro.infer import MCMC, NUTS

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
from bread.backends.numpyro.chains import HMC_STEPS, KERNELS, Chains
from bread.backends.numpyro.posterior import NO_REFERENCE, NumPyroPosterior
from bread.backends.numpyro.precision import double_precision, key_numbers, key_of
from bread.backends.numpyro.program import Program
from bread.backends.numpyro.reading import read, to_double
from bread.backends.support.arguments import require_parameters
from bread.backends.support.hyperparameters import choose_hyperparameters
from bread.backends.support.posterior_draws import read_posterior
from bread.errors import BreadError, InvalidArgumentError, UnsupportedKernelError, UnsupportedModelError
from bread.paths.kinds import ReferencePath

FIT_CHAINS, FIT_WARMUP, FIT_DRAWS = 4, 1000, 500


@dataclass(frozen=True)
class NumPyroModel(Model):
    """Implements `bread.backends.base.Model` for NumPyro.

    Attributes
    ----------
    description : ModelInfo
    chains : Chains
        The user's function and what is compiled of it.
    """

    description: ModelInfo
    chains: Chains

    @property
    def info(self) -> ModelInfo:
        """Names, dimensions, data."""
        return self.description

    def fingerprint(self) -> Any:
        """Return the user's function, its arguments and the kernel."""
        program = self.chains.program
        return program.function, program.args, program.kwargs, self.chains.kernel

    def simulate(self, n: int, *, fixed: Mapping[str, NDArray[Any]] | None, seed: SeedSequence) -> Simulations:
        """Draw parameters and data jointly by NumPyro's handlers; see `bread.backends.base.Model.simulate`.

        Raises
        ------
        InvalidArgumentError
            ``fixed`` names something that is no parameter.
        """
        held = {name: np.asarray(value, dtype=np.float64) for name, value in (fixed or {}).items()}
        if held:
            require_parameters(tuple(held), self.info.layout.parameters)
        root = SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
        program, real = self.chains.program, self.info.data.observed
        drawn = [self.chains.draw(key_numbers(child), held) for child in root.spawn(n)]
        return Simulations(
            np.array([state for state, _, _ in drawn]).reshape((n, program.dim)),
            {
                name: np.array([values[name] for _, values, _ in drawn]).reshape((n, *shape))
                for name, shape in program.shapes.items()
            },
            {
                name: np.array([data[name] for _, _, data in drawn], dtype=value.dtype).reshape((n, *value.shape))
                for name, value in real.items()
            },
        )

    def fit(self, *, seed: int, cores: int, progressbar: bool) -> Fit:
        """Sample the posterior on the real data with NumPyro's NUTS and its defaults: 4 chains, one after another.

        Raises
        ------
        UnsupportedModelError
            NumPyro finds no place to begin.
        """
        began, program = time.perf_counter(), self.chains.program
        with double_precision():
            mcmc = MCMC(
                NUTS(program.function),
                num_warmup=FIT_WARMUP,
                num_samples=FIT_DRAWS,
                num_chains=FIT_CHAINS,
                chain_method="sequential",
                progress_bar=False,
            )
            key = key_of(key_numbers(SeedSequence(seed)))
            try:
                mcmc.run(key, *program.args, extra_fields=("diverging",), **program.kwargs)
            except (RuntimeError, ValueError) as error:
                raise UnsupportedModelError(
                    f"NumPyro cannot sample the posterior on the real data: {error} Pass posterior= with draws of your "
                    "own, or use simulate_from='prior', which needs no fit."
                ) from error
            samples = mcmc.get_samples(group_by_chain=True)
            draws = {name: np.array(samples[name], dtype=np.float64) for name in program.latents}
            n_divergences = int(np.sum(mcmc.get_extra_fields()["diverging"]))
        return Fit(draws, "numpyro.infer.NUTS", time.perf_counter() - began, n_divergences)

    def constrain(self, states: FloatArray) -> dict[str, NDArray[Any]]:
        """Map states (n, dim) to the free variables (n, ...)."""
        return self.chains.constrain(np.asarray(states, dtype=np.float64))

    def unconstrain(self, parameters: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Map free variables (n, ...) to states (n, dim)."""
        return self.chains.unconstrain(parameters)

    def given_real_data(self) -> NumPyroModel:
        """Return this model with its posterior given the real data as its prior; see `bread.backends.base.Model`."""
        program = self.chains.program
        both = Program(program.function, program.args, program.kwargs, self.info.data.observed)
        return replace(self, chains=Chains(both, self.chains.kernel))

    def condition(self, data: Data) -> NumPyroPosterior:
        """Return the posterior given ``data``.

        Raises
        ------
        InvalidArgumentError
            An observed variable is missing or has another shape than the real one.
        """
        taken = {}
        for name, real in self.info.data.observed.items():
            if name not in data or np.shape(data[name]) != real.shape:
                received = f"shape {np.shape(data[name])}" if name in data else "nothing"
                raise InvalidArgumentError(f"data must hold {name!r} of shape {real.shape}; received {received}.")
            taken[name] = np.asarray(data[name], dtype=real.dtype)
        return NumPyroPosterior(self.chains, taken)


def open_model(model: Any, options: OpenOptions) -> NumPyroModel:
    """Read and check a `bread.numpyro.Model`.

    Raises
    ------
    InvalidArgumentError
        An option means nothing to NumPyro's models.
    UnsupportedModelError, UnsupportedKernelError
        Model or kernel cannot be treated exactly.
    """
    options.refuse(("engine",), "means nothing to a NumPyro model, whose chains NumPyro's own kernels run")
    options.refuse(("data", "observed"), "means nothing to a NumPyro model, whose arguments hold its data")
    options.refuse(("simulator", "likelihood"), "means nothing to a NumPyro model, whose own statements are simulated")
    kernel, is_given = _kernel(options.kernel), options.simulate_from == "posterior"
    try:
        with double_precision():
            program = Program(model.function, *jax.tree.map(to_double, (model.args, dict(model.kwargs))))
            data, parents = read(program, draws_prior=not (is_given or options.density_only))
            dims = _dimensions(program.shapes)
        options.look_at_draws(partial(read_posterior, shapes=program.shapes, dims=dims, coords={}))
        chains = Chains(program, kernel)
        chains.gradients(1.0, chains.draw(key_numbers(SeedSequence(0)), {})[0][None], data)
    except BreadError:
        raise
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError) as error:
        raise UnsupportedModelError(
            "The model cannot be compiled by JAX: its Python code looks at values of its sites (stochastic control "
            "flow), or it uses NumPy's functions or arrays where jax.numpy's are needed (such as an array that is "
            "indexed by what a plate returns). "
            f"{type(error).__name__}: {str(error).splitlines()[0]}"
        ) from error
    except Exception as error:
        raise UnsupportedModelError(
            f"The model does not run with the arguments that were given: {type(error).__name__}: {error} "
            "Try numpyro.handlers.seed(function, 0)(*args, **kwargs)."
        ) from error
    chosen = choose_hyperparameters(parents, options.hyperparameters)
    name = getattr(model.function, "__name__", "model")
    refusals = {} if is_given else {ReferencePath.name: NO_REFERENCE}
    return NumPyroModel(_info(program, name, kernel, data, chosen, refusals), chains)


def _kernel(kernel: Any) -> str:
    name = "NUTS" if kernel is None else kernel if isinstance(kernel, str) else getattr(kernel, "__name__", "")
    if name.upper() in KERNELS and (isinstance(kernel, (str, type)) or kernel is None):
        return str(name).upper()
    raise UnsupportedKernelError(
        f"kernel={kernel!r} cannot be frozen here. NumPyro models take 'NUTS' (the default) or 'HMC' "
        f"({HMC_STEPS} leapfrog steps), or the classes of these names."
    )


def _dimensions(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[str, ...]]:
    """Return a name for each axis of each variable."""
    return {name: tuple(f"{name}_dim_{axis}" for axis in range(len(shape))) for name, shape in shapes.items()}


def _info(
    program: Program,
    name: str,
    kernel: str,
    data: dict[str, NDArray[Any]],
    hyperparameters: tuple[str, ...],
    refusals: Mapping[str, str],
) -> ModelInfo:
    with double_precision():
        dims = _dimensions(program.shapes)
        coordinates: list[str] = []
        positions, transformed = {}, []
        for one, shape in program.unconstrained_shapes.items():
            low = len(coordinates)
            labels = [f"[{', '.join(map(str, index))}]" for index in np.ndindex(shape)] if shape else [""]
            coordinates += [f"{one}{label}" for label in labels]
            positions[one] = np.arange(low, len(coordinates))
            transformed += [type(program.transforms[one]).__name__ != "IdentityTransform"] * len(labels)
    versions = {package: version(package) for package in ("numpyro", "jax")}
    return ModelInfo(
        Identity(name, "numpyro", "numpyro", kernel, versions, runs_compiled=True),
        Layout(
            tuple(coordinates),
            np.zeros(len(coordinates), dtype=bool),
            hyperparameters,
            dims,
            positions,
            np.array(transformed, dtype=bool),
        ),
        RealData(data, {one: tuple(f"{one}_dim_{axis}" for axis in range(v.ndim)) for one, v in data.items()}),
        refusals,
    )
