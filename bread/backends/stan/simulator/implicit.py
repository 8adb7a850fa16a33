"""Parameters without a statement: uniform where the declared type bounds them, else improper and refused."""

from __future__ import annotations

from collections.abc import Callable

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.refusals import refuse
from bread.backends.stan.language.rendering import Renderer
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, nodes, strip, token
from bread.backends.stan.language.variates import rank
from bread.backends.stan.simulator.cuts import Cuts
from bread.backends.stan.simulator.suggestions import mending


class Implicit:
    """Draws parameters from the law that their declaration alone states."""

    def __init__(self, flow: Dataflow, source: Source, render: Renderer, cuts: Cuts) -> None:
        self._flow = flow
        self._source = source
        self._render = render
        self._cuts = cuts

    def check(self, variables: list[Variable]) -> None:
        """Refuse parameters without a statement whose law is improper: all of them, with a line that mends each."""
        improper = [variable for variable in variables if self.is_improper(variable)]
        if improper:
            self._refuse_improper(improper)
        for variable in variables:
            self.code(variable)

    def is_improper(self, variable: Variable) -> bool:
        """Return whether a declaration alone states no proper law."""
        if variable.type in ("simplex", "corr_matrix"):
            return False
        bounds = [variable.bounds.get(name) for name in ("lower", "upper")]
        return variable.type not in ("real", "vector", "row_vector", "matrix") or any(
            bound is None or "infinity" in self._render(bound) for bound in bounds
        )

    def code(self, variable: Variable) -> str:
        """Return the code that draws ``variable``.

        Raises
        ------
        RefusedError
            Its bounds are not ones that bread can draw within.
        """
        if variable.type in ("simplex", "corr_matrix"):
            value, density = self._typed(variable)
            return self._elements(
                variable, value, len(variable.array_sizes), lambda e: self._whole(variable, e, density)
            )
        lower, upper = variable.bounds["lower"], variable.bounds["upper"]
        parametric = any(v.kind == "parameter" for v in self._flow.depends(lower, upper))
        counter = "bread_i0" if variable.rank == 1 else None
        low, high = (self._bound(node, variable, counter) for node in (lower, upper))
        if not parametric:
            width = self._cuts.add(variable, f"log({high} - ({low}))")
            return self._elements(variable, f"uniform_rng({low}, {high})", variable.rank, lambda _: width)
        ends = self._envelope(variable, lower, -1), self._envelope(variable, upper, 1)
        code = f"uniform_rng({ends[0]}, {ends[1]})"
        width = self._cuts.add(variable, f"log({ends[1]} - {ends[0]})")
        return self._elements(
            variable, code, variable.rank, lambda e: f"{width} if ({e} <= {low} || {e} >= {high}) bread_accept = 0;"
        )

    def _refuse_improper(self, variables: list[Variable]) -> None:
        names = ", ".join(repr(variable.name) for variable in variables)
        what = f"the parameter {names} has" if len(variables) == 1 else f"the parameters {names} have"
        raise refuse(
            self._source,
            variables[0].node,
            f"{what} no prior (a flat, improper one), which cannot be drawn from.",
            mending(variables, self._source),
            tuple(variable.name for variable in variables),
        )

    def _typed(self, variable: Variable) -> tuple[str, str]:
        """Return the generator of the uniform law of a type, and its log density at ``{0}``."""
        size = self._render(variable.sizes[0])
        if variable.type == "simplex":
            return f"dirichlet_rng(rep_vector(1, {size}))", f"dirichlet_lpdf({{0}} | rep_vector(1, {size}))"
        return f"lkj_corr_rng({size}, 1)", "lkj_corr_lpdf({0} | 1)"

    def _whole(self, variable: Variable, element: str, density: str) -> str:
        return self._cuts.add(variable, f"-({density.format(element)})")

    def _bound(self, node: Node, variable: Variable, counter: str | None) -> str:
        if rank(node, self._flow.scopes) == 0:
            return self._render(node)
        if counter is None:
            raise refuse(
                self._source,
                variable.node,
                f"the bounds of {variable.name!r} may differ between its elements.",
                f"Give {variable.name!r} a prior in one statement.",
            )
        return f"bread_at({self._render(node)}, {counter})"

    def _elements(self, variable: Variable, value: str, n_loops: int, after: Callable[[str], str]) -> str:
        counters = [f"bread_i{d}" for d in range(n_loops)]
        name = self._render.name(variable)
        element = f"{name}[{', '.join(counters)}]" if counters else name
        code = f"{element} = {value};{after(element)}"
        for d in reversed(range(n_loops)):
            code = f"for ({counters[d]} in 1:({self._render(variable.dimensions[d])})) {{ {code} }}"
        return code

    def _envelope(self, variable: Variable, node: Node, sign: int) -> str:
        """Return a bound that holds whatever the parameters in ``node`` are: its largest (sign 1) or smallest value."""
        node = strip(node)
        if not any(v.kind == "parameter" for v in self._flow.depends(node)):
            if rank(node, self._flow.scopes) == 0:
                return f"({self._render(node)})"
        elif node.data == "variable":
            other = self._flow.scopes.variable(node)
            bound = other.bounds.get("upper" if sign > 0 else "lower") if other is not None else None
            if other is not None and other.kind == "parameter" and other.rank == 0 and bound is not None:
                return self._envelope(variable, bound, sign)
        elif node.data == "unary" and token(node, "SIGN") == "-":
            return f"(-{self._envelope(variable, nodes(node)[0], -sign)})"
        elif node.data == "binary" and token(node, "SIGN") is not None:
            left, right = nodes(node)
            operator = token(node, "SIGN")
            second = self._envelope(variable, right, sign if operator == "+" else -sign)
            return f"({self._envelope(variable, left, sign)} {operator} {second})"
        raise refuse(
            self._source,
            variable.node,
            f"the bounds of {variable.name!r} depend on parameters in a form that bread does not know.",
            f"Give {variable.name!r} a prior: `{variable.name} ~ ...;`.",
        )
