"""Stan code that makes one draw: of an element, of a vectorised statement, of a vector or of a matrix."""

from __future__ import annotations

from bread.backends.stan.language.dataflow import Dataflow
from bread.backends.stan.language.distributions import Distribution
from bread.backends.stan.language.refusals import quote, refuse
from bread.backends.stan.language.rendering import Renderer
from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node
from bread.backends.stan.language.variates import Index, rank
from bread.backends.stan.simulator.bounds import Bounds, DeclaredBounds
from bread.backends.stan.simulator.cuts import Cuts
from bread.backends.stan.simulator.draw import Argument, Draw, Mode
from bread.backends.stan.simulator.truncated import TRIES, inverse_code
from bread.backends.stan.split.rewriting import truncated_probability

MOST_TRIES = 1_000_000  # redraws of one element within constant bounds: a second or so, then the draw is given up
# what may be said about parameters whose type has a constraint that a draw of independent elements cannot meet
_ONLY = {
    "simplex": ("dirichlet",),
    "cov_matrix": ("wishart", "inv_wishart"),
    "corr_matrix": ("lkj_corr",),
    "cholesky_factor_corr": ("lkj_corr_cholesky",),
    "cholesky_factor_cov": ("wishart_cholesky", "inv_wishart_cholesky"),
}
_NO_ROOM = "Pass simulator=: a Stan program or a Python function that draws parameters and data."


class Drawer:
    """Writes the code of draws for one program."""

    def __init__(self, flow: Dataflow, source: Source, cuts: Cuts) -> None:
        self.flow = flow
        self.source = source
        self._bounds = DeclaredBounds(flow, source)
        self._cuts = cuts

    def code(self, draw: Draw, render: Renderer, mode: Mode) -> str:
        """Return the statements that make ``draw``, its log density added up.

        In mode "step" only the element number ``bread_step`` is drawn; in mode "check" nothing is drawn, and the log
        density of the values held is added to ``bread_again``.
        """
        distribution = draw.law
        self._check_type(draw)
        if distribution.shape == "scalar":
            return self._scalars(draw, distribution, render, mode)
        if distribution.shape == "vector":
            return self._vectors(draw, distribution, render, mode)
        return self._matrix(draw, distribution, render, mode)

    def _check_type(self, draw: Draw) -> None:
        variable, name = draw.variable, draw.distribution
        self._check_single(draw)
        typed = _ONLY.get(variable.type)
        if variable.kind == "parameter" and typed is not None and name not in typed:
            raise refuse(
                self.source,
                draw.statement,
                f"a {variable.type} under {name!r} has no simulator (known: {', '.join(typed)}).",
                _NO_ROOM,
            )
        if variable.kind == "parameter" and typed is None:
            lower_dimensional = {n for names in _ONLY.values() for n in names}
            if name in lower_dimensional:
                raise refuse(
                    self.source,
                    draw.statement,
                    f"{name!r} needs a parameter of its own type, {variable.name!r} is a {variable.type}.",
                    "Declare it with that type.",
                )
            if name == "von_mises":
                raise refuse(
                    self.source,
                    draw.statement,
                    "von_mises is periodic: as a prior it has no generator over declared bounds.",
                    _NO_ROOM,
                )

    def _check_single(self, draw: Draw) -> None:
        """Refuse one value whose argument is a container: it has the product of several densities."""
        distribution = draw.law
        if distribution.shape != "scalar" or draw.variate.open:
            return
        for i, argument in enumerate(draw.arguments):
            plain = argument.template == "{0}" and i not in distribution.vector_arguments
            if plain and rank(argument.parts[0], self.flow.scopes) not in (0, None):
                reason = "gives a single value several densities, one per element of an argument: their product"
                what = f"{reason} has no generator ({quote(self.source, argument.parts[0])})."
                raise refuse(self.source, draw.statement, what, f"Give it numbers as arguments. {_NO_ROOM}")

    # scalars

    def _scalars(self, draw: Draw, distribution: Distribution, render: Renderer, mode: Mode) -> str:
        variate = draw.variate
        dimensions = variate.open
        if not dimensions:
            element = self.element(draw, render)
            return self._one(draw, distribution, element, [a.text(render) for a in draw.arguments], None, render, mode)
        counts = [variate.indices[d].count(render) for d in dimensions]
        if len(dimensions) == 1:
            counters = {dimensions[0]: "bread_i"}
        else:  # to_vector(matrix): column by column
            counters = {
                dimensions[0]: f"(bread_i - 1) % {counts[0]} + 1",
                dimensions[1]: f"(bread_i - 1) %/% {counts[0]} + 1",
            }
        positions = [index.at(counters.get(d, ""), render) for d, index in enumerate(variate.indices)]
        total = " * ".join(counts)
        before, arguments = [], []
        for i, argument in enumerate(draw.arguments):
            text = argument.text(render)
            if i in distribution.vector_arguments:
                arguments.append(f"bread_vector_at({text}, bread_i)")
            elif self._is_scalar(argument):
                arguments.append(text)
            elif mode in ("sequence", "step"):  # earlier elements may enter: computed anew for each
                arguments.append(f"bread_at({text}, bread_i)")
            elif i in distribution.integer_arguments:
                before.append(f"array[{total}] int bread_a{i} = bread_integers({text}, {total});")
                arguments.append(f"bread_a{i}[bread_i]")
            else:
                before.append(f"vector[{total}] bread_a{i} = bread_reals({text}, {total});")
                arguments.append(f"bread_a{i}[bread_i]")
        element = self._element(draw, positions, render)
        body = self._one(draw, distribution, element, arguments, "bread_i", render, mode)
        return f"{{ {' '.join(before)} for (bread_i in 1:({total})) {{ {body} }} }}"

    def _is_scalar(self, argument: Argument) -> bool:
        return argument.template == "{0}" and rank(argument.parts[0], self.flow.scopes) == 0

    def element(self, draw: Draw, render: Renderer) -> str:
        """Return the one element that is drawn, or the whole row, as an expression."""
        return self._element(draw, [i.at("", render) for i in draw.variate.indices if i.kind != "all"], render)

    def count(self, draw: Draw, render: Renderer) -> str:
        """Return the statements that count the elements that are drawn, in ``bread_times``."""
        counters = {d: f"bread_c{d}" for d in draw.variate.open}
        positions = [index.at(counters.get(d, ""), render) for d, index in enumerate(draw.variate.indices)]
        code = f"bread_times[{', '.join(positions) or '1'}] += 1;"
        for d, counter in counters.items():
            code = f"for ({counter} in 1:{draw.variate.indices[d].count(render)}) {{ {code} }}"
        return code

    def _element(self, draw: Draw, positions: list[str], render: Renderer) -> str:
        name = render.name(draw.variable)
        return f"{name}[{', '.join(positions)}]" if positions else name

    def _one(
        self,
        draw: Draw,
        distribution: Distribution,
        element: str,
        arguments: list[str],
        counter: str | None,
        render: Renderer,
        mode: Mode,
    ) -> str:
        """Return the code for one element."""
        value_type = "int" if distribution.discrete else "real"
        variate = draw.variate
        density = self._density(draw, distribution, "bread_x", arguments, render)
        if mode == "check":
            if variate.wrappers:
                raise refuse(
                    self.source, draw.statement, "an outcome that is shifted or scaled enters its own law.", _NO_ROOM
                )
            return f"{{ {value_type} bread_x = {element}; bread_again += {density}; }}"
        generator = distribution.generator.format(*arguments, variate=element)

        def operand(node: Node) -> str:
            """Return what stands beside the element that is drawn: its own element, where that is a container."""
            plain = counter is None or rank(node, self.flow.scopes) == 0
            return render(node) if plain else f"bread_at({render(node)}, {counter})"

        value = variate.invert("bread_x", operand)
        outside, whole = self._bounds.outside(draw, distribution, value, counter, render)
        truncation = self._truncation("bread_x", draw, render)
        redraw = " || ".join([*truncation, *outside])
        code = f"{value_type} bread_x = {generator};"
        if redraw:
            tries = f'if (bread_tries > {MOST_TRIES}) reject("bread: no draw of {draw.variable.name} within bounds");'
            if truncation and not outside:
                low, high = (render(node) if node is not None else None for node in (draw.low, draw.high))
                inverse = inverse_code(draw.distribution, distribution, low, high, arguments, "bread_x")
                tries = f"if (bread_tries > {TRIES}) {{ {inverse} break; }}"
            code += (
                f" {{ int bread_tries = 0; while ({redraw}) {{ bread_x = {generator}; bread_tries += 1; {tries} }} }}"
            )
        # the density before the element: arguments that read it are then what it was drawn with
        slope = "" if variate.gives is None else variate.log_slope(value, operand)
        code += f" {draw.total} += {density}{slope}; {element} = {value};"
        low, high = self._bounds.ends(draw, counter, render) if outside else (None, None)
        code += self._cuts.element(draw, distribution, low, high, arguments, operand)
        if whole:
            code += f" if ({' || '.join(whole)}) bread_accept = 0;"
        if mode == "step":
            return f"bread_count += 1; if (bread_count == bread_step) {{ {code} }}"
        return f"{{ {code} }}"

    def assign(self, draw: Draw, render: Renderer) -> str:
        """Return the code that draws an unbounded element or row, without its density: for a mixture's component."""
        distribution = draw.law
        self._check_type(draw)
        arguments = [a.text(render) for a in draw.arguments]
        element = self.element(draw, render)
        if draw.variate.open and distribution.shape == "scalar":
            given = [f"bread_at({text}, bread_i)" for text in arguments]
            one = self._element(draw, [index.at("bread_i", render) for index in draw.variate.indices], render)
            drawn = distribution.generator.format(*given, variate=one)
            return f"for (bread_i in 1:{draw.variate.indices[-1].count(render)}) {{ {one} = {drawn}; }}"
        return f"{element} = {distribution.generator.format(*arguments, variate=element)};"

    def held_density(self, draw: Draw, render: Renderer) -> str:
        """Return the log density of the element held now, as an expression."""
        return self._density(
            draw, draw.law, self.element(draw, render), [a.text(render) for a in draw.arguments], render
        )

    def _density(
        self, draw: Draw, distribution: Distribution, value: str, arguments: list[str], render: Renderer
    ) -> str:
        function = draw.distribution + ("_lpmf" if distribution.discrete else "_lpdf")
        text = f"{function}({value} | {', '.join(arguments)})" if arguments else f"{function}({value})"
        low, high = (render(node) if node is not None else None for node in (draw.low, draw.high))
        if low is None and high is None:
            return text
        return f"{text} - ({truncated_probability(draw.distribution, low, high, ', '.join(arguments), function)})"

    def _truncation(self, value: str, draw: Draw, render: Renderer) -> list[str]:
        found = []
        if draw.low is not None:
            found.append(f"{value} < {render(draw.low)}")
        if draw.high is not None:
            found.append(f"{value} > {render(draw.high)}")
        if found and draw.variate.open:
            raise refuse(
                self.source,
                draw.statement,
                "truncates a container; Stan's normalising constant then depends on the shapes.",
                "Write a loop over its elements.",
            )
        return found

    # vectors and matrices

    def _slice(self, index: Index, counter: str, render: Renderer) -> str:
        if index.kind == "all":
            return ":"
        if index.kind == "between":
            low = "" if index.low is None else render(index.low)
            return f"{low}:{'' if index.high is None else render(index.high)}"
        assert index.low is not None
        return render(index.low)

    def _vectors(self, draw: Draw, distribution: Distribution, render: Renderer, mode: Mode) -> str:
        variate, variable = draw.variate, draw.variable
        dimensions = variate.open
        if not 1 <= len(dimensions) <= 2 or draw.low is not None or draw.high is not None or variate.wrappers:
            raise refuse(self.source, draw.statement, "a vector is drawn in a form that bread does not know.", _NO_ROOM)
        element_axis = dimensions[-1]
        rank_of_element = variable.rank - len(variable.array_sizes)
        if distribution.discrete != (variable.plain == "int") or (rank_of_element == 2 and len(dimensions) == 2):
            raise refuse(self.source, draw.statement, "a vector is drawn in a form that bread does not know.", _NO_ROOM)
        is_row = variable.plain == "row_vector" or (rank_of_element == 2 and element_axis == variable.rank - 1)
        positions = []
        for d, index in enumerate(variate.indices):
            positions.append(self._slice(index, "", render) if d == element_axis else index.at("bread_i", render))
        name = render.name(variable)
        value = name if set(positions) == {":"} else f"{name}[{', '.join(positions)}]"
        arguments = []
        for i, argument in enumerate(draw.arguments):
            text = argument.text(render)
            arguments.append(f"bread_vector_at({text}, bread_i)" if i in distribution.vector_arguments else text)
        generator = distribution.generator.format(*arguments, variate=value)
        if is_row:
            generator = f"({generator})'"
        kind = "row_vector" if is_row else "vector"
        kind = f"array[size({value})] int" if distribution.discrete else f"{kind}[size({value})]"
        code = self._whole_code(draw, value, kind, generator, arguments, mode, render)
        count = variate.indices[dimensions[0]].count(render) if len(dimensions) == 2 else "1"
        return f"for (bread_i in 1:{count}) {{ {code} }}"

    def _matrix(self, draw: Draw, distribution: Distribution, render: Renderer, mode: Mode) -> str:
        variate, variable = draw.variate, draw.variable
        if (
            len(variate.open) != 2
            or any(variate.indices[d].kind != "all" for d in variate.open)
            or variable.plain != "matrix"
            or variate.wrappers
        ):
            raise refuse(self.source, draw.statement, "a matrix is drawn in a form that bread does not know.", _NO_ROOM)
        positions = [render(index.low) for index in variate.indices if index.kind == "one" and index.low is not None]
        name = render.name(variable)
        value = f"{name}[{', '.join(positions)}]" if positions else name
        arguments = [argument.text(render) for argument in draw.arguments]
        size = variate.indices[-1].count(render)
        generator = distribution.generator.format(*arguments, size=size)
        kind = f"matrix[rows({value}), cols({value})]"
        return self._whole_code(draw, value, kind, generator, arguments, mode, render)

    def _whole_code(
        self, draw: Draw, value: str, kind: str, generator: str, arguments: list[str], mode: Mode, render: Renderer
    ) -> str:
        if mode == "check":
            return f"bread_again += {self._density(draw, draw.law, value, arguments, render)};"
        density = self._density(draw, draw.law, "bread_x", arguments, render)
        # as for one element: the density by the arguments that it was drawn with
        code = f"{kind} bread_x = {generator}; {draw.total} += {density}; {value} = bread_x;"
        bounds = Bounds(draw.variable)
        if draw.variable.kind == "parameter" and bounds:
            conditions = [
                f"{reduce}({value}) {sign} {self._bounds.bound(node, draw, None, render)}"
                for node, reduce, sign in ((bounds.lower, "min", "<="), (bounds.upper, "max", ">="))
                if node is not None
            ]
            if bounds.positive:
                conditions.append(f"min({value}) <= 0")
            code += f" if ({' || '.join(conditions)}) bread_accept = 0;"
        return f"bread_count += 1; if (bread_count == bread_step) {{ {code} }}" if mode == "step" else f"{{ {code} }}"
