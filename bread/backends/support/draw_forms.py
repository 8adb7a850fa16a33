"""The forms in which people have draws, as arrays by name: files, tables with a column a number, NumPyro's sampler.

Tables are those of R's ``posterior`` (columns ``.chain``, ``.iteration``, ``theta[1,2]``), of cmdstanpy's ``draws_pd``,
and the CSV files of CmdStan and rstan (a file a chain, ``theta.1.2``, comments), which cmdstanr and brms leave too.
"""

from __future__ import annotations

import csv
import itertools
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.errors import InvalidArgumentError

CHAIN, DRAW = (".chain", "chain__", "chain"), (".iteration", "iter__", ".draw", "draw__", "draw")
MOST_NAMED = 8  # columns that a message lists
DIVERGENT = "divergent__"
MISSING, NOT_A_NUMBER = ("NA", ""), float("nan")  # as R writes it
_ELEMENT = re.compile(r"(.+?)(?:\[(\d+(?:,\s*\d+)*)\]|\.(\d+(?:\.\d+)*)\.?)")  # "theta[1,2]", "theta.1.2", "theta.1.2."
_SETTING = re.compile(r"#\s*(\w+)\s*=\s*([^\s(]+)")  # "#     num_warmup = 1000 (Default)", "# warmup=1000"
_ADAPTED = "# Adaptation terminated"  # CmdStan and rstan write it where warm-up ends


@dataclass(frozen=True)
class PlainDraws:
    """Draws and statistics of the sampler, as a container of ArviZ has them: arrays (chain, draw, ...) by name."""

    posterior: Mapping[str, Any]
    sample_stats: Mapping[str, Any]


def plain_form(posterior: Any) -> Any:
    """Return draws of these forms as `PlainDraws`, and anything else as it is.

    Raises
    ------
    InvalidArgumentError
        A file cannot be read, or holds no draws.
    """
    if is_path(posterior):
        paths = [posterior] if isinstance(posterior, (str, os.PathLike)) else list(posterior)
        return _read_files([Path(one) for one in paths])
    if hasattr(posterior, "columns") and hasattr(posterior, "shape"):  # a data frame
        labels = getattr(posterior, "column_names", posterior.columns)  # the former of Arrow's
        return _from_tables([{str(label): np.asarray(posterior[label]) for label in labels}])
    if hasattr(posterior, "get_samples") and hasattr(posterior, "get_extra_fields"):  # NumPyro's MCMC
        return PlainDraws(posterior.get_samples(group_by_chain=True), posterior.get_extra_fields(group_by_chain=True))
    return posterior


def is_path(value: Any) -> bool:
    """Return whether a value is the path of a file, or a list of them."""
    is_list = isinstance(value, (list, tuple)) and bool(value)
    return all(isinstance(one, (str, os.PathLike)) for one in (value if is_list else (value,)))


class _Elements(Mapping[str, NDArray[Any]]):
    """Arrays (chain, draw, ...) of columns (chain, draw) that hold one number each, put together when asked for."""

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._columns: dict[str, dict[tuple[int, ...], NDArray[Any]]] = {}
        for label, values in columns.items():
            found = _ELEMENT.fullmatch(label)
            index = tuple(map(int, re.split(r"[,.]\s*", found[2] or found[3]))) if found else ()
            self._columns.setdefault(found[1] if found else label, {})[index] = values

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, name: str) -> NDArray[Any]:
        elements = self._columns[name]
        if () in elements:
            return elements[()]
        first = 0 if any(0 in index for index in elements) else 1
        shape = tuple(max(along) - first + 1 for along in zip(*elements, strict=False))
        wanted = itertools.product(*(range(first, first + n) for n in shape))
        missing = next((index for index in wanted if index not in elements), None)
        if missing is not None or math.prod(shape) != len(elements):
            element = "" if missing is None else f": {name}[{','.join(map(str, missing))}] is missing"
            raise InvalidArgumentError(
                f"posterior= has {len(elements)} columns of {name!r} that make no array{element}. Pass all elements of "
                "a variable, or none."
            )
        values = np.stack([elements[index] for index in sorted(elements)], axis=2)
        return values.reshape(*values.shape[:2], *shape)


def _from_tables(tables: Sequence[Mapping[str, NDArray[Any]]]) -> PlainDraws:
    """Return the draws of tables, by column: of each its own chains.

    Rows that no chain is told of may be in any order (rstan's ``extract`` shuffles them, pystan's ``to_frame`` has the
    chains in turn), and effective sizes need that in which they were drawn.
    """
    by_chain: list[dict[str, NDArray[Any]]] = []
    for columns in tables:
        n_rows = len(next(iter(columns.values()), ()))
        number = next((columns[label] for label in CHAIN if label in columns), None)
        if number is None:
            raise InvalidArgumentError(
                "posterior= has a table without a column '.chain', so that the order of its draws is not known; it has "
                f"{', '.join(map(repr, list(columns)[:MOST_NAMED]))}. Pass as_draws_df(fit) of R's posterior or "
                "cmdstanpy's draws_pd(), or add '.chain' to rows in their order."
            )
        order = next((columns[label] for label in DRAW if label in columns), np.arange(n_rows))
        values = {label: one for label, one in columns.items() if label not in (*CHAIN, *DRAW)}
        for chain in np.unique(number):
            rows = np.flatnonzero(number == chain)
            rows = rows[np.argsort(order[rows], kind="stable")]
            by_chain.append({label: one[rows] for label, one in values.items()})
    lengths = [len(next(iter(chain.values()), ())) for chain in by_chain]
    if len(set(lengths)) != 1 or not lengths[0]:
        raise InvalidArgumentError(
            f"posterior= has chains of {', '.join(map(str, lengths)) or 'no'} draws. Pass tables of draws whose chains "
            "have one length (a column .chain numbers them)."
        )
    shared = [label for label in by_chain[0] if all(label in chain for chain in by_chain)]
    found = {label: np.stack([chain[label] for chain in by_chain]) for label in shared}
    statistics = {"diverging": found.pop(DIVERGENT)} if DIVERGENT in found else {}
    return PlainDraws(_Elements(found), statistics)


def _read_files(paths: Sequence[Path]) -> PlainDraws:
    """Return what is in files of draws."""
    named = ", ".join(repr(str(path)) for path in paths)
    try:
        return _from_tables([_read_file(path) for path in paths])
    except InvalidArgumentError:
        raise
    except ImportError as error:
        raise InvalidArgumentError(
            f"posterior= {named} cannot be read: {error}. Install it (pip install pyarrow), or write a CSV file."
        ) from error
    except Exception as error:  # what is raised depends on what the files hold
        reason = " ".join(str(error).split())
        raise InvalidArgumentError(
            f"posterior= {named} cannot be read as tables of draws (CSV of CmdStan, rstan or a data frame, Parquet): "
            f"{reason}. Pass the files that the sampler wrote; what ArviZ saved, as arviz.from_netcdf returns it."
        ) from error


def _read_file(path: Path) -> dict[str, NDArray[Any]]:
    """Return the columns of a file, without the rows of warm-up."""
    if path.suffix in (".parquet", ".pq"):
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(path)
        return {label: table.column(label).to_numpy() for label in table.column_names}
    rows: list[str] = []
    comments: list[str] = []
    warm_up = 0
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            comments.append(line)
            warm_up = max(len(rows) - 1, 0) if line.startswith(_ADAPTED) else warm_up
        elif line.strip():
            rows.append(line)
    settings = {str(found[1]): str(found[2]) for line in comments for found in _SETTING.finditer(line)}
    method = settings.get("method", comments[0] if comments else "")
    if "optimize" in method or "Point Estimate" in method:  # of CmdStan, of rstan
        raise InvalidArgumentError(
            f"posterior= {str(path)!r} holds one point, an optimum, not draws. Pass what Stan's sampler, Pathfinder, "
            "Laplace's method or variational inference wrote."
        )
    header, *lines = csv.reader(rows)
    broken = next((number for number, line in enumerate(lines, 1) if len(line) != len(header)), None)
    if broken is not None:
        raise InvalidArgumentError(
            f"posterior= {str(path)!r} has {len(lines[broken - 1])} numbers in row {broken} below {len(header)} names: "
            "no table of draws, or of a run that was stopped, or is not over? Pass whole files."
        )
    if "ariational" in method:
        warm_up = 1  # the first row is the mean of the approximation
    elif not warm_up and settings.get("save_warmup") in ("1", "true"):  # nothing was adapted
        count = settings.get("num_warmup", settings.get("warmup", "0"))
        warm_up = math.ceil(int(count) / int(settings.get("thin", "1")))
    columns = {label: _numbers(column) for label, *column in zip(header, *lines[warm_up:], strict=True)}
    is_chain = bool(comments) and not any(label in columns for label in CHAIN)  # as Stan writes them, a file each
    return columns | ({CHAIN[0]: np.zeros(len(lines) - warm_up)} if is_chain else {})


def _numbers(column: Sequence[str]) -> NDArray[Any]:
    """Return numbers; text as it is, where some is none."""
    try:
        return np.array([NOT_A_NUMBER if one in MISSING else float(one) for one in column])
    except ValueError:
        return np.array(column)
