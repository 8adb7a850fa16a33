"""Quoting the user's expressions and statements in the simulator, with simulated values for parameters and outcomes."""

from __future__ import annotations

from collections.abc import Collection

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.scopes import Scopes, Variable, name_position
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, end, name_of, nodes, start, strip, walk_values

SIMULATED, NOW = "bread_sim_", "bread_now_"


class Renderer:
    """Quotes pieces of a program on one line under new names.

    Parameters
    ----------
    simulated : collection of Variable
        Parameters and observed variables: ``theta`` becomes ``bread_sim_theta``.
    recomputed : collection of Variable
        Transformed data and parameters that follow from them: ``mu`` becomes ``bread_now_mu``.
    """

    def __init__(
        self, source: Source, scopes: Scopes, simulated: Collection[Variable], recomputed: Collection[Variable]
    ) -> None:
        self._code = source.code
        self._scopes = scopes
        self._names = {variable: SIMULATED + variable.name for variable in simulated}
        self._names |= {variable: NOW + variable.name for variable in recomputed}

    def name(self, variable: Variable) -> str:
        """Return the name under which a variable is simulated."""
        return self._names.get(variable, variable.name)

    def __call__(self, node: Node) -> str:
        """Return ``node`` on one line under the new names."""
        pieces, position = [], start(node)
        for inner in walk_values(node):
            if inner.data != "variable":
                continue
            variable = self._scopes.variable(inner)
            if variable is not None and variable in self._names:
                at = name_position(inner)
                pieces += [self._code[position:at], self._names[variable]]
                position = at + len(variable.name)
        pieces.append(self._code[position : end(node)])
        return " ".join("".join(pieces).split())

    def type_of(self, variable: Variable) -> str:
        """Return the type of a variable without its constraint, as for a local variable."""
        return plain_type(variable, self)


def plain_type(variable: Variable, render: Renderer | Inliner) -> str:
    """Return the declared type without constraints: "array[N] vector[K]"."""
    array = f"array[{', '.join(render(size) for size in variable.array_sizes)}] " if variable.array_sizes else ""
    inner = variable.dimensions[len(variable.array_sizes) :]
    sizes = f"[{', '.join(render(size) for size in inner)}]" if inner else ""
    return f"{array}{variable.plain}{sizes}"


class Inliner:
    """Quotes sizes for use in the data block: integers of transformed data are replaced by their definitions."""

    def __init__(self, source: Source, flow: Dataflow) -> None:
        self._code = source.code
        self._flow = flow

    def __call__(self, node: Node) -> str:
        """Return ``node`` in terms of data.

        Raises
        ------
        LookupError
            It depends on something that the data block does not see.
        """
        inner = strip(node)
        if inner.data == "variable":
            variable = self._flow.scopes.variable(inner)
            if variable is not None and variable.kind == "data":
                return name_of(inner)
            if variable is not None and variable.kind == "transformed data":
                definitions = self._flow.definitions.get(variable, [])
                if len(definitions) == 1 and definitions[0].value is not None and not definitions[0].controls:
                    return f"({self(definitions[0].value)})"
            raise LookupError(name_of(inner))
        pieces, position = [], start(node)
        for child in nodes(node):
            pieces += [self._code[position : start(child)], self(child)]
            position = end(child)
        pieces.append(self._code[position : end(node)])
        return " ".join("".join(pieces).split())
