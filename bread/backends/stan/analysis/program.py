"""What bread knows of a Stan program: its outcomes, its split, its simulator, and the one program that is compiled."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from bread.backends.stan.language.refusals import Refusal
from bread.backends.stan.language.source import Source
from bread.backends.stan.split.rewriting import Edit

_SOLVER = re.compile(r"\b(ode_\w+|integrate_\w+|dae\w*|algebra_solver\w*|solve_(newton|powell)\w*)\s*\(")
UNCONSTRAINED = ("real", "vector", "row_vector", "matrix", "complex", "complex_vector", "complex_matrix")


@dataclass(frozen=True)
class Parameter:
    """A parameter as declared: its type, sizes and bounds as the program writes them."""

    name: str
    type: str
    dimensions: tuple[str, ...]
    bounds: dict[str, str]
    line: int

    @property
    def is_constrained(self) -> bool:
        """Whether its unconstrained coordinates are transforms of it; offset and multiplier do not count."""
        return self.type not in UNCONSTRAINED or not self.bounds.keys().isdisjoint(("lower", "upper"))


@dataclass(frozen=True)
class Contribution:
    """One statement that adds to the log density: its text, line and part ("prior", "likelihood" or "both")."""

    text: str
    line: int
    part: str


@dataclass(frozen=True)
class Program:
    """What bread knows of a Stan program.

    Attributes
    ----------
    source : Source
        What was analysed and rewritten: the program, spelled out where that makes it automatic.
    written : Source
        The program as the user wrote it; line numbers are the same.
    observed : tuple of str
        Data variables that are outcomes.
    observed_inferred : bool
        Whether they were inferred from the program.
    parameters : tuple of Parameter
        In the order of the program.
    hyperparameters : tuple of str
        Parameters that the priors of other parameters depend on; all where there are none. Those that the simulator
        cannot hold are left out, unless it holds none of them.
    fixable : tuple of str
        Parameters for which the tempered program takes ``bread_use_fixed_<name>`` (0 or 1, always to be given) and
        ``bread_fixed_<name>`` as data: the value (a scalar in a list of one), left out where it is not used. Empty
        without a simulator.
    contributions : tuple of Contribution
    tempered : str
        The program to compile. Every likelihood contribution is wrapped in ``bread_temper(...)``, which the header
        defines; line numbers are those of ``source.text``. The user's generated quantities are left out. With a
        simulator its generated quantities, run with a random number generator, are an exact joint draw:
        ``bread_sim_<name>`` of every parameter (constrained) and observed variable, ``bread_sim_attempts`` (joint
        draws made until one lay within the bounds; the acceptance is its inverse mean), and
        ``bread_sim_log_prior``, ``bread_sim_log_likelihood``: the log density of the draw by the simulator, which
        differ from the program's own (without Jacobian, normalised) only by constants, if the simulator is right.
    switches : dict of str to int
        Data that the tempered program needs beside the user's, with the values that leave its simulator free to draw
        every parameter (``bread_use_fixed_<name>`` = 0) and the outcomes (``bread_only_parameters`` = 0).
    edged_prior, edged_likelihood : tuple of str
        Parameters in whose coordinates the mean gradient of the log prior (log likelihood) need not be zero, because
        a density ends abruptly there or its ends depend on them.
    fixed_data : dict of str to int
        Data that must have this value for the program to be tempered, such as ``prior_only`` = 0.
    split_refusal, simulator_refusal : Refusal or None
        Why there is no split (then ``tempered`` is not tempered), or no simulator.
    notes : tuple of str
    held : tuple of str
        Parameters that the simulator must be given, because their prior cannot be drawn from.
    latents : tuple of str
        Parameters whose law depends on other parameters, by the simulator.
    drawn : tuple of str
        What the simulator draws as parameters, in the order of the generated ``bread_cut``: the log of what the
        density of each, as the program states it, integrates to.
    edits : tuple of Edit
        Edits that make ``tempered`` from ``source.text``.
    copies : dict of str to str
        Data that the tempered program needs: for each name the outcome whose real values it holds, whatever is
        simulated (`bread.backends.stan.analysis.design`).
    outcome_functions : dict of str to str
        As in `bread.backends.info.ModelInfo` (`bread.backends.stan.simulator.outcome_densities`).
    """

    source: Source
    written: Source
    observed: tuple[str, ...]
    observed_inferred: bool
    parameters: tuple[Parameter, ...]
    hyperparameters: tuple[str, ...]
    fixable: tuple[str, ...]
    contributions: tuple[Contribution, ...]
    tempered: str = field(repr=False)
    switches: dict[str, int] = field(default_factory=dict)
    edged_prior: tuple[str, ...] = ()
    edged_likelihood: tuple[str, ...] = ()
    fixed_data: dict[str, int] = field(default_factory=dict)
    split_refusal: Refusal | None = None
    simulator_refusal: Refusal | None = None
    notes: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    latents: tuple[str, ...] = ()
    drawn: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = field(default=(), repr=False)
    copies: dict[str, str] = field(default_factory=dict)
    outcome_functions: dict[str, str] = field(default_factory=dict)

    @property
    def solves(self) -> bool:
        """Return whether the program calls a solver (of differential equations, integrals, roots)."""
        return _SOLVER.search(self.source.code) is not None

    @property
    def is_automatic(self) -> bool:
        """Return whether the program is both split and simulated without the user's help."""
        return self.split_refusal is None and self.simulator_refusal is None
