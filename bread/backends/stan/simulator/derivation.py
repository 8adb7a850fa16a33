"""A simulator derived from a program: Stan code that draws parameters and outcomes from the law the program states."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.refusals import refuse
from bread.backends.stan.language.rendering import Inliner, Renderer, plain_type
from bread.backends.stan.language.scopes import Variable
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node
from bread.backends.stan.language.variates import rank
from bread.backends.stan.simulator.assembly import Assembly
from bread.backends.stan.simulator.bounds import Bounds
from bread.backends.stan.simulator.cuts import Cuts
from bread.backends.stan.simulator.draw import Draw
from bread.backends.stan.simulator.drawer import Drawer
from bread.backends.stan.simulator.edges import Edges
from bread.backends.stan.simulator.forms.inflated import Inflated
from bread.backends.stan.simulator.forms.own_density import written_out
from bread.backends.stan.simulator.forms.residuals import Residual
from bread.backends.stan.simulator.helpers import functions_for
from bread.backends.stan.simulator.implicit import Implicit
from bread.backends.stan.simulator.reader import Reader
from bread.backends.stan.simulator.requirements import Requirements, stays_inside
from bread.backends.stan.simulator.sequences import Sequences
from bread.backends.stan.simulator.slicing import Slicer
from bread.backends.stan.split.own_laws import OwnLaws
from bread.backends.stan.split.split import Classified, Splitter

MOST_ATTEMPTS = 100_000  # joint redraws of all parameters within parametric bounds, then the draw is given up
COUNTED = "bread: the element "  # of what the data give several densities, or none
ONLY_PARAMETERS = "bread_only_parameters"  # data: 1 leaves the outcomes as they are observed
_OWN = "Pass simulator=: a Stan program or a Python function that draws parameters and data."


@dataclass(frozen=True)
class Simulator:
    """Pieces of Stan code to put into a program, and what is known of it.

    Attributes
    ----------
    functions, last_functions, data, generated : str
        Functions, those that call the program's own, data declarations and the body of generated quantities, each on
        one line.
    hyperparameters : tuple of str
        Parameters that the laws of other parameters depend on.
    fixable : tuple of str
        Parameters whose value can be given as data.
    widened : tuple of Variable
        Observed variables whose declared bounds the density does not respect: the bounds are taken off.
    edged_prior, edged_likelihood : tuple of str
        Parameters in whose coordinates the gradient of the log prior (log likelihood) need not have mean zero.
    notes : tuple of str
    held : tuple of str
        Parameters that must be given.
    latents : tuple of str
        Parameters whose law depends on other parameters.
    drawn : tuple of str
        What is drawn as parameters, in the order of the totals of `bread.backends.stan.simulator.cuts`.
    """

    functions: str
    data: str
    generated: str
    hyperparameters: tuple[str, ...]
    fixable: tuple[str, ...]
    widened: tuple[Variable, ...]
    edged_prior: tuple[str, ...]
    edged_likelihood: tuple[str, ...]
    notes: tuple[str, ...]
    held: tuple[str, ...] = ()
    latents: tuple[str, ...] = ()
    drawn: tuple[str, ...] = ()
    last_functions: str = ""


class Derivation:
    """Derives the simulator of one program."""

    def __init__(
        self,
        blocks: dict[str, Node],
        flow: Dataflow,
        source: Source,
        splitter: Splitter,
        observed: Sequence[Variable],
        assemblies: Sequence[Assembly] = (),
    ) -> None:
        self._blocks = blocks
        self._flow = flow
        self._source = source
        self._observed = tuple(observed)
        self._splitter = splitter
        self._parameters = tuple(flow.scopes.of_kind("parameter"))
        self._assembled = {one.variable: one for one in assemblies}
        self._parts = tuple(part for one in assemblies for part in one.parts)
        recomputed = [
            v
            for v in flow.scopes.of_kind("transformed data", "transformed parameter")
            if v not in self._parts and (v.kind == "transformed parameter" or splitter.is_observed([v]))
        ]
        self._random = frozenset((*self._parameters, *self._parts, *self._observed))
        self._render = Renderer(source, flow.scopes, self._random, recomputed)
        self._recomputed = recomputed
        self._cuts = Cuts(self._parameters)
        self._drawer = Drawer(flow, source, self._cuts)
        self._requirements = Requirements(flow, source, splitter, observed)
        self._implicit = Implicit(flow, source, self._render, self._cuts)
        self._notes = self._requirements.notes
        self._fixable: frozenset[str] = frozenset()
        self._held: frozenset[str] = frozenset()

    def derive(self, classified: Sequence[Classified], held: Sequence[str] = ()) -> Simulator:
        """Derive the simulator; the values of ``held`` parameters will be given, and their own law does not matter.

        Raises
        ------
        RefusedError
            The program has a construct that cannot be simulated exactly.
        """
        self._requirements.refuse_structure(self._blocks)
        reader = Reader(self._flow, self._source, self._splitter, frozenset(self._observed))
        self._held = frozenset(held)
        laws = OwnLaws(self._flow, self._source, held)
        kept = [item for item in classified if not held or not laws.belongs(item.contribution, item.part)]
        draws = [draw for item in kept for draw in reader.read(item)]
        by_variable: dict[Variable, list[Draw]] = {variable: [] for variable in (*self._parameters, *self._observed)}
        for draw in draws:
            by_variable[draw.variable].append(draw)
        for parameter in self._parameters:
            if by_variable[parameter]:
                self._requirements.check_parameter(parameter, by_variable[parameter])
        self._implicit.check([p for p in self._parameters if not by_variable[p] and p.name not in self._held])
        for outcome in self._observed:
            self._requirements.check_outcome(outcome, by_variable[outcome])
        slicer = Slicer(self._flow, self._source, self._blocks, self._render, self._drawer, self._recomputed, draws)
        needs = {v: self._needs(v, by_variable[v], slicer) for v in self._parameters}
        needs |= {part: frozenset([one.variable]) for one in self._assembled.values() for part in one.parts}
        needs |= {v: self._needs(v, by_variable[v], slicer) for v in self._observed}
        order = self._order(needs)
        fixable, data = self._fixed_data()
        self._fixable = frozenset(fixable)
        generated = self._generated(order, needs, by_variable, slicer)
        widened = tuple(v for v in self._observed if v.bounds and not all(stays_inside(v, d) for d in by_variable[v]))
        for variable in widened:
            self._notes.append(
                f"{self._source.origin(variable.line)}: the declared bounds of {variable.name!r} are not enforced: "
                "its density may be positive outside of them."
            )
        hyper = self._hyperparameters(needs)
        edges = Edges(self._flow)
        prior, likelihood = (self._names(edges.find(draws, kind)) for kind in ("parameter", "data"))
        held = tuple(parameter.name for parameter in self._parameters if parameter.name in self._held)
        own_functions, own_notes = written_out(draws)
        functions, notes = functions_for(generated + own_functions), (*self._notes, *own_notes)
        latents = self._names({v for v in self._parameters if needs[v] - {v}})
        drawn = tuple(v.name for v in self._parameters)
        return Simulator(
            functions, data, generated, hyper, fixable, widened, prior, likelihood, notes, held, latents, drawn,
            own_functions,
        )  # fmt: skip

    def _hyperparameters(self, needs: dict[Variable, frozenset[Variable]]) -> tuple[str, ...]:
        return self._names({p for v in self._parameters for p in needs[v] if p is not v})

    def _names(self, variables: Collection[Variable]) -> tuple[str, ...]:
        """Return the user's parameters behind ``variables``, in the order of the program."""
        found = {*variables, *(part for v in variables if v in self._assembled for part in self._assembled[v].parts)}
        declared = [*self._flow.scopes.of_kind("parameter"), *self._parts]
        own = [v for v in declared if v in found and v not in self._assembled]
        return tuple(v.name for v in sorted(own, key=lambda v: v.line))

    # the order of draws

    def _needs(self, variable: Variable, draws: list[Draw], slicer: Slicer) -> frozenset[Variable]:
        reads = frozenset(self._flow.reads(*Bounds(variable).nodes())) if variable.kind == "parameter" else frozenset()
        for draw in draws:
            reads |= slicer.reads(draw)
        return slicer.reached(reads) & self._random

    def _order(self, needs: dict[Variable, frozenset[Variable]]) -> list[Variable]:
        order: list[Variable] = []
        remaining = list(needs)
        while remaining:
            ready = [v for v in remaining if all(n is v or n in order for n in needs[v])]
            ready = [v for v in ready if v.kind == "parameter"] or ready
            if not ready:
                names = ", ".join(repr(v.name) for v in remaining)
                raise refuse(self._source, remaining[0].node, f"the laws of {names} depend on each other.", _OWN)
            order.append(ready[0])
            remaining.remove(ready[0])
        return order

    # code

    def _generated(
        self,
        order: list[Variable],
        needs: dict[Variable, frozenset[Variable]],
        by_variable: dict[Variable, list[Draw]],
        slicer: Slicer,
    ) -> str:
        declarations = []
        for variable in (*self._parameters, *self._parts, *self._observed):
            start = f" = {variable.name}" if variable.kind == "data" else ""
            declarations.append(f"{plain_type(variable, self._render)} {self._render.name(variable)}{start};")
        parameters = " ".join(
            self._parameter(v, needs[v], by_variable[v], slicer) for v in order if v in self._parameters
        )
        outcomes = " ".join(self._outcome(v, needs[v], by_variable[v], slicer) for v in order if v.kind == "data")
        counts = " ".join(self._counted(v, by_variable[v], slicer) for v in self._requirements.counted)
        return (
            f"{' '.join(declarations)} {counts} int bread_sim_attempts = 0; "
            f"real bread_sim_log_prior = 0; real bread_sim_log_likelihood = 0; {self._cuts.declaration()} "
            "{ int bread_accept = 0; while (bread_accept == 0) { "
            f"bread_accept = 1; bread_sim_attempts += 1; bread_sim_log_prior = 0; {self._cuts.reset()} "
            f'if (bread_sim_attempts > {MOST_ATTEMPTS}) reject("bread: no draw of the parameters within bounds"); '
            f"{parameters} }} }} if ({ONLY_PARAMETERS} == 0) {{ {outcomes} }}"
        )

    def _counted(self, variable: Variable, draws: list[Draw], slicer: Slicer) -> str:
        """Return code that refuses data by which an element is drawn more than once; one of a parameter, or never."""
        sizes = [self._render(size) for size in variable.dimensions] or ["1"]
        at = [f"bread_c{d}" for d in range(len(sizes))]
        wrong, place = "!= 1" if variable.kind == "parameter" else "> 1", ', ",", '.join(at)
        times = f"bread_times[{', '.join(at)}]"
        check = (
            f'if ({times} {wrong}) reject("{COUNTED}{variable.name}[", {place}, "] has ", {times}, '
            '" densities by these data, and must have one. Give it one, or pass simulator=");'
        )
        for counter, size in reversed(list(zip(at, sizes, strict=True))):
            check = f"for ({counter} in 1:({size})) {{ {check} }}"
        declared = f"array[{', '.join(sizes)}] int bread_times = rep_array(0, {', '.join(sizes)});"
        return f"{{ {declared} {{ {slicer.code(draws, 'count')} }} {check} }}"

    def _parameter(self, variable: Variable, needs: frozenset[Variable], draws: list[Draw], slicer: Slicer) -> str:
        name = self._render.name(variable)
        if draws:
            if variable in needs:
                Sequences(self._flow, self._source).check(variable, draws)
            code = slicer.code(draws, "sequence" if variable in needs else "draw") + self._ordered(variable, draws)
            if variable.type == "sum_to_zero_vector":
                one = Assembly(variable, (), (), sums_to_zero=True)
                code = one.centred_code(code, draws, self._flow, self._source, self._render, self._cuts)
                # its coordinates are orthonormal, those of all elements but one are not
                code += self._cuts.add(variable, f"0.5 * log(size({name}))")
            if variable in self._assembled:
                one = self._assembled[variable]
                code = one.centred_code(code, draws, self._flow, self._source, self._render, self._cuts)
                code += f" {one.parts_code(self._render)}"
        elif variable.name in self._held:
            code = f'reject("bread: the value of {variable.name} must be given");'
        else:
            code = self._implicit.code(variable)
        if variable.name not in self._fixable:
            return f"{{ {code} }}"
        fixed = f"bread_fixed_{variable.name}" + ("" if variable.rank else "[1]")
        return f"if (bread_use_fixed_{variable.name} == 1) {{ {name} = {fixed}; }} else {{ {code} }}"

    def _ordered(self, variable: Variable, draws: list[Draw]) -> str:
        if variable.type not in ("ordered", "positive_ordered"):
            return ""
        name = self._render.name(variable)
        loops = [(f"bread_j{i}", self._render(size)) for i, size in enumerate(variable.array_sizes)]
        row = f"{name}[{', '.join(counter for counter, _ in loops)}]" if loops else name
        alike = len(draws) == 1 and not any(c.data != "for_range" for c in draws[0].controls)
        if alike:
            own = [a for argument in draws[0].arguments for a in argument.parts]
            loop_reads = {v for v in self._flow.depends(*own) if v.kind == "loop"}
            alike = not draws[0].components and not loop_reads and all(rank(a, self._flow.scopes) == 0 for a in own)
            alike = alike and not draws[0].variate.wrappers and draws[0].distribution != "multi_normal"
        if alike:
            code = f"{row} = sort_asc({row});" + self._cuts.add(variable, f"-lgamma(size({row}) + 1.0)")
        else:
            code = f"for (bread_i in 2:size({row})) {{ if ({row}[bread_i] <= {row}[bread_i - 1]) bread_accept = 0; }}"
        for counter, size in reversed(loops):
            code = f"for ({counter} in 1:({size})) {{ {code} }}"
        return " " + code

    def _outcome(self, variable: Variable, needs: frozenset[Variable], draws: list[Draw], slicer: Slicer) -> str:
        follows_errors = any(isinstance(draw.form, Residual) for draw in draws)
        if variable not in needs and not follows_errors:
            return f"{{ {slicer.code(draws, 'draw')} }}"
        Sequences(self._flow, self._source).refuse_own(variable, draws)
        inflated = [isinstance(draw.form, Inflated) for draw in draws]
        if any(inflated) and not all(inflated):
            raise refuse(
                self._source,
                draws[0].statement,
                f"{variable.name!r} is zero-inflated in part, and depends on itself.",
                _OWN,
            )
        visits = "bread_visit = 0; " if any(inflated) else ""
        check = self._checked(variable, f"{visits}{{ {slicer.code(draws, 'check')} }}")
        if follows_errors or (slicer.draws_in_order(draws, variable) and not any(inflated)):
            body = f"{{ {slicer.code(draws, 'sequence')} }}"
        else:
            self._notes.append(f"{variable.name!r} is simulated element by element, its law computed anew each time.")
            body = (
                "int bread_step = 0; int bread_count = 1; "
                f"while (bread_step <= bread_count) {{ bread_step += 1; bread_count = 0; {visits}"
                f"{slicer.code(draws, 'step')} if (bread_step >= bread_count) break; }}"
            )
        if any(inflated):
            size = " * ".join(f"({self._render(one)})" for one in variable.dimensions) or "1"
            body = f"array[{size}] int bread_from = rep_array(0, {size}); int bread_visit = 0; {body}"
            check += f" bread_sim_log_likelihood = bread_before; {{ {slicer.code(draws, 'total')} }}"
        return f"{{ real bread_before = bread_sim_log_likelihood; {body} {check} }}"

    def _checked(self, variable: Variable, code: str) -> str:
        """Return code that refuses outcomes whose density, computed again, is not the one that they were drawn by.

        Outcomes of which numbers nearby (1e-13 away) have another density yet were drawn right, and lost in
        rounding: such draws are made again.
        """
        later = (
            f'reject("bread: the law of {variable.name} reads {variable.name} itself, or later elements of it: nothing '
            'can be drawn from it. Give what it reads (the number of trials, a weight) as data of its own");'
        )
        if variable.plain != "int":
            later = (
                f"real bread_first = bread_again; {self._moved(variable, f'bread_again = 0; {code}')} "
                "if (!(abs(bread_again - bread_first) <= 0.1 * abs(bread_first - bread_own))) "
                f'reject("rounding the outcome {variable.name} changes its density"); {later}'
            )
        return (  # either may be infinite, or no number
            f"real bread_own = bread_sim_log_likelihood - bread_before; real bread_again = 0; {code} "
            f"if (!(abs(bread_again - bread_own) <= 1e-8 * (1 + fmin(abs(bread_own), abs(bread_again))))) "
            f"{{ {later} }}"
        )

    def _moved(self, variable: Variable, code: str) -> str:
        """Return ``code`` run with every outcome moved up or down, by far more than rounding does."""
        name = self._render.name(variable)
        counters = [f"bread_p{i}" for i in range(variable.rank)]
        element = f"{name}[{', '.join(counters)}]" if counters else name
        phase = " + ".join(f"{78.233 * i + 12.9898} * {counter}" for i, counter in enumerate(counters)) or "1"
        moved = f"{element} = {element} * (1 + 1e-13 * sin({phase}));"
        for counter, size in reversed(list(zip(counters, variable.dimensions, strict=True))):
            moved = f"for ({counter} in 1:({self._render(size)})) {{ {moved} }}"
        return f"{plain_type(variable, self._render)} bread_kept = {name}; {moved} {code} {name} = bread_kept;"

    def _fixed_data(self) -> tuple[tuple[str, ...], str]:
        inline = Inliner(self._source, self._flow)
        fixable, declarations = [], []
        for variable in self._parameters:
            if variable in self._assembled:
                names = ", ".join(repr(part.name) for part in self._assembled[variable].parts)
                self._notes.append(f"{names}: drawn together as {variable.name!r}; cannot be held at given values.")
                continue
            try:
                declared = plain_type(variable, inline)
            except LookupError:
                self._notes.append(
                    f"{self._source.origin(variable.line)}: the size of {variable.name!r} is computed by a loop or a "
                    "condition, so that its value cannot be given as data."
                )
                continue
            fixable.append(variable.name)
            # empty unless it is used, so that it may be left out of the data
            use = f"bread_use_fixed_{variable.name}"
            if variable.rank:
                first = inline(variable.dimensions[0])
                declared = declared.replace(f"[{first}", f"[{use} ? {first} : 0", 1)
            else:
                declared = f"array[{use}] {declared}"
            declarations.append(f"int<lower=0, upper=1> {use}; {declared} bread_fixed_{variable.name};")
        return tuple(fixable), " ".join([f"int<lower=0, upper=1> {ONLY_PARAMETERS};", *declarations])
