"""Stan programs run in Python: their log density, and the simulator that was derived from them, without a compiler.

A small part of the language, enough for most of the corpus: programs that use more raise NotImplementedError. The
interpreter knows nothing of analysis, split or simulator; it runs their code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import Generator

from bread.backends.stan.language.source import Source
from bread.backends.stan.language.syntax import Node, end, name_of, nodes, parse, start, token
from tests.support import stan_densities as known
from tests.support.stan_densities import RejectedError

_SUFFIXES = ("_lpdf", "_lpmf", "_lupdf", "_lupmf")
MOST_STEPS = 20_000  # of loops, in one run


class Interpreter:
    """One program with data.

    Parameters
    ----------
    text : str
        A tempered program: the likelihood stands in ``bread_temper(...)``.
    data : mapping of str to Any
    """

    def __init__(self, text: str, data: Mapping[str, Any]) -> None:
        source = Source.from_text(text, "program.stan")
        self._blocks, self._code = parse(source), source.code
        self._functions: dict[str, Node] = {}
        if "functions_block" in self._blocks:
            for function in nodes(self._blocks["functions_block"]):
                self._functions.setdefault(name_of(function), function)
        self._data = {name: known.as_array(value) for name, value in data.items()}
        for declaration in nodes(self._blocks["data_block"]):
            kind, declarator = nodes(declaration)
            name = name_of(declarator)
            if not any(token(part, "TYPE") == "int" for part in kind.iter_subtrees()) and name in self._data:
                self._data[name] = known.plain(np.asarray(self._data[name], dtype=float))

    def log_density(self, values: Mapping[str, Any]) -> tuple[float, float]:
        """Return log prior and log likelihood (nats) at parameters, and outcomes in the place of data.

        The log prior is -inf outside of what the parameters are declared as.

        Raises
        ------
        RejectedError
            The program rejects them.
        """
        run = _Run(self._code, self._functions, {**self._data, **values}, None)
        run.block(self._blocks.get("transformed_data_block"))
        if not all(run.is_inside(one) for one in nodes(self._blocks["parameters_block"])):
            return -np.inf, 0.0
        for block in ("transformed_parameters_block", "model_block"):
            run.block(self._blocks.get(block))
        return run.target, run.tempered

    def simulate(self, rng: Generator) -> dict[str, Any]:
        """Run the generated quantities; return all that they declare."""
        run = _Run(self._code, self._functions, dict(self._data), rng)
        run.block(self._blocks.get("transformed_data_block"))
        before = set(run.values)
        run.block(self._blocks.get("generated_quantities_block"))
        return {name: value for name, value in run.values.items() if name not in before}


class _Run:
    def __init__(
        self, code: str, functions: dict[str, Node], values: dict[str, Any], rng: Generator | None
    ) -> None:  # fmt: skip
        self.code, self.functions, self.values, self.rng = code, functions, values, rng
        self.target, self.tempered, self._steps = 0.0, 0.0, 0

    def block(self, block: Node | None) -> None:
        """Run the statements of a block at the outermost level."""
        for statement in nodes(block) if block is not None else []:
            self.statement(statement)

    def is_inside(self, declaration: Node) -> bool:
        """Return whether parameters are within their declared bounds, and in order."""
        kind, *declarators = nodes(declaration)
        inner = kind if kind.data != "array_type" else nodes(kind)[-1]
        values = [np.asarray(self.values[name_of(one)]) for one in declarators]
        for bound in (one for part in nodes(inner) if part.data == "constraint" for one in nodes(part)):
            end_value = self.value(nodes(bound)[0]) if name_of(bound) in ("lower", "upper") else None
            for value in values if end_value is not None else ():
                if np.any(value < end_value if name_of(bound) == "lower" else value > end_value):
                    return False
        if token(inner, "TYPE") in ("ordered", "positive_ordered"):
            return all(bool((np.diff(value, axis=-1) > 0).all()) for value in values)
        return True

    def statement(self, node: Node) -> None:
        """Run one statement."""
        method = getattr(self, f"_do_{node.data}", None)
        if method is None:
            raise NotImplementedError(f"statement {node.data}")
        method(node)

    def _do_declaration(self, node: Node) -> None:
        kind, *declarators = nodes(node)
        for declarator in declarators:
            given = nodes(declarator)
            self.values[name_of(declarator)] = known.copied(self.value(given[0])) if given else self._empty(kind)

    def _empty(self, kind: Node) -> Any:
        shape: list[int] = []
        while kind.data == "array_type":
            *sizes, inner = nodes(kind)
            shape += [int(self.value(size)) for size in sizes]
            kind = inner
        sizes = [int(self.value(size)) for part in nodes(kind) if part.data == "sizes" for size in nodes(part)]
        plain = token(kind, "TYPE")
        if plain in ("cov_matrix", "corr_matrix", "cholesky_factor_corr") and len(sizes) == 1:
            sizes = sizes * 2
        if not shape and not sizes:
            return 0 if plain == "int" else np.nan
        return np.full(shape + sizes, 0 if plain == "int" else np.nan)

    def _do_assignment(self, node: Node) -> None:
        left, right = nodes(node)
        value, operator = self.value(right), token(node, "ASSIGN")
        if left.data == "variable" and name_of(left) == "target":
            self.target += float(np.sum(value))
            return
        if operator is not None:
            value = known.operate(operator[:-1], self.value(left), value)
        self._assign(left, value)

    def _assign(self, left: Node, value: Any) -> None:
        if left.data == "variable":
            self.values[name_of(left)] = known.copied(value)
            return
        if left.data != "indexed":
            raise NotImplementedError(left.data)
        base, *places = nodes(left)
        array = self.value(base)
        if array.dtype.kind == "i" and np.asarray(value).dtype.kind == "f":
            raise NotImplementedError("a real in an array of integers")
        array[self._places(array, places)] = value

    def _do_tilde(self, node: Node) -> None:
        variate, *arguments = nodes(node)
        truncation = next((one for one in arguments if one.data == "truncation"), None)
        given = [self.value(one) for one in arguments if one is not truncation]
        value, name = self.value(variate), name_of(node)
        own = self.functions.get(f"{name}_lpdf")
        if own is not None:
            self.target += self._user_function(own, [value, *given])
            return
        self.target += known.log_density(name, value, given)
        if truncation is not None:
            ends = {one.data: self.value(nodes(one)[0]) for one in nodes(truncation)}
            low, high = ends.get("lower_limit"), ends.get("upper_limit")
            outside = (low is not None and np.any(value < low)) or (high is not None and np.any(value > high))
            self.target += -np.inf if outside else -known.log_probability(name, low, high, given)

    def _do_call_statement(self, node: Node) -> None:
        call = nodes(node)[0]
        if name_of(call) in ("reject", "fatal_error"):
            raise RejectedError(" ".join(str(one.children[0]) for one in nodes(call) if one.data == "string"))
        if name_of(call) != "print":
            raise NotImplementedError(name_of(call))

    def _do_if_(self, node: Node) -> None:
        condition, *bodies = nodes(node)
        if self.value(condition):
            self.statement(bodies[0])
        elif len(bodies) > 1:
            self.statement(bodies[1])

    def _do_while_(self, node: Node) -> None:
        condition, body = nodes(node)
        try:
            while self.value(condition):
                self._step()
                self.statement(body)
        except _Break:
            pass

    def _do_for_range(self, node: Node) -> None:
        low, high, body = nodes(node)
        self._over(name_of(node), range(int(self.value(low)), int(self.value(high)) + 1), body)

    def _do_for_each(self, node: Node) -> None:
        over, body = nodes(node)
        self._over(name_of(node), self.value(over), body)

    def _over(self, name: str, values: Any, body: Node) -> None:
        kept = self.values.get(name)
        try:
            for value in values:
                self._step()
                self.values[name] = value
                self.statement(body)
        except _Break:
            pass
        if kept is not None:
            self.values[name] = kept

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise RejectedError("too many steps")

    def _do_block(self, node: Node) -> None:
        """Run a block; what it declares ends with it."""
        outer = set(self.values)
        for statement in nodes(node):
            self.statement(statement)
        for name in set(self.values) - outer:
            del self.values[name]

    _do_profile = _do_block

    def _do_empty(self, node: Node) -> None:
        pass

    def _do_break_(self, node: Node) -> None:
        raise _Break

    def _do_return_(self, node: Node) -> None:
        raise _Return(self.value(nodes(node)[0]))

    # expressions

    def value(self, node: Node) -> Any:
        """Return the value of an expression."""
        data = node.data
        if data in ("integer", "real"):
            text = str(node.children[0]).replace("_", "")
            return int(text) if data == "integer" else float(text)
        if data == "variable":
            if name_of(node) not in self.values:
                raise NotImplementedError(f"{name_of(node)} is no value")
            return self.values[name_of(node)]
        if data == "parenthesised":
            return self.value(nodes(node)[0])
        if data == "indexed":
            base, *places = nodes(node)
            array = self.value(base)
            return known.plain(array[self._places(array, places)])
        if data in ("row", "array"):
            return np.array([self.value(one) for one in nodes(node)])
        if data == "transpose":
            return np.asarray(self.value(nodes(node)[0])).T
        if data == "unary":
            inner = self.value(nodes(node)[0])
            return (not inner) if token(node, "NOT") else -inner if token(node, "SIGN") == "-" else inner
        if data == "ternary":
            condition, yes, no = nodes(node)
            return self.value(yes if self.value(condition) else no)
        if data == "binary":
            return self._binary(node)
        if data in ("call", "density"):
            return self._call(name_of(node), node)
        raise NotImplementedError(f"expression {data}")

    def _binary(self, node: Node) -> Any:
        left, right = nodes(node)
        operator = self.code[end(left) : start(right)].strip()  # the tree does not hold all of them
        if operator == "&&":
            return bool(self.value(left)) and bool(self.value(right))
        if operator == "||":
            return bool(self.value(left)) or bool(self.value(right))
        return known.operate(operator, self.value(left), self.value(right))

    def _places(self, array: Any, places: list[Node]) -> tuple[Any, ...]:
        found: list[Any] = []
        for place, extent in zip(places, np.shape(array), strict=False):
            inside = [self.value(one) for one in nodes(place)]
            if place.data == "index_one":
                found.append(np.asarray(inside[0], dtype=int) - 1)
                if np.any(found[-1] < 0) or np.any(found[-1] >= extent):
                    raise RejectedError("an index out of range")
            elif place.data == "index_between":
                found.append(slice(int(inside[0]) - 1, int(inside[1])))
            elif place.data == "index_from":
                found.append(slice(int(inside[0]) - 1, None))
            else:
                found.append(slice(None, int(inside[0]) if inside else None))
        return tuple(found)

    def _call(self, name: str, node: Node) -> Any:
        given = [self.value(one) for one in nodes(node)]
        if name == "bread_temper":
            self.tempered += float(np.sum(given[0]))
            return 0.0
        if name in self.functions and name in known.HELPERS:
            return known.HELPERS[name](*given)
        if name in self.functions:
            return self._user_function(self.functions[name], given)
        for suffix in _SUFFIXES:
            if name.endswith(suffix):
                return known.log_density(name.removesuffix(suffix), given[0], given[1:])
        if name.endswith(("_lccdf", "_lcdf")):
            base, _, kind = name.rpartition("_")
            return known.distribution_function(base, kind == "lccdf", given[0], given[1:])
        if name.endswith("_rng"):
            assert self.rng is not None
            return known.draw(name.removesuffix("_rng"), given, self.rng)
        if name not in known.FUNCTIONS:
            raise NotImplementedError(name)
        with np.errstate(all="ignore"):
            return known.plain(np.asarray(known.FUNCTIONS[name](*given)))

    def _user_function(self, function: Node, given: list[Any]) -> Any:
        names = [name_of(one) for one in nodes(function) if one.data == "argument"]
        run = _Run(self.code, self.functions, dict(zip(names, given, strict=True)), self.rng)
        try:
            run.statement(next(one for one in nodes(function) if one.data == "block"))
        except _Return as result:
            return result.value
        raise NotImplementedError("a function without a value")


class _Break(Exception):
    pass


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value
