"""Which of Stan's samplers moves the chains, and how long it adapts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from bread.backends.stan.native.structures import KernelStruct
from bread.backends.support.independence import name_with, split_name
from bread.errors import UnsupportedKernelError
from bread.paths.kinds import Path

TARGET_ACCEPTANCE = 0.8  # Stan's default delta
USUAL_TREE_DEPTH = 10  # Stan's default
USUAL_JITTER = 0.2  # of the step size of static HMC


@dataclass(frozen=True)
class StanKernel:
    """One of Stan's samplers with a diagonal metric; both are reversible.

    Attributes
    ----------
    name : {"NUTS", "HMC"}
        The multinomial no-U-turn sampler (Betancourt 2017, appendix A), or Hamiltonian Monte Carlo with a fixed path.
    max_tree_depth : int or None
        NUTS: limit of the doublings. None: Stan's default of 10, or fewer where these do not pay
        (`bread.paths.kinds.ReferencePath.tree_depth`).
    integration_time : float
        HMC: length of a path in units of the metric. A quarter of a period of a standard normal makes successive draws
        independent; Stan's own default, a whole period, brings them back to where they were.
    max_leapfrogs : int
        HMC: limit of a path, as NUTS has one.
    step_size_jitter : float or None
        The step size is multiplied by a uniform number in (1 - jitter, 1 + jitter) that does not depend on the state;
        0 <= jitter < 1. None: 0.2 for HMC, against paths as long as a period of the target (Neal 2011, section
        5.4.2.2), and 0 for NUTS. With 0.5 NUTS leaves regions for which a frozen step size is too large, for a few
        tenths more gradients.
    proposes_base : bool
        Whether draws from the path's base are proposed before each transition
        (`bread.backends.support.independence`).

    Raises
    ------
    UnsupportedKernelError
        The jitter is outside its range.
    """

    name: Literal["NUTS", "HMC"] = "NUTS"
    max_tree_depth: int | None = None
    integration_time: float = math.pi / 2
    max_leapfrogs: int = 1023
    step_size_jitter: float | None = None
    proposes_base: bool = False

    def __post_init__(self) -> None:
        jitter = self.step_size_jitter
        if jitter is not None and not 0.0 <= jitter < 1.0:
            raise UnsupportedKernelError(f"step_size_jitter must be at least 0 and below 1; received {jitter!r}.")

    @property
    def full_name(self) -> str:
        """Name for the report."""
        return name_with(self.name) if self.proposes_base else self.name

    def struct(self, path: Path) -> KernelStruct:
        """Return the kernel as the driver wants it for chains along a path."""
        is_hmc = self.name == "HMC"
        usual = USUAL_JITTER if is_hmc else 0.0
        jitter = usual if self.step_size_jitter is None else self.step_size_jitter
        depth = USUAL_TREE_DEPTH if path.tree_depth is None else path.tree_depth
        depth = depth if self.max_tree_depth is None else self.max_tree_depth
        return KernelStruct(int(is_hmc), depth, self.max_leapfrogs, 0, self.integration_time, jitter)


def read_kernel(kernel: Any) -> StanKernel:
    """Return the kernel that the user means: None and "nuts" are NUTS, "hmc" is static HMC.

    "independence", "independence+nuts" and "independence+hmc" propose draws from the path's base before it.

    Raises
    ------
    UnsupportedKernelError
        It is neither, nor a `StanKernel`.
    """
    if isinstance(kernel, StanKernel):
        return kernel
    names: dict[Any, Literal["NUTS", "HMC"]] = {None: "NUTS", "nuts": "NUTS", "hmc": "HMC"}
    named, proposes_base = split_name(kernel)
    key = named.lower() if isinstance(named, str) else named
    if key is None or (isinstance(key, str) and key in names):
        return StanKernel(names[key], proposes_base=proposes_base)
    raise UnsupportedKernelError(
        "kernel must be 'nuts' or 'hmc' for a Stan program, or 'independence+nuts' or 'independence+hmc', which "
        f"propose draws from the path's start too; received {kernel!r}."
    )


def adaptation_windows(n_steps: int, *, is_warm: bool) -> tuple[int, int, int]:
    """Return Stan's init_buffer, term_buffer and base window for an adaptation of ``n_steps``.

    Fifteen per cent of the steps find the typical set and a quarter set the final step size. Between, a cold start
    estimates the variances in windows that double from 25 steps, as Stan does; a warm one in a single window.
    """
    init, term = int(0.15 * n_steps), int(0.25 * n_steps)
    middle = n_steps - init - term
    return init, term, middle if is_warm else min(25, middle)
