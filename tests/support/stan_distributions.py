"""A Stan program that draws from every univariate distribution that bread draws from, and evaluates its density."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from bread.backends.stan.language.distributions import DISTRIBUTIONS
from bread.backends.stan.native.library import StanLibrary
from bread.backends.stan.native.toolchain import Toolchain
from bread.backends.stan.simulator.helpers import functions_for

# Arguments of each column: ordinary ones and those at an edge.
CONTINUOUS: dict[str, list[tuple[float, ...]]] = {
    "normal": [(-1.0, 0.01), (300.0, 6.0)],
    "std_normal": [()],
    "cauchy": [(-2.0, 0.01), (30.0, 2.0)],
    "double_exponential": [(-1.0, 0.05), (3.0, 6.0)],
    "logistic": [(-1.0, 0.05), (3.0, 6.0)],
    "gumbel": [(-3.0, 0.1), (2.0, 5.0)],
    "skew_normal": [(-1.0, 0.2, -8.0), (0.0, 3.0, 0.0), (0.0, 1.0, 2.0)],
    "exp_mod_normal": [(-1.0, 0.1, 20.0), (-1.0, 2.0, 0.05), (0.0, 1.0, 1.0), (0.0, 3.0, 8.0)],
    "student_t": [(0.5, 2.0, 0.1), (3.0, 2.0, 25.0), (60.0, 0.0, 1.0)],
    "skew_double_exponential": [(0.0, 1.0, 0.1), (-1.0, 3.0, 0.5), (2.0, 0.5, 0.9)],
    "exponential": [(1e-3,), (1.0,), (40.0,)],
    "gamma": [(0.05, 0.01), (1.0, 7.0), (30.0, 0.1)],
    "inv_gamma": [(0.3, 0.1), (2.0, 5.0), (40.0, 1.0)],
    "lognormal": [(-2.0, 0.1), (0.5, 1.0), (0.5, 4.0)],
    "chi_square": [(0.5,), (2.0,), (80.0,)],
    "inv_chi_square": [(0.5,), (2.0,), (80.0,)],
    "weibull": [(0.4, 0.1), (1.0, 5.0), (9.0, 5.0)],
    "frechet": [(0.4, 0.1), (1.0, 5.0), (9.0, 5.0)],
    "rayleigh": [(0.01,), (30.0,)],
    "scaled_inv_chi_square": [(0.5, 0.1), (3.0, 5.0), (60.0, 1.0)],
    "loglogistic": [(0.1, 0.5), (5.0, 1.0), (5.0, 9.0)],
    "beta": [(0.1, 0.3), (1.0, 1.0), (50.0, 4.0)],
    "beta_proportion": [(0.1, 0.5), (0.5, 2.0), (0.9, 60.0)],
    "uniform": [(-3.0, 1e-3), (0.0, 100.0)],
    "pareto": [(0.1, 0.4), (4.0, 2.0), (4.0, 30.0)],
    "pareto_type_2": [(-1.0, 0.1, 0.4), (0.0, 4.0, 2.0), (3.0, 4.0, 30.0)],
    "von_mises": [(-2.0, 0.01), (0.5, 1.0), (0.5, 40.0)],
}
_SIMPLEX, _CUTS = (0.1, 0.2, 0.7), (-1.0, 0.5, 2.0)
COUNTS: dict[str, list[tuple[Any, ...]]] = {
    "poisson": [(1e-3,), (1.0,), (50.0,)],
    "poisson_log": [(-7.0,), (0.0,), (4.0,)],
    "neg_binomial": [(0.2, 2.0), (3.0, 0.1), (100.0, 10.0)],
    "neg_binomial_2": [(0.1, 0.05), (3.0, 2.0), (100.0, 1e5)],
    "neg_binomial_2_log": [(-2.0, 0.05), (1.0, 2.0), (4.0, 1e5)],
    "binomial": [(0, 0.3), (1, 1e-3), (40, 0.7), (40, 1.0)],
    "binomial_logit": [(0, 0.3), (1, -5.0), (40, 0.7)],
    "beta_binomial": [(0, 0.1, 0.3), (1, 2.0, 5.0), (30, 60.0, 0.3), (30, 2.0, 5.0)],
    "bernoulli": [(0.0,), (1e-3,), (0.9,), (1.0,)],
    "bernoulli_logit": [(-3.0,), (0.3,)],
    "beta_neg_binomial": [(2.0, 3.0, 4.0), (20.0, 9.0, 1.0)],
    "yule_simon": [(1.5,), (9.0,)],
    "discrete_range": [(-3, 0), (0, 0), (5, 60)],
    "hypergeometric": [(1, 7, 43), (20, 7, 43), (20, 43, 7), (30, 200, 300), (50, 20, 30), (4, 0, 9)],
    "categorical": [(_SIMPLEX,), ((0.0, 1.0, 0.0),)],
    "categorical_logit": [(_SIMPLEX,), ((-90.0, 700.0, 699.0),)],
    "ordered_logistic": [(-3.0, _CUTS), (0.3, _CUTS), (30.0, _CUTS)],
    "ordered_probit": [(-3.0, _CUTS), (0.3, _CUTS)],
}


def support(name: str, arguments: tuple[Any, ...]) -> tuple[float, float]:
    """Return the least and the greatest value of a count; Stan's mass functions throw elsewhere."""
    n = arguments[0]
    if name in ("binomial", "binomial_logit", "beta_binomial"):
        return 0, n
    if name == "hypergeometric":
        return max(0, n - arguments[2]), min(n, arguments[1])
    if name == "discrete_range":
        return n, arguments[1]
    if name.startswith(("categorical", "ordered")):
        return 1, len(arguments[-1]) + name.startswith("ordered")
    return (0, 1) if name.startswith("bernoulli") else (1 if name == "yule_simon" else 0, np.inf)


@dataclass(frozen=True)
class Table:
    """The program, compiled, and its distributions."""

    library: StanLibrary
    rows: Mapping[str, Sequence[tuple[Any, ...]]]

    def call(self, n: int, at: Mapping[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
        """Return n draws of each distribution, or its log densities ``at`` points; (n, columns) each."""
        data: dict[str, Any] = {"n": n}
        for name, columns in self.rows.items():
            data |= {f"{name}_{i}": [column[i] for column in columns] for i in range(len(columns[0]))}
            points = at.get(name, np.zeros((0, len(columns)))).astype(int if name in COUNTS else float)
            data |= {f"{name}_m": len(points), f"{name}_at": points if len(points) else [[]]}
        found = self.library.instance(data).constrain(np.zeros((1, 1)), "generated", [SeedSequence(seed)])
        return {name: found[f"{name}_{'density' if at else 'draws'}"][0] for name in self.rows}


def compile_table(toolchain: Toolchain, names: Sequence[str]) -> Table:
    """Compile the program with some distributions."""
    rows = {name: columns for name, columns in {**CONTINUOUS, **COUNTS}.items() if name in names}
    data, generated = ["int n;"], []
    for name, columns in rows.items():
        law, k = DISTRIBUTIONS[name], len(columns)
        kind = "int" if law.discrete else "real"
        for i, value in enumerate(columns[0]):
            one = "int" if i in law.integer_arguments else "real"
            data.append(f"array[{k}] {f'vector[{len(value)}]' if isinstance(value, tuple) else one} {name}_{i};")
        data.append(f"int {name}_m; array[{name}_m, {k}] {kind} {name}_at;")
        arguments = [f"{name}_{i}[k]" for i in range(len(columns[0]))]
        draw = law.generator.format(*arguments)
        density = f"{name}_{'lpmf' if law.discrete else 'lpdf'}({name}_at[j, k]{' | ' if arguments else ''}"
        generated.append(
            f"array[n, {k}] {kind} {name}_draws; array[{name}_m, {k}] real {name}_density; for (k in 1:{k}) {{ "
            f"for (j in 1:n) {name}_draws[j, k] = {draw}; "
            f"for (j in 1:{name}_m) {name}_density[j, k] = {density}{', '.join(arguments)}); }}"
        )
    body = "\n".join(generated)
    program = (
        f"functions {{ {functions_for(body)} }}\ndata {{ {' '.join(data)} }}\nparameters {{ real x; }}\n"
        f"model {{ x ~ normal(0, 1); }}\ngenerated quantities {{\n{body}\n}}\n"
    )
    return Table(StanLibrary.of(program, toolchain), rows)
