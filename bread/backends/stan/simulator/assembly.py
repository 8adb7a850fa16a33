"""Parameters that the program puts together before it gives them a density.

``xi[i, 1] = a[i]; xi[i, 2] = b[i]; xi ~ multi_normal(...)``: the transformed parameter ``xi`` holds every element of
the parameters ``a`` and ``b`` exactly once, so that it can be drawn in their place and they be read off. With
``beta[1:(I - 1)] = free; beta[I] = -sum(free)`` a density of independent normals on ``beta`` is their law given that
they sum to zero: independent normals, less their mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bread.backends.stan.language.dataflow import Dataflow, Definition, analyse_dataflow, base_variable
from bread.backends.stan.language.refusals import refuse
from bread.backends.stan.language.rendering import Renderer
from bread.backends.stan.language.scopes import Scopes, Variable, resolve
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, is_density, name_of, nodes, strip, terms, token, walk
from bread.backends.stan.language.variates import rank, read_variate
from bread.backends.stan.simulator.coverage import Coverage, Region
from bread.backends.stan.simulator.cuts import Cuts
from bread.backends.stan.simulator.draw import Draw


@dataclass(frozen=True, eq=False)
class Assembly:
    """A transformed parameter that is drawn in the place of parameters.

    Attributes
    ----------
    variable : Variable
        In the view, where it counts as a parameter.
    parts : tuple of Variable
        The parameters that it holds; in the view they count as transformed parameters.
    copies : tuple of Definition
        The assignments that put them there.
    sums_to_zero : bool
        Whether one more element is minus the sum of the others.
    """

    variable: Variable
    parts: tuple[Variable, ...]
    copies: tuple[Definition, ...]
    sums_to_zero: bool

    def parts_code(self, render: Renderer) -> str:
        """Return statements that read the parameters off the variable."""
        code = []
        for copy in self.copies:
            left, value = nodes(copy.node)
            statement = f"{render(value)} = {render(left)};"
            for loop in reversed(copy.controls):
                low, high, _ = nodes(loop)
                statement = f"for ({name_of(loop)} in ({render(low)}):({render(high)})) {{ {statement} }}"
            code.append(statement)
        return " ".join(code)

    def centred_code(
        self, code: str, draws: list[Draw], flow: Dataflow, source: Source, render: Renderer, cuts: Cuts
    ) -> str:
        """Return the code of independent draws, made to sum to zero if they must.

        Raises
        ------
        RefusedError
            The draws are not independent normals of one law without parameters.
        """
        if not self.sums_to_zero:
            return code
        (draw, *others), name = draws, render.name(self.variable)
        parts = [part for argument in draw.arguments for part in argument.parts]
        is_plain = draw.variate.is_whole and not draw.variate.wrappers and draw.low is None and draw.high is None
        is_alike = not draw.controls and all(rank(part, flow.scopes) == 0 for part in parts)
        is_constant = not any(v.kind == "parameter" for v in flow.depends(*parts))
        if others or draw.distribution not in ("normal", "std_normal") or not (is_plain and is_alike and is_constant):
            raise refuse(
                source,
                draw.statement,
                f"{self.variable.name!r} sums to zero; bread draws this for one normal law without parameters alone.",
                "Pass simulator=: a Stan program or a Python function that draws parameters and data.",
            )
        # the product of n densities, over n - 1 free elements, integrates to the density of a sum of zero
        location, scale = (argument.text(render) for argument in draw.arguments) if draw.arguments else ("0", "1")
        mean, sd = f"size({name}) * ({location})", f"sqrt(size({name})) * ({scale})"
        listed = ", ".join(argument.text(render) for argument in draw.arguments)
        density = f"{draw.distribution}_lpdf({name}{' | ' + listed if listed else ''})"
        return (
            f"real bread_before = bread_sim_log_prior; {code} {name} = {name} - mean({name}); "
            f"bread_sim_log_prior = bread_before + {density};"
            + cuts.add(self.variable, f"normal_lpdf(0 | {mean}, {sd})")
        )


@dataclass(frozen=True)
class View:
    """A program as its simulator sees it: assembled variables are parameters, their parts follow from them."""

    scopes: Scopes
    flow: Dataflow
    assemblies: tuple[Assembly, ...]


def simulation_view(blocks: dict[str, Node], flow: Dataflow) -> View:
    """Return the program with assembled variables as parameters; the program itself where there is none."""
    found = [one for one in (_read(flow, variable) for variable in given_densities(flow)) if one is not None]
    held = [part for one in found for part in one.parts]
    if not found or len(set(held)) < len(held):
        return View(flow.scopes, flow, ())
    scopes = resolve(blocks)
    changed: dict[Variable, Variable] = {}
    for one in found:
        twin = _twin(scopes, one.variable)
        changed[twin] = replace(twin, kind="parameter", bounds={})
        for part in one.parts:
            twin = _twin(scopes, part)
            changed[twin] = replace(twin, kind="transformed parameter")
    scopes.variables = [changed.get(v, v) for v in scopes.variables]
    scopes.uses = {at: changed.get(v, v) for at, v in scopes.uses.items()}
    scopes.declared = {at: changed.get(v, v) for at, v in scopes.declared.items()}
    view = analyse_dataflow(blocks, scopes)
    view.integers, view.values = flow.integers, flow.values
    view.changed, view.jacobians = flow.changed, flow.jacobians
    assemblies = []
    for one in found:
        variable = changed[_twin_of(changed, one.variable)]
        parts = tuple(changed[_twin_of(changed, part)] for part in one.parts)
        copied = {id(copy.node) for copy in one.copies}
        copies = tuple(d for d in view.definitions[variable] if id(d.node) in copied)
        for part in parts:
            view.definitions[part] = [
                Definition(part, nodes(copy.node)[0], frozenset([variable]), copy.node, copy.controls)
                for copy in copies
                if part in copy.reads
            ]
        view.definitions[variable] = []
        assemblies.append(Assembly(variable, parts, copies, one.sums_to_zero))
    return View(scopes, view, tuple(assemblies))


def _twin(scopes: Scopes, variable: Variable) -> Variable:
    return next(v for v in scopes.variables if v.node is variable.node)


def _twin_of(changed: dict[Variable, Variable], variable: Variable) -> Variable:
    return next(v for v in changed if v.node is variable.node)


def given_densities(flow: Dataflow) -> list[Variable]:
    """Return transformed parameters that a statement gives a density."""
    found: dict[Variable, None] = {}
    for contribution in flow.contributions:
        variates = [nodes(contribution.node)[0]] if contribution.kind == "tilde" else []
        variates += [nodes(inner)[0] for inner in walk(contribution.node) if is_density(inner) and nodes(inner)]
        for variate in variates:
            base = base_variable(variate)
            variable = flow.scopes.variable(base) if base.data == "variable" else None
            if variable is not None and variable.kind == "transformed parameter" and variable.rank:
                found[variable] = None
    return list(found)


def _read(flow: Dataflow, variable: Variable) -> Assembly | None:
    """Read the definitions of a variable as copies of parameters; None unless each element is one, exactly once."""
    coverage, scopes = Coverage(flow), flow.scopes
    definitions = flow.definitions.get(variable, [])
    inside: list[Region] = []
    held: dict[Variable, list[Region]] = {}
    copies, closing = [], []
    if len(definitions) == 1 and definitions[0].whole and not definitions[0].controls:
        return None  # another name of one expression
    for definition in definitions:
        if definition.increment or definition.node.data != "assignment" or definition.value is None:
            return None
        if any(control.data != "for_range" for control in definition.controls):
            return None
        target = read_variate(nodes(definition.node)[0], scopes, lambda v: v is variable)
        region = coverage.region(target, definition.controls) if target is not None else None
        if region is None:
            return None
        inside.append(region)
        source = read_variate(definition.value, scopes, lambda v: v.kind == "parameter")
        if source is None:
            closing.append(definition)
            continue
        region = coverage.region(source, definition.controls)
        if region is None or source.wrappers or not _is_free(source.variable, variable):
            return None
        held.setdefault(source.variable, []).append(region)
        copies.append(definition)
    if not copies or not coverage.covers(variable, inside):
        return None
    if any(not coverage.covers(part, regions) for part, regions in held.items()):
        return None
    if closing and not (len(closing) == 1 and len(held) == 1 and _closes(closing[0], next(iter(held)), variable, flow)):
        return None
    return Assembly(variable, tuple(held), tuple(copies), bool(closing))


def _is_free(part: Variable, variable: Variable) -> bool:
    """Return whether elements of ``part`` may take any value that those of ``variable`` take."""
    constrained = part.type not in ("real", "vector", "row_vector", "matrix")
    return not part.bounds and (part.type == variable.type if constrained else variable.plain == variable.type)


def _closes(definition: Definition, part: Variable, variable: Variable, flow: Dataflow) -> bool:
    """Return whether a definition is ``beta[I] = -sum(part)``, with ``part`` the other elements of a vector."""
    assert definition.value is not None
    ((sign, term), *others) = terms(definition.value)
    if term.data == "binary" and token(term, "TIMES") == "*":
        left, right = (strip(child) for child in nodes(term))
        ((factor, one), *_) = terms(left)
        if one.data != "integer" or str(one.children[0]) != "1":
            return False
        sign, term = sign * factor, right
    arguments = nodes(term) if term.data == "call" and name_of(term) == "sum" else []
    whole = read_variate(arguments[0], flow.scopes, lambda v: v is part) if len(arguments) == 1 else None
    is_sum = whole is not None and whole.is_whole and not whole.wrappers
    return not others and sign < 0 and is_sum and variable.rank == 1 and part.rank == 1 and not definition.controls
