"""The engine that a model and a kernel ask for, compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pymc as pm

from bread.backends.pymc.density.density import TemperedDensity
from bread.backends.pymc.density.reference_graph import LocalLaw
from bread.backends.pymc.kernels.compound_engine import CompoundEngine
from bread.backends.pymc.kernels.engine import Engine, GradientEngine
from bread.backends.pymc.kernels.kernels import build_steps
from bread.backends.pymc.kernels.stepping import GradientStep
from bread.backends.pymc.model.layout import StateLayout
from bread.backends.support.independence import split_name


def compile_engine(
    model: pm.Model,
    layout: StateLayout,
    kernel: Any,
    *,
    law: LocalLaw | None = None,
    refusals: Mapping[str, str] | None = None,
    as_it_is: bool = False,
    by_element: bool = False,
    given_real_data: bool = False,
    at_once: bool = True,
) -> Engine:
    """Compile the density and build the kernel of a model, once; data and inverse temperature are set later.

    Parameters
    ----------
    model : pymc.Model
        Read only.
    layout : StateLayout
        Order of the coordinates of a state.
    kernel : None, str, type, callable or sequence
        See `bread.backends.pymc.kernels.kernels.build_steps`; "independence" or "independence+nuts" for one with
        proposals from the path's base before it.
    law : LocalLaw, optional
        Law of some variables in place of their priors.
    refusals : dict of str to str, optional
        Kinds of path that the model cannot be annealed along, and why.
    as_it_is : bool, default False
        Take any step method; see `build_steps`.
    by_element : bool, default False
        Let observations be left out; see `TemperedDensity`.
    given_real_data : bool, default False
        Take the posterior given the model's own data for its prior; see `TemperedDensity`.
    at_once : bool, default True
        Build the function of many states too: half a second, for what evaluates tens of thousands.

    Returns
    -------
    Engine
        Picklable with cloudpickle; holds neither the user's model nor its graphs.

    Raises
    ------
    UnsupportedKernelError
        If the kernel cannot be frozen or reversed, or does not fit the model.
    """
    density = TemperedDensity(model, layout, law, by_element=by_element, given_real_data=given_real_data)
    moved_by, proposes_base = split_name(kernel)
    steps = build_steps(model, layout, density, moved_by, as_it_is=as_it_is)
    names = tuple(name for step in steps if isinstance(step, GradientStep) for name in step.gradient.names)
    if len(steps) == 1 and len(names) == len(layout.names):
        by_gradient = GradientEngine(layout, density.controls, steps, refusals)
        by_gradient.may_propose = kernel is None
        by_gradient.takes_correlation = kernel is None and by_gradient.adapts_metric
        engine: Engine = by_gradient
    else:
        engine = CompoundEngine(layout, density.controls, steps, density.compile_terms(), refusals)
    engine.many_states = density.many_states() if at_once else None
    if proposes_base:
        engine.propose_base()
    return engine
