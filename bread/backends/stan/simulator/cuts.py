"""What the prior of a program lacks to integrate to one: the probability that declared bounds leave, and the like.

``real<lower=0> tau; tau ~ normal(0, 5);`` states a density that integrates to one half. A simulator adds up the logs
of such integrals, one total a variable, beside the log density of its draw as the program states it.
"""

from __future__ import annotations

from collections.abc import Sequence

from bread.backends.stan.language.distributions import Distribution
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.variates import Render
from bread.backends.stan.simulator.draw import Draw
from bread.backends.stan.split.rewriting import truncated_probability

CUT = "bread_cut"  # of the generated quantities: the totals, in the order of the simulator's parameters
_BEGINS_AT = {"pareto": 0, "pareto_type_2": 0}  # argument at which the support begins


class Cuts:
    """Writes what is added to the totals.

    Parameters
    ----------
    variables : sequence of Variable
        What the simulator draws as parameters.
    """

    def __init__(self, variables: Sequence[Variable]) -> None:
        self._places = {variable: place for place, variable in enumerate(variables, 1)}

    def declaration(self) -> str:
        """Return the declaration of the totals."""
        return f"vector[{len(self._places)}] {CUT};"

    def reset(self) -> str:
        """Return the statement that sets them to zero."""
        return f"{CUT} = rep_vector(0, {len(self._places)});"

    def add(self, variable: Variable, log_integral: str) -> str:
        """Return the statement that adds to the total of ``variable``."""
        return f" {CUT}[{self._places[variable]}] += {log_integral};"

    def element(
        self, draw: Draw, distribution: Distribution, low: str | None, high: str | None, arguments: list[str],
        render: Render,
    ) -> str:  # fmt: skip
        """Return the statement for one element of a parameter, drawn again while it is outside of declared bounds.

        Parameters
        ----------
        draw : Draw
        distribution : Distribution
        low, high : str or None
            Declared bounds of the element; None where there is none, and where a draw never leaves it.
        arguments : list of str
        render : Renderer
        """
        if draw.variable.kind != "parameter":
            return ""
        added, scale = [], _scale(draw, render)
        if low is not None or high is not None:
            if draw.variate.wrappers and draw.variate.gives is None:  # the density is of the element shifted and scaled
                ends = [_forward(low or "negative_infinity()", draw, render)]
                ends.append(_forward(high or "positive_infinity()", draw, render))
                low, high = f"fmin({ends[0]}, {ends[1]})", f"fmax({ends[0]}, {ends[1]})"
            stated = [render(node) if node is not None else None for node in (draw.low, draw.high)]
            whole = _log_probability(draw.distribution, distribution, stated[0], stated[1], arguments)
            low, high = _inner("fmax", low, stated[0]), _inner("fmin", high, stated[1])
            added.append(_log_probability(draw.distribution, distribution, low, high, arguments))
            if whole != "0":
                added.append(f"-({whole})")
        if scale:
            added.append(f"-log(abs({scale}))")
        return self.add(draw.variable, " + ".join(added)) if added else ""


def _log_probability(
    name: str, distribution: Distribution, low: str | None, high: str | None, arguments: list[str]
) -> str:
    """Return the log probability of an interval, whose ends are moved to where distribution functions are defined."""
    if low is None and high is None:
        return "0"
    if name == "uniform":
        start, end = arguments
        within = f"{_inner('fmin', high, end)} - {_inner('fmax', low, start)}"
        return f"log({within}) - log({end} - ({start}))"
    begins = "0" if distribution.support in ("positive", "unit") else None
    if name in _BEGINS_AT:
        begins = arguments[_BEGINS_AT[name]]
    low = _inner("fmax", low, begins) if low is not None else None
    high = _inner("fmax", high, begins) if high is not None else None
    if distribution.support == "unit":
        low = f"fmin({low}, 1)" if low is not None else None
        high = f"fmin({high}, 1)" if high is not None else None
    return truncated_probability(name, low, high, ", ".join(arguments), f"{name}_lpdf")


def _inner(function: str, one: str | None, other: str | None) -> str | None:
    """Return the larger (fmax) or smaller (fmin) of two ends, either of which may be absent."""
    if one is None or other is None or one == other:
        return one if other is None else other
    return f"{function}({one}, {other})"


def _forward(bound: str, draw: Draw, render: Render) -> str:
    """Return what the density is of where the element is at ``bound``: the inverse of `Variate.invert`."""
    for operator, node in reversed(draw.variate.wrappers):
        assert node is not None  # "log" and its like stand around outcomes alone
        other = f"({render(node)})"
        bound = f"({other} - {bound})" if operator == "r-" else f"({bound} {operator} {other})"
    return bound


def _scale(draw: Draw, render: Render) -> str:
    """Return the factor between an element and what the density is of; "" for one."""
    factors = [
        f" {operator} ({render(node)})" for operator, node in draw.variate.wrappers if operator in ("*", "/") and node
    ]
    return "".join(["1.0", *factors]) if factors else ""
