"""Which step methods of PyMC are known to be reversible with frozen settings; everything else is refused by name.

A kernel must leave the tempered density invariant and have a reversal that can be run (Grosse, Ghahramani & Adams
(2015), section 2.3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
from pymc.step_methods import metropolis
from pymc.step_methods.hmc import quadpotential

from bread.backends.pymc import internals
from bread.backends.pymc.kernels.gradient_free_steps import DiscreteStep, MetropolisStep, SliceStep
from bread.backends.pymc.kernels.stepping import FrozenStep, GradientStep
from bread.errors import UnsupportedKernelError

WRAPPERS: dict[type, Callable[[Any], FrozenStep]] = {
    pm.NUTS: GradientStep,
    pm.HamiltonianMC: GradientStep,
    pm.Metropolis: MetropolisStep,
    pm.Slice: SliceStep,
    pm.BinaryMetropolis: DiscreteStep,
    pm.BinaryGibbsMetropolis: DiscreteStep,
    pm.CategoricalGibbsMetropolis: DiscreteStep,
}
FIXED_METRICS = (quadpotential.QuadPotentialDiag, quadpotential.QuadPotentialFull, quadpotential.QuadPotentialFullInv)
SYMMETRIC_PROPOSALS = (
    metropolis.NormalProposal,
    metropolis.UniformProposal,
    metropolis.CauchyProposal,
    metropolis.LaplaceProposal,
)
HISTORY_OR_POPULATION = {
    "DEMetropolis": "its proposal uses the states of other chains",
    "DEMetropolisZ": "its proposal uses its own history, so it is no Markov kernel",
}
ALLOWED = (
    'Use None (what pm.sample would assign), "nuts", "hmc", a step method class such as pm.Slice, a callable that '
    "builds step methods, such as lambda model: pm.Slice(model=model), or a list of these; of the classes "
    + ", ".join(kind.__name__ for kind in WRAPPERS)
    + '. Or "independence", "independence+nuts", "independence+hmc", which propose draws from the path\'s start too.'
)


def refuse_class(kind: type, assigned: str = "") -> None:
    """Refuse a step method whose law is not known to be reversible; ``assigned``: the variables PyMC gives it to."""
    if kind in WRAPPERS:
        return
    reason = HISTORY_OR_POPULATION.get(kind.__name__, "its transitions are not known to be reversible")
    if assigned:  # by PyMC, from a package's step methods: the user chose no kernel, and None would assign it again
        raise UnsupportedKernelError(
            f"pm.sample moves {assigned} by {kind.__name__}, which cannot be run in reverse: {reason}. "
            f"Check a model without {assigned}."
        )
    raise UnsupportedKernelError(f"{kind.__name__} cannot be run in reverse: {reason}. {ALLOWED}")


def refuse_unsuitable(step: Any) -> None:
    """Refuse an object whose options make it irreversible or impossible to freeze."""
    kind = type(step)
    refuse_class(kind)
    replaced = {"step", "astep"} & set(vars(step)) - ({"astep"} if kind is pm.CategoricalGibbsMetropolis else set())
    if replaced:
        raise UnsupportedKernelError(
            f"The {kind.__name__} object has its own {', '.join(sorted(replaced))}, whose reversal is not known. "
            "Leave the methods of PyMC's step methods as they are."
        )
    if kind in (pm.NUTS, pm.HamiltonianMC):
        _refuse_gradient_options(step)
    elif kind is pm.Metropolis:
        _refuse_proposal(step)
    elif kind is pm.CategoricalGibbsMetropolis and _function_of(step.astep) is not kind.astep_unif:
        # Its acceptance ratio uses renormalised probabilities: the kernel does not leave its target invariant.
        raise UnsupportedKernelError(
            'CategoricalGibbsMetropolis with proposal="proportional" does not leave its target invariant (PyMC '
            'renormalises the probabilities before it accepts). Use proposal="uniform".'
        )


def _function_of(method: Any) -> Any:
    return getattr(method, "__func__", method)


def _refuse_gradient_options(step: Any) -> None:
    name = type(step).__name__
    internals.remove_default_jitter(step)  # annealing uses one step size at each temperature
    rule = internals.step_size_rule(step)
    if rule is not None:
        raise UnsupportedKernelError(
            f"{name} has step_rand={rule!r}: a step size that changes by a rule of its own cannot be "
            "reversed. Set step_rand=None."
        )
    kind = type(step.potential)
    if kind is not quadpotential.QuadPotentialDiagAdapt and kind not in FIXED_METRICS:
        raise UnsupportedKernelError(
            f"{name} has potential={kind.__name__}, which cannot be frozen and interpolated over temperatures. Leave "
            "potential out (a diagonal metric is adapted), or fix the metric: scaling=variances, is_cov=True."
        )


def _refuse_proposal(step: Any) -> None:
    proposal = step.proposal_dist
    kind = type(proposal)
    if kind is metropolis.MultivariateNormalProposal:
        is_diagonal = not np.any(proposal.chol - np.diag(np.diag(proposal.chol)))
        if is_diagonal or not step.elemwise_update:
            return
        raise UnsupportedKernelError(
            "Metropolis with a covariance matrix S accepts coordinates one at a time; correlated proposals are then "
            "neither symmetric nor reversible. Give S as a vector of standard deviations."
        )
    if kind not in SYMMETRIC_PROPOSALS:
        names = ", ".join(each.__name__ for each in SYMMETRIC_PROPOSALS)
        raise UnsupportedKernelError(
            f"Metropolis has proposal_dist {kind.__name__}, which is not known to be symmetric. Use one of {names}."
        )
