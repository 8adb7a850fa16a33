"""BlackJAX's NUTS and HMC with frozen settings, in the place of the step method that the user's kernel names.

Both are reversible at fixed settings: HMC with a fixed number of leapfrog steps, and NUTS with multinomial sampling
(the share of a trajectory, and of its halves, is the same from each of its points). The reversal is the kernel itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from bread.backends.base import FloatArray, Settings
from bread.backends.pymc.kernels.engine import Engine, GradientEngine
from bread.backends.pymc.kernels.stepping import GradientStep
from bread.errors import UnsupportedKernelError


@dataclass(frozen=True)
class VectorKernel:
    """What the frozen kernel is, apart from its settings.

    Attributes
    ----------
    is_nuts : bool
        NUTS, or HMC of a fixed path length.
    path_length : float
        Of HMC: ``step_size`` times the number of leapfrog steps, rounded down, at least one step.
    limit : int
        Most doublings of a trajectory (NUTS) or most leapfrog steps (HMC).
    largest_error : float
        Error of the energy above which a transition counts as divergent.
    order : ndarray of int, shape (dim,)
        Where the metric of each coordinate of a state is in the setting ``inverse_metric``.
    """

    is_nuts: bool
    path_length: float
    limit: int
    largest_error: float
    order: NDArray[np.int64]

    @property
    def name(self) -> str:
        """Name for the report."""
        return "NUTS" if self.is_nuts else "HMC"

    def n_steps(self, step_sizes: FloatArray) -> NDArray[np.int64]:
        """Return the number of leapfrog steps of HMC at each step size, by PyMC's rule; zeros for NUTS."""
        if self.is_nuts:
            return np.zeros(np.shape(step_sizes), dtype=np.int64)
        with np.errstate(over="ignore"):
            steps = np.floor(np.minimum(self.path_length / step_sizes, float(self.limit)))
        return np.maximum(1, steps).astype(np.int64)

    def arrays(self, settings: list[Settings]) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
        """Return step sizes (n,), inverse metrics (n, dim) in the order of a state, and numbers of leapfrog steps."""
        step_sizes = np.array([float(one["step_size"]) for one in settings])
        metrics = np.array([one["inverse_metric"] for one in settings], dtype=np.float64)[:, self.order]
        return step_sizes, metrics, self.n_steps(step_sizes)

    def build(self) -> Any:
        """Return ``kernel(key, state, log_density, step_size, inverse_metric, n_steps)`` of BlackJAX."""
        import blackjax

        if not self.is_nuts:
            return blackjax.hmc.build_kernel(divergence_threshold=self.largest_error)
        nuts = blackjax.nuts.build_kernel(divergence_threshold=self.largest_error)

        def kernel(key: Any, state: Any, log_density: Any, step_size: Any, inverse_metric: Any, _: Any) -> Any:
            return nuts(key, state, log_density, step_size, inverse_metric, self.limit)

        return kernel


def vector_kernel(engine: Engine) -> VectorKernel:
    """Return the kernel of an engine as BlackJAX has it.

    Raises
    ------
    UnsupportedKernelError
        It is not NUTS or HMC with an adapted diagonal metric on all variables.
    """
    if not isinstance(engine, GradientEngine):
        raise UnsupportedKernelError(f"the kernel {engine.name} is not NUTS or HMC on all variables")
    frozen = engine.steps[0]
    assert isinstance(frozen, GradientStep)
    step = frozen.step
    if type(step) not in (pm.NUTS, pm.HamiltonianMC):
        raise UnsupportedKernelError(f"{engine.name} is not PyMC's own NUTS or HMC")
    if not frozen.adapts_metric:
        raise UnsupportedKernelError(f"the metric of {engine.name} is fixed by the user")
    is_nuts = isinstance(step, pm.NUTS)
    return VectorKernel(
        is_nuts,
        path_length=0.0 if is_nuts else float(step.path_length),
        limit=int(step.max_treedepth if is_nuts else step.max_steps),
        largest_error=float(step.Emax),
        order=engine.order_in_states,
    )
