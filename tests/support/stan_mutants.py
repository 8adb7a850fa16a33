"""Mutants of Stan programs, class by class, and what becomes of each.

A mutant is another program. bread must refuse it, or simulate *its* law: at the draws of the simulator that is
derived from it the log densities, prior with prior and likelihood with likelihood, differ from the simulator's own by
one constant. And the same comparison must tell the mutant from the program that it was made of, unless both state one
law: whether they do is found apart from any simulator, by log densities at random points.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import default_rng

from bread.backends.stan.analysis.program import Program
from bread.backends.stan.language.scopes import resolve
from bread.backends.stan.language.syntax import (
    Node,
    distribution_of,
    end,
    name_of,
    nodes,
    parse,
    start,
    token,
    walk,
)
from bread.errors import BreadError
from tests.support.stan_corpus_table import Case, analyse_text
from tests.support.stan_interpreter import Interpreter, RejectedError

TOLERANCE = 1e-6  # nats, of the size of the log densities: SciPy and rounding leave less
_SCALED = {
    "normal": 2,
    "cauchy": 2,
    "student_t": 3,
    "lognormal": 2,
    "double_exponential": 2,
}  # argument that is a scale
_OTHER = {
    "normal": "cauchy",
    "cauchy": "normal",
    "exponential": "lognormal",
    "lognormal": "gamma",
    "gamma": "lognormal",
}


@dataclass(frozen=True)
class Mutant:
    """A changed program: the class of its change, and its text."""

    kind: str
    text: str


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant.

    Attributes
    ----------
    outcome : str
        "refused by the analysis", "refused by the comparison" (its own simulator is wrong), "no draws" (all are
        rejected), or "simulated by its own law".
    redrawn : bool
        Whether some of its draws have density zero, and are drawn again.
    same_law : bool or None
        Whether it states the law of the program that it was made of; None where that was not asked.
    is_told : bool
        Whether the comparison tells it from that program: one's simulator from the other's density.
    """

    outcome: str
    redrawn: bool = False
    same_law: bool | None = None
    is_told: bool = False


Edit = tuple[int, int, str]


def mutants(case: Case) -> Iterator[Mutant]:
    """Yield the mutants of a program, in the order of its text, each made by one change."""
    code, blocks = case.source.code, parse(case.source)
    model = blocks["model_block"]
    statements = [node for node in walk(model) if node.data == "tilde" or _is_target(node)]
    edits: list[tuple[str, Edit]] = []
    for node in statements:
        edits += [(kind, edit) for kind, edit in _of_statement(node, code)]
    for node in walk(model):
        if node.data == "for_range":
            low, high, _ = nodes(node)
            edits.append(("loop", (start(low), end(low), f"({code[start(low) : end(low)]}) + 1")))
            edits.append(("loop", (start(high), end(high), f"({code[start(high) : end(high)]}) - 1")))
    edits += [("bound", edit) for edit in _of_bounds(blocks["parameters_block"], code)]
    edits += _of_branches(case, model, statements, code)
    for kind, (first, last, text) in edits:
        yield Mutant(kind, case.source.text[:first] + text + case.source.text[last:])


def _of_statement(node: Node, code: str) -> Iterator[tuple[str, Edit]]:
    first, last = start(node), end(node)
    text = code[first:last]
    yield "dropped", (first, last, ";")
    yield "twice", (first, last, f"{{ {text} {text} }}")
    for inner in walk(node):
        if inner.data in ("integer", "real"):
            value = code[start(inner) : end(inner)]
            yield (
                "constant",
                (start(inner), end(inner), f"{int(value) + 1}" if inner.data == "integer" else f"{value}1"),
            )
        if inner.data == "binary" and token(inner, "SIGN") is not None:
            left, right = nodes(inner)
            between = code[end(left) : start(right)]
            swapped = between.translate(str.maketrans("+-", "-+"))
            yield "sign", (end(left), start(right), swapped)
        if inner.data in ("tilde", "density"):
            yield from _of_density(inner, code)


def _of_density(node: Node, code: str) -> Iterator[tuple[str, Edit]]:
    given = [one for one in nodes(node)[1:] if one.data != "truncation"]
    name = distribution_of(node)
    texts = [code[start(one) : end(one)] for one in given]
    if name in _SCALED and len(given) == _SCALED[name]:
        scale = given[-1]
        for function in ("square", "sqrt"):
            yield "scale for variance", (start(scale), end(scale), f"{function}({texts[-1]})")
    if len(given) >= 2:
        between = code[end(given[-2]) : start(given[-1])]
        yield "swapped", (start(given[-2]), end(given[-1]), f"{texts[-1]}{between}{texts[-2]}")
    if name in _OTHER and node.data == "tilde":
        at = code.index(name, end(nodes(node)[0]))
        arguments = f"({texts[0]}, 1);" if name == "exponential" else code[at + len(name) : end(node)]
        yield "another law", (at, end(node), _OTHER[name] + arguments)
    if node.data == "tilde":
        close = end(node) - 1
        truncation = next((one for one in nodes(node) if one.data == "truncation"), None)
        if truncation is None:
            yield "truncation", (close, close, " T[0.3, ]")
        else:
            yield "truncation", (start(truncation), end(truncation), "")
            yield "truncation", (start(truncation), end(truncation), "T[0.3, ]")


def _of_bounds(block: Node, code: str) -> Iterator[Edit]:
    for found in re.finditer(r"<[^<>]*>", code[start(block) : end(block)]):
        text, first = found.group(), start(block) + found.start()
        if "lower" in text or "upper" in text:
            yield first, start(block) + found.end(), ""
            yield first, start(block) + found.end(), re.sub(r"lower\s*=\s*[^,>]*", "lower=0.25", text)
            yield first, start(block) + found.end(), re.sub(r"upper\s*=\s*[^,>]*", "upper=0.75", text)
    for found in re.finditer(r"\b(real|vector) ?(?=[\[ ])(?!<)", code[start(block) : end(block)]):
        at = start(block) + found.end(1)
        yield at, at, "<lower=0>"


def _of_branches(case: Case, model: Node, statements: list[Node], code: str) -> list[tuple[str, Edit]]:
    """Return constants under conditions and loops that depend on a parameter or an outcome."""
    scopes = resolve(parse(case.source))
    last = end(model) - 1
    found: list[tuple[str, Edit]] = []
    for variable in (*scopes.of_kind("parameter"), *(v for v in scopes.of_kind("data") if v.name in case.observed)):
        value = f"sum(to_array_1d({variable.name}))" if variable.rank else variable.name
        test = f"{value} < {'1' if variable.kind == 'parameter' else '3'}"
        for text in (
            f"if ({test}) target += -2;",
            f"if ({test}) {{ }} else target += 0.7;",
            f"if ({test}) target += negative_infinity();",
            f"if ({test}) target += -normal_lccdf(0 | 0, 5);",
            f"if ({test}) target += normal_lpdf(0.5 | 0, 1);",
            f"{{ int extra = 0; if ({test}) extra = 2; for (extra_i in 1 : extra) target += -1; }}",
            f"{{ real extra = 0; while (extra < 2 && {test}) {{ target += -1; extra += 1; }} }}",
            f"{{ real extra = 0; if ({test}) extra += -2; target += extra; }}",
            f"target += ({test}) ? -2 : 0;",
        ):
            found.append(("branch", (last, last, f"{text} ")))
    for node in statements:
        if node.data == "tilde" and not any(one.data == "truncation" for one in nodes(node)):
            first, close = start(node), end(node)
            text = code[first:close]
            variate, *given = nodes(node)
            other = f"target += {name_of(node)}_lpdf({code[start(variate) : end(variate)]} | "
            other += ", ".join(code[start(one) : end(one)] for one in given) + ") - 3;"
            for parameter in scopes.of_kind("parameter"):
                if parameter.rank == 0 and parameter.name not in code[start(variate) : end(variate)]:
                    branches = f"if ({parameter.name} < 1) {{ {text} }} else {{ {other} }}"
                    found.append(("branch", (first, close, branches)))
                    break
    return found


def _is_target(node: Node) -> bool:
    left = nodes(node)[0] if node.data == "assignment" else None
    return left is not None and left.data == "variable" and name_of(left) == "target"


# ---- what becomes of a mutant ---------------------------------------------------------------------------------


class Original:
    """A program of the corpus, its simulator's draws, and random points to compare programs at."""

    def __init__(self, case: Case, program: Program, n: int) -> None:
        self.case, self.program = case, program
        self._rng = default_rng(20160816)
        self.interpreter = interpreter(program, case.data)
        self.draws = simulate(program, self.interpreter, n, self._rng)[0]

    def verdict(self, mutant: Mutant, n: int) -> Verdict | None:
        """Return what becomes of a mutant; None if it is no program, or not interpreted."""
        try:
            program = analyse_text(mutant.text, observed=list(self.case.observed))
        except BreadError:
            return None
        if not program.is_automatic:
            return Verdict("refused by the analysis")
        try:
            return self._judged(program, n)
        except NotImplementedError:
            return None

    def _judged(self, program: Program, n: int) -> Verdict:
        run = interpreter(program, self.case.data)
        draws, n_redrawn = simulate(program, run, n, self._rng)
        if not draws:
            return Verdict("no draws", redrawn=True)
        if not is_constant(_differences(run, draws), draws):
            return Verdict("refused by the comparison", n_redrawn > 0)
        same_law = self._is_same(run, draws)
        told = not (
            is_constant(_differences(run, self.draws), self.draws)
            and is_constant(_differences(self.interpreter, draws), draws)
        )
        return Verdict("simulated by its own law", n_redrawn > 0, same_law, told)

    def _is_same(self, run: Interpreter, others: list[Draw]) -> bool:
        """Return whether joint densities differ by one constant at points of both programs, and between them."""
        points = [one.values for one in (*self.draws, *others)]
        points += [self._between(points[i], points[j]) for i, j in self._rng.integers(len(points), size=(20, 2))]
        pairs = np.array([[sum(_density(one, point)) for one in (run, self.interpreter)] for point in points])
        both, either = np.isfinite(pairs).all(axis=1), np.isfinite(pairs).any(axis=1)
        if (both != either).any():
            return False
        return _is_one(pairs[both, 0] - pairs[both, 1], np.abs(pairs[both]).max(axis=1))

    def _between(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
        parameters = {parameter.name for parameter in self.program.parameters}
        return {name: 0.5 * (value + other[name]) if name in parameters else value for name, value in one.items()}


@dataclass(frozen=True)
class Draw:
    """Parameters and outcomes, and the simulator's own log prior (normalised) and log likelihood."""

    values: dict[str, Any]
    own: tuple[float, float]


def interpreter(program: Program, data: Mapping[str, Any]) -> Interpreter:
    """Return the tempered program with data."""
    copies = {copy: data[name] for copy, name in program.copies.items()}
    return Interpreter(program.tempered, {**data, **program.fixed_data, **program.switches, **copies})


def simulate(program: Program, run: Interpreter, n: int, rng: Any) -> tuple[list[Draw], int]:
    """Return up to ``n`` joint draws of density above zero, and how many had none or were rejected."""
    draws: list[Draw] = []
    n_redrawn = 0
    while len(draws) < n and n_redrawn < 4 * n:
        try:
            made = run.simulate(rng)
            values = {name: made[f"bread_sim_{name}"] for name in _names(program)}
            log_prior, _ = run.log_density(values)
        except (RejectedError, ValueError, IndexError, np.linalg.LinAlgError):
            n_redrawn += 1
            continue
        own = (made["bread_sim_log_prior"] - float(np.sum(made["bread_cut"])), made["bread_sim_log_likelihood"])
        # of density zero, or too large or too small for its numbers: what is continuous is 0 only where it rounds to it
        if not log_prior > -np.inf or not np.isfinite(own).all() or any(map(_is_out_of_range, values.values())):
            n_redrawn += 1
            continue
        draws.append(Draw(values, own))
    return draws, n_redrawn


def drawn(program: Program, made: dict[str, Any]) -> Draw:
    """Return one draw of a simulator, outcomes of zero included."""
    names = [*(parameter.name for parameter in program.parameters), *program.observed]
    prior = made["bread_sim_log_prior"] - float(np.sum(made["bread_cut"]))
    return Draw({name: made[f"bread_sim_{name}"] for name in names}, (prior, made["bread_sim_log_likelihood"]))


def _is_out_of_range(value: Any) -> bool:
    array = np.asarray(value)
    if array.ndim == 2 and array.shape[0] == array.shape[1] and not np.triu(array, 1).any():
        array = array[np.tril_indices_from(array)]  # a Cholesky factor
    return array.dtype.kind == "f" and not (np.isfinite(array) & (array != 0.0)).all()


def is_constant(difference: np.ndarray, draws: list[Draw]) -> bool:
    """Return whether log priors and log likelihoods, shape (draw, 2), each differ by one constant."""
    if not np.isfinite(difference).all():
        return False
    size = np.abs([one.own for one in draws])
    return all(_is_one(difference[:, part], size[:, part]) for part in (0, 1))


def _is_one(difference: np.ndarray, size: np.ndarray) -> bool:
    """Return whether differences of log densities are one constant, each as nearly as its own size lets it be told."""
    constant = difference[np.argmin(size)]
    return bool((np.abs(difference - constant) < TOLERANCE * (1.0 + size + size.min())).all())


def _differences(run: Interpreter, draws: list[Draw]) -> np.ndarray:
    """Return log densities of one program at the draws of another's simulator, less the simulator's own."""
    densities = np.array([_density(run, one.values) for one in draws])
    return densities - np.array([one.own for one in draws])


def _density(run: Interpreter, values: Mapping[str, Any]) -> tuple[float, float]:
    try:
        return run.log_density(values)
    except (RejectedError, ValueError, KeyError, IndexError, np.linalg.LinAlgError):
        return -np.inf, 0.0


def _names(program: Program) -> list[str]:
    return [*(parameter.name for parameter in program.parameters), *program.observed]
