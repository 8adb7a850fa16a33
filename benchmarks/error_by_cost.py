"""V against gradients and seconds, for each path and engine: python benchmarks/error_by_cost.py [--long].

The models of the README's table on PyMC's engine, on BlackJAX and in Stan, on the same protocol and number of data
sets; with --long at more temperatures, and all Stan programs of `path_models.py`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from measuring import NAMES, SEED, build_model, print_table, read_is_long, seconds_of_a_pair
from path_models import path_models
from stan_cases import LOGISTIC, Case, case

import bread
from bread.report.compat import read_group

PATHS = ("prior", "reference")
TEMPERATURES = {"prior": (64,), "reference": (16,)}
LONG_TEMPERATURES = {"prior": (16, 64, 256, 1024), "reference": (4, 16, 64, 256)}
SIMULATIONS, LONG_SIMULATIONS = 10, 20
MOST_PARAMETERS_OF = ("movielens", "matrix_factorisation")  # hours by themselves: see `benchmarks/paths.py`
PIMA = LOGISTIC.replace("normal(0, 2.5)", "std_normal()")


class Subject(NamedTuple):
    """A model with an engine: what `bread.check` is given."""

    model: str
    engine: str
    kernel: str
    program: Any
    settings: dict[str, Any]


def subjects(is_long: bool) -> Iterator[Subject]:
    """Return every model on every engine."""
    for name in NAMES:
        model, program = build_model(name), _in_stan(name)
        for engine in ("pymc", "blackjax"):
            for kernel in ("nuts", "hmc"):
                yield Subject(name, engine, kernel, model, {"engine": engine})
        for kernel in ("nuts", "hmc"):
            yield Subject(name, "stan", kernel, program.program, {"data": program.data, "observed": program.observed})
    if is_long:
        for name, model in path_models().items():
            if name not in MOST_PARAMETERS_OF:
                settings = {"data": model.data, "observed": list(model.observed), **model.settings}
                yield Subject(name, "stan", "nuts", model.program, settings)


def _in_stan(name: str) -> Case:
    """Return the same model as a Stan program, with the same data."""
    if name == "eight schools":
        return case(name)
    from recipes import RECIPES  # on the path since the models of paths were imported

    return Case(PIMA, RECIPES["logistic_regression"].data(None), "y")


def rows_of(subject: Subject, path: str, temperatures: tuple[int, ...], simulations: int) -> list[tuple[Any, ...]]:
    """Check a model along a path, and return a row for each number of temperatures."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = bread.check(
            subject.program, path=path, kernel=subject.kernel, n_temperatures=temperatures, simulations=simulations,
            draws=0, cores=1, random_seed=SEED, progressbar=False, **{"simulate_from": "prior", **subject.settings},
        )  # fmt: skip
    taken, table = time.process_time() - began, bread.summary(report, kind="bounds")
    both = [read_group(report, name) for name in ("forward", "reverse")]
    ran = report.attrs.get("engine") or subject.engine
    note = "" if ran == subject.engine else f" (ran on {ran})"
    rows = []
    for number in temperatures:
        used = [
            group.sel(n_temperatures=number).where(both[1]["finished"].sel(n_temperatures=number)) for group in both
        ]
        chains = int(both[1]["finished"].sel(n_temperatures=number).sum())
        gradients = sum(float(group["n_gradients"].sum()) for group in used) / chains
        row, whole = table.loc[number], taken if number == temperatures[-1] else ""
        rows.append(
            (subject.model, subject.engine + note, subject.kernel.upper(), path, number, float(row["error"]),
             float(row["error_limit"]), gradients, 1e3 * seconds_of_a_pair(both[0], both[1], number), whole)
        )  # fmt: skip
    return rows


def run(is_long: bool = False) -> None:
    """Measure and print."""
    rows: list[tuple[Any, ...]] = []
    temperatures = LONG_TEMPERATURES if is_long else TEMPERATURES
    simulations = LONG_SIMULATIONS if is_long else SIMULATIONS
    for subject in subjects(is_long):
        for path in PATHS:
            if path == "reference" and subject.engine == "blackjax":
                continue  # what users get of that engine along references is what its page says
            try:
                rows += rows_of(subject, path, temperatures[path], simulations)
            except bread.BreadError as error:
                rows.append((subject.model, subject.engine, subject.kernel.upper(), path, str(error)[:60], *[""] * 5))
            print(".", end="", flush=True)
    print_table(
        "V against gradients and seconds, by path and engine",
        ("model", "engine", "kernel", "path", "T", "V", "its limit", "gradients a pair", "ms a pair", "check, CPU s"),
        rows,
        f"{simulations} data sets from the prior. A pair is one forward and one reverse chain, in milliseconds of wall "
        "time (median over data sets; BlackJAX's data sets run together, and have JAX's compiling in it); the check "
        "is all of it, with compilation in this process.",
    )


if __name__ == "__main__":
    run(read_is_long(__doc__))
