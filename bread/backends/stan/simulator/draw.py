"""A random draw read from a program, and what its reader, its forms and its writer ask of each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.distributions import DISTRIBUTIONS, Distribution
from bread.backends.stan.language.rendering import Renderer
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node
from bread.backends.stan.language.variates import Render, Variate

# all at once; one element after the other; only element number bread_step; nothing, but the density of what is held
# (and, for a zero-inflated outcome, its whole density); nothing, but how often each element is drawn is counted
Mode = Literal["draw", "sequence", "step", "check", "total", "count"]


@dataclass(frozen=True)
class Argument:
    """An argument of a distribution: expressions of the user's in a template, "{0}" for a plain one."""

    parts: tuple[Node, ...]
    template: str = "{0}"

    def text(self, render: Render) -> str:
        """Return the argument as a Stan expression."""
        return self.template.format(*(render(part) for part in self.parts))


@dataclass(frozen=True, eq=False)
class Draw:
    """One random draw, or one vectorised statement of them.

    Attributes
    ----------
    statement : Node
        The statement that the draw replaces.
    controls : tuple of Node
        ``if``, ``for`` around it.
    variate : Variate
    distribution : str
        Name in `DISTRIBUTIONS`, or of the program's own mass function; "mixture" for one of several components.
    arguments : tuple of Argument
    low, high : Node or None
        Truncation ``T[low, high]``.
    components : tuple of Draw
        The draws of which a mixture makes one.
    form : Form or None
        How it is made, where one generator is not enough: every mixture has one.
    own : Distribution or None
        The mass or density function, where it is the program's own.
    functions : str
        Stan functions that its generator takes.
    note : str
        What the report says of these.
    """

    statement: Node
    controls: tuple[Node, ...]
    variate: Variate
    distribution: str
    arguments: tuple[Argument, ...]
    low: Node | None = None
    high: Node | None = None
    components: tuple[Draw, ...] = ()
    form: Form | None = None
    own: Distribution | None = None
    functions: str = ""
    note: str = ""

    @property
    def law(self) -> Distribution:
        """How the distribution is drawn."""
        return DISTRIBUTIONS[self.distribution] if self.own is None else self.own

    @property
    def variable(self) -> Variable:
        """What is drawn."""
        return self.variate.variable

    @property
    def total(self) -> str:
        """The variable of the simulator that its log density is added to."""
        return "bread_sim_log_prior" if self.variable.kind == "parameter" else "bread_sim_log_likelihood"

    def places(self) -> list[Node]:
        """Return the expressions that say which elements are drawn."""
        return [node for index in self.variate.indices for node in (index.low, index.high) if node is not None]

    def expressions(self) -> list[Node]:
        """Return every expression that the draw's law reads."""
        found = [part for argument in self.arguments for part in argument.parts]
        found += [node for node in (self.low, self.high) if node is not None]
        found += self.places()
        found += [node for _, node in self.variate.wrappers if node is not None]
        for component in self.components:
            found += component.expressions()
        return found + (self.form.expressions(self) if self.form is not None else [])


class Form(Protocol):
    """How a draw is made that is more than one call of a generator."""

    def expressions(self, draw: Draw) -> list[Node]:
        """Return what the law reads beside arguments and components."""
        ...

    def code(self, draw: Draw, writer: Writer, render: Renderer, mode: Mode) -> str:
        """Return the statements that make the draw, its log density added up."""
        ...


class Reading(Protocol):
    """What the readers of forms ask of the reader of one program."""

    @property
    def flow(self) -> Dataflow:
        """The program's dataflow."""
        ...

    @property
    def source(self) -> Source:
        """The program."""
        ...

    @property
    def outcomes(self) -> frozenset[Variable]:
        """The observed variables."""
        ...

    def is_density(self, term: Node) -> bool:
        """Return whether a term is a density, or looks up the log probability of an outcome in a simplex."""
        ...

    def component(self, node: Node, controls: tuple[Node, ...], term: Node) -> Draw | None:
        """Read the density of a mixture's component."""
        ...

    def selection(self, node: Node) -> Variate | None:
        """Read the elements of one outcome that an expression takes."""
        ...


class Writer(Protocol):
    """What forms ask of the writer of one program's code."""

    @property
    def flow(self) -> Dataflow:
        """The program's dataflow."""
        ...

    @property
    def source(self) -> Source:
        """The program."""
        ...

    def code(self, draw: Draw, render: Renderer, mode: Mode) -> str:
        """Return the statements that make a draw without a form."""
        ...

    def element(self, draw: Draw, render: Renderer) -> str:
        """Return the one element that is drawn, as an expression."""
        ...

    def assign(self, draw: Draw, render: Renderer) -> str:
        """Return the code that draws one unbounded element, without its density."""
        ...

    def held_density(self, draw: Draw, render: Renderer) -> str:
        """Return the log density of the element held now, as an expression."""
        ...
