"""What the user hands over: a program (object, path or text), data (dict or JSON file), and their types."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.argument_rules import elements, is_count, received
from bread.backends.stan.language.source import Place, Source, Stanc
from bread.backends.support.not_finite import bracketed_index, describe_not_finite
from bread.errors import InvalidArgumentError

_NUMBERS = {"NaN": math.nan, "Inf": math.inf, "Infinity": math.inf, "-Inf": -math.inf, "-Infinity": -math.inf}
_NO_MISSING = "Stan has no missing values: leave such rows out, or declare them as parameters."
_DEEPEST = 64  # dimensions, as many as NumPy's arrays may have
_TOO_DEEP = "is nested too deeply to be read: arrays and tuples of Stan have a few dimensions."
_DTYPES = {"int": np.int64, "real": np.float64, "complex": np.complex128}


@dataclass(frozen=True)
class Declared:
    """A variable as stanc sees it.

    Attributes
    ----------
    type : {"int", "real", "complex", "tuple"}
        Of one element.
    rank : int
        Number of axes.
    """

    type: str
    rank: int


def is_stan_model(model: Any) -> bool:
    """Return whether ``model`` is a Stan program: its path, its text, or an object like `cmdstanpy.CmdStanModel`."""
    return isinstance(model, (str, os.PathLike)) or hasattr(model, "stan_file")


def read_program(model: Any, name: str = "program.stan") -> tuple[Source, str]:
    """Return the program and its name.

    Parameters
    ----------
    model : CmdStanModel, path or str
        An object with ``stan_file`` (its include paths count), the path of a ``.stan`` file, or the program itself: a
        text with a brace that is not the name of a file.
    name : str
        Of a program by its text, in messages.

    Raises
    ------
    InvalidArgumentError
        There is no program there, or it needs C++ code of the user's.
    UnsupportedModelError
        An included file is missing.
    """
    if isinstance(model, (str, os.PathLike)):
        text = os.fspath(model)
        if isinstance(model, str) and "{" in text and not os.path.isfile(text):
            return Source.from_text(text, name), "program"
        file = Path(os.path.expanduser(text))
        return Source.from_file(file), file.stem
    if model.stan_file is None:
        raise InvalidArgumentError(
            f"The {type(model).__name__} was made from a compiled program alone; bread reads the program's text. Make "
            "it with stan_file=."
        )
    if getattr(model, "user_header", None):
        raise InvalidArgumentError(
            f"The {type(model).__name__} uses a C++ header of your own (user_header), which bread does not compile. "
            "Write the function in Stan."
        )
    return Source.from_file(Path(model.stan_file), _include_paths(model)), Path(model.stan_file).stem


def _include_paths(model: Any) -> tuple[Path, ...]:
    options = getattr(model, "stanc_options", None) or {}
    found = options.get("include-paths", options.get("include_paths", ()))
    paths = found.split(",") if isinstance(found, str) else found
    return tuple(Path(path) for path in paths)


def read_data(data: Any) -> dict[str, Any]:
    """Return the data by name; each value as it was given, numbers that JSON writes as text ("NaN") as numbers.

    Parameters
    ----------
    data : mapping, path or None
        Values of the data block, or the path of a file in CmdStan's JSON format; None for a program without data.

    Raises
    ------
    InvalidArgumentError
        It is neither, or the file is not there or not JSON.
    """
    if data is None:
        return {}
    if isinstance(data, Mapping):
        names = [name for name in data if not isinstance(name, str)]
        if names:
            raise InvalidArgumentError(f"data must be a dict from names to values; received the name {names[0]!r}.")
        for name, value in data.items():
            _refuse_masked(name, value)
        return dict(data)
    if not isinstance(data, (str, os.PathLike)):
        raise InvalidArgumentError(
            f"data must be a dict, or the path of a JSON file in CmdStan's format; received {type(data).__name__}."
        )
    try:
        text = Path(os.path.expanduser(data)).read_text(encoding="utf-8-sig")
        content = json.loads(text, object_pairs_hook=lambda pairs: _without_repetition(pairs, data))
    except FileNotFoundError:
        raise InvalidArgumentError(f"There is no data file at {os.fspath(data)!r}.") from None
    except RecursionError:
        raise InvalidArgumentError(f"The data file {os.fspath(data)!r} {_TOO_DEEP}") from None
    except InvalidArgumentError:
        raise
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(f"The data file {os.fspath(data)!r} cannot be read as JSON: {error}.") from None
    if not isinstance(content, dict):
        raise InvalidArgumentError(
            f"The data file {os.fspath(data)!r} must hold one JSON object, {{name: value, ...}}, but holds "
            f"{type(content).__name__}."
        )
    try:
        return {name: _numbers(value, name) for name, value in content.items()}
    except RecursionError:
        raise InvalidArgumentError(f"The data file {os.fspath(data)!r} {_TOO_DEEP}") from None


def _without_repetition(pairs: list[tuple[str, Any]], data: str | os.PathLike[str]) -> dict[str, Any]:
    """Return a JSON object as a dict; refuse one that names a value twice, of which one would be ignored."""
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in content:
            raise InvalidArgumentError(
                f"The data file {os.fspath(data)!r} holds {name!r} twice. Keep one: the other would be ignored."
            )
        content[name] = value
    return content


def _numbers(value: Any, name: str, depth: int = 1) -> Any:
    if depth > _DEEPEST and isinstance(value, (list, dict)):
        raise RecursionError
    if isinstance(value, list):
        return [_numbers(item, f"{name}[{i}]", depth + 1) for i, item in enumerate(value, start=1)]
    if isinstance(value, dict):
        return {key: _numbers(item, f"{name}.{key}", depth + 1) for key, item in value.items()}
    if isinstance(value, str) and value in _NUMBERS:
        return _NUMBERS[value]
    if value is None:
        raise InvalidArgumentError(f"The data {name!r} hold null, which is no number. {_NO_MISSING}")
    if isinstance(value, str):
        raise InvalidArgumentError(
            f"The data {name!r} hold {json.dumps(value)}, which is no number. Write numbers without quotes, and "
            "categories as whole numbers from 1."
        )
    return value


def read_names(observed: Any) -> tuple[str, ...] | None:
    """Return ``observed=`` as names; None where it is not given."""
    if observed is None:
        return None
    names = (observed,) if isinstance(observed, str) else elements(observed)
    if names is None or not all(isinstance(name, str) for name in names):
        raise InvalidArgumentError(f"observed must be a name or a sequence of names, got {received(observed)}.")
    return names


def read_lines(likelihood: Any) -> tuple[int, ...] | None:
    """Return ``likelihood=`` as line numbers; None where it is not given."""
    if likelihood is None:
        return None
    several = elements(likelihood)
    lines = (likelihood,) if several is None else several
    if not lines or not all(is_count(line, 1) for line in lines):
        raise InvalidArgumentError(f"likelihood must be line numbers of the program, got {received(likelihood)}.")
    return tuple(int(line) for line in lines)


def declared_variables(source: Source, stanc: Stanc) -> tuple[dict[str, Declared], dict[str, Declared]]:
    """Return the variables of the data block and of the parameters block, in the program's order."""
    output = stanc(source.text, "--info", "--allow-undefined")
    info = json.loads(output.stdout)
    inputs, parameters = (
        {name: _declared(item) for name, item in info[block].items()} for block in ("inputs", "parameters")
    )
    return inputs, parameters


def _declared(item: dict[str, Any]) -> Declared:
    kind = item["type"] if isinstance(item["type"], str) else "tuple"
    return Declared(kind, int(item["dimensions"]))


def as_array(value: Any, declared: Declared) -> NDArray[Any]:
    """Return data as an array of the declared type; Stan has accepted them before."""
    array: NDArray[Any] = np.array(value, dtype=_DTYPES[declared.type])
    return array if array.ndim == declared.rank else array.reshape(array.shape + (0,) * (declared.rank - array.ndim))


def _refuse_masked(name: str, value: Any) -> None:
    """Raise InvalidArgumentError for a masked array: the values below its mask would be used as data."""
    if not isinstance(value, np.ma.MaskedArray):
        return
    masked = np.argwhere(np.ma.getmaskarray(value))
    if len(masked):
        place = bracketed_index(masked[0], 1)
        raise InvalidArgumentError(
            f"The data {name!r} are masked at {name}{place} ({len(masked)} in all). {_NO_MISSING}"
        )


def where_not_finite(data: Mapping[str, Any], inputs: Mapping[str, Declared]) -> str:
    """Return which data of the program are NaN or infinite, each with its first index; "" if none is."""
    arrays = {
        repr(name): as_array(data[name], declared)
        for name, declared in inputs.items()
        if name in data and declared.type in ("real", "complex")
    }
    return describe_not_finite(arrays, first_index=1)


def require_numbers(name: str, values: NDArray[Any], place: Place) -> None:
    """Raise InvalidArgumentError if observed values, declared at ``place``, are missing (NaN)."""
    missing = np.argwhere(np.isnan(values))
    if len(missing):
        index = bracketed_index(missing[0], 1)
        raise InvalidArgumentError(
            f"The observed variable {name!r} ({place}) is NaN at {name}{index} ({len(missing)} in all). {_NO_MISSING}"
        )
