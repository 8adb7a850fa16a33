"""Draws that a user hands over as `posterior=`, in any of the forms that samplers return; shared by the backends."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.support.draw_forms import MOST_NAMED, plain_form
from bread.backends.values import Fit
from bread.errors import InvalidArgumentError
from bread.statistics.agreement.repeats import ALMOST_DISTINCT, find_repeats

MINIMUM_DRAWS = 10  # fewer are no sample
SUPPORT_DRAWS = 500  # at which the density of the prior is looked at
LogDensity = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@contextmanager
def named_as(argument: str) -> Iterator[None]:
    """Let messages about draws that another argument brings name that argument."""
    try:
        yield
    except InvalidArgumentError as error:
        raise InvalidArgumentError(str(error).replace("posterior=", f"{argument}=")) from error


def require_all(fit: Fit) -> None:
    """Raise InvalidArgumentError where draws lack free variables."""
    if fit.missing:
        raise InvalidArgumentError(fit.lacks())


def posterior_group(posterior: Any) -> Any:
    """Return the draws of an InferenceData or DataTree as a Dataset; anything else as it is."""
    if isinstance(posterior, dict):
        return posterior
    if hasattr(posterior, "children"):  # DataTree
        return posterior.children.get("posterior", posterior).to_dataset()
    if hasattr(posterior, "data_vars"):  # Dataset
        return posterior
    return getattr(posterior, "posterior", posterior)  # InferenceData


def is_fitted_by_bambi(attributes: Mapping[str, Any]) -> bool:
    """Return whether draws with these attributes are what Bambi's ``fit`` returned (Bambi 0.21 marks them so)."""
    return attributes.get("modeling_interface") == "bambi"


def data_of_draws(posterior: Any) -> dict[str, Any]:
    """Return the data that came with draws, by name: groups `observed_data` and `constant_data` of a container."""
    children = getattr(posterior, "children", None)
    groups = (
        getattr(posterior, name, None) if children is None else children.get(name)
        for name in ("observed_data", "constant_data")
    )
    return {name: group[name].values for group in groups if group is not None for name in group.data_vars}


def count_divergences(posterior: Any) -> int | None:
    """Return the number of divergent draws that an InferenceData or DataTree tells of; None where it does not."""
    children = getattr(posterior, "children", None)
    statistics = getattr(posterior, "sample_stats", None) if children is None else children.get("sample_stats")
    if statistics is None:
        return None
    return int(np.sum(np.asarray(statistics["diverging"]))) if "diverging" in statistics else None


def require_support(
    fit: Fit, states: NDArray[np.float64], positions: Mapping[str, NDArray[np.int64]], log_prior: LogDensity | None
) -> None:
    """Raise InvalidArgumentError if draws lie outside the support of the model, or on its border.

    Parameters
    ----------
    fit : Fit
    states : ndarray, shape (chains * draws, dim)
        Its draws in unconstrained coordinates.
    positions : mapping of str to ndarray of int
        The coordinates of each parameter.
    log_prior : callable or None
        Maps states (n, dim) to log prior densities (nats), for supports that no transform expresses; at
        `SUPPORT_DRAWS` states at most. None where there is no density of the prior.
    """
    n_draws = next(iter(fit.draws.values())).shape[1]
    is_outside = ~np.isfinite(states)
    if is_outside.any():
        row = int(np.flatnonzero(is_outside.any(axis=1))[0])
        column = int(np.flatnonzero(is_outside[row])[0])
        name = next((name for name, places in positions.items() if column in places), "")
        chain, draw = divmod(row, n_draws)
        values = np.asarray(fit.draws[name][chain, draw]) if name else np.empty(0)
        value = f": {values}" if values.ndim == 0 else ""
        raise InvalidArgumentError(
            f"{fit.source} has a value of {name!r} outside its support or on the border{value}, in chain {chain}, "
            f"draw {draw} ({int(is_outside.any(axis=1).sum())} such draws of {len(states)}). Pass draws of this model."
        )
    if log_prior is None:
        return
    rows = np.unique(np.linspace(0, len(states) - 1, SUPPORT_DRAWS).astype(int))
    is_zero = np.isneginf(log_prior(states[rows]))
    if is_zero.any():
        chain, draw = divmod(int(rows[np.flatnonzero(is_zero)[0]]), n_draws)
        raise InvalidArgumentError(
            f"{fit.source} has draws at which the density of the model is zero, such as chain {chain}, draw {draw} "
            f"({int(is_zero.sum())} of {len(rows)} draws looked at). Pass draws of this model."
        )


class GivenDraws:
    """Draws that a user hands over, of which variables are read one by one; see `read_posterior` for what is refused.

    Parameters
    ----------
    posterior : InferenceData, DataTree, Dataset, mapping of str to array_like, or a form of `draw_forms`
    dims, coords : mapping
        Dimension names of the model's variables and values of coordinates.

    Attributes
    ----------
    attributes : mapping
        What a Dataset says of itself; empty for a mapping.
    """

    def __init__(self, posterior: Any, dims: Mapping[str, Sequence[str]], coords: Mapping[str, Any]) -> None:
        posterior = plain_form(posterior)
        group = posterior_group(posterior)
        if not isinstance(group, Mapping) or hasattr(group, "groups"):
            raise InvalidArgumentError(
                "posterior= must be an InferenceData or DataTree with a group 'posterior', an xarray Dataset, a dict "
                "of arrays of shape (chain, draw, ...), a table of draws, or paths of files (CSV, Parquet), "
                f"but is a {type(posterior).__name__}."
            )
        self._posterior, self._group, self._dims, self._coords = posterior, group, dims, coords
        self._sizes: tuple[int, int] | None = None
        self.attributes: Mapping[str, Any] = getattr(group, "attrs", {})

    def __contains__(self, name: str) -> bool:
        return name in self._group

    def read(self, name: str, shape: Sequence[int | None]) -> NDArray[Any]:
        """Return the draws of a variable of this shape, (chain, draw, *shape); None is any length.

        Raises
        ------
        InvalidArgumentError
            They have another shape, other coordinates, or values that are no finite numbers.
        """
        values = _read_variable(name, self._group[name], self._dims.get(name, ()), self._coords)
        if not _fits(values.shape[2:], shape) or values.ndim < 2 or 0 in values.shape[:2]:
            rule = "".join(f", {'any' if length is None else length}" for length in shape)
            raise InvalidArgumentError(
                f"posterior= has {name!r} of shape {values.shape}; the rule is (chain, draw, ...) = "
                f"(chain, draw{rule}), with one draw at least. Keep both leading dimensions (no stacking), and pass "
                "draws of this model."
            )
        if not hasattr(self._group[name], "dims") and values.shape[1] < min(values.shape[0], MINIMUM_DRAWS):
            raise InvalidArgumentError(
                f"posterior= has {name!r} of shape {values.shape}: {values.shape[0]} chains of {values.shape[1]} "
                "draws. The first axis counts chains, the second draws: swap them, or name them in an xarray.Dataset."
            )
        self._sizes = self._sizes or (values.shape[0], values.shape[1])
        if values.shape[:2] != self._sizes:
            raise InvalidArgumentError(
                f"posterior= has {values.shape[:2]} chains and draws of {name!r}, but {self._sizes} of the first "
                "variable. Pass chains of one length, all variables from one run."
            )
        if values.dtype.kind not in "fiub" or not np.all(np.isfinite(values)):
            raise InvalidArgumentError(
                f"posterior= has values of {name!r} that are no finite numbers{_first_not_finite(values)}. Pass "
                "numbers alone, without the chains or draws that failed."
            )
        return values

    def _is_finite(self, name: str) -> bool:
        """Return whether draws of a variable are there, and numbers; what depends on parameters may be none."""
        values = np.asarray(self._group[name]) if name in self else np.empty(0, dtype=object)
        return values.dtype.kind in "fiub" and bool(np.isfinite(values).all())

    def as_fit(
        self,
        draws: Mapping[str, NDArray[Any]],
        names: Sequence[str],
        notes: Sequence[str] = (),
        derived: Mapping[str, Sequence[int | None]] | None = None,
    ) -> Fit:
        """Return draws that were read as a fit, in the order of ``names``: the free variables of the model.

        Where some are missing, it has what is there of ``derived`` too, by name and shape: what depends on them, where
        it is finite.

        Raises
        ------
        InvalidArgumentError
            No variable is there, or there are too few draws.
        """
        missing = tuple(name for name in names if name not in draws)
        found = {name: draws[name] for name in names if name in draws}
        if missing:
            found |= {name: self.read(name, shape) for name, shape in (derived or {}).items() if self._is_finite(name)}
        if names and not found:
            raise InvalidArgumentError(
                f"posterior= has no variable of the model. Its free variables are {', '.join(names)}; posterior= has "
                f"{', '.join(map(repr, list(self._group)[:MOST_NAMED])) or 'none'}. Pass draws of this model."
            )
        if self._sizes is not None and self._sizes[0] * self._sizes[1] < MINIMUM_DRAWS:
            raise InvalidArgumentError(
                f"posterior= has {self._sizes[0]} x {self._sizes[1]} draws (chains x draws), and must have at least "
                f"{MINIMUM_DRAWS} in all. Pass the whole run."
            )
        return Fit(
            draws=found,
            source="posterior=",
            n_divergences=count_divergences(self._posterior),
            distinct_share=_distinct_share(found),
            notes=tuple(notes),
            data=data_of_draws(self._posterior),
            missing=missing,
        )


def read_posterior(
    posterior: Any,
    shapes: Mapping[str, tuple[int | None, ...]],
    dims: Mapping[str, tuple[str, ...]],
    coords: Mapping[str, Any],
    derived: Mapping[str, tuple[int | None, ...]] | None = None,
) -> Fit:
    """Read the user's own draws.

    Parameters
    ----------
    posterior : InferenceData, DataTree, Dataset or mapping of str to array_like
        The first two by their group "posterior"; arrays of a mapping have the shape (chain, draw, ...).
    shapes : dict of str to tuple of int
        Free variables of the model; `Fit.missing` names those that are not there. None is a length that is not known.
    dims, coords : dict
        Dimension names of the variables and values of coordinates; draws whose coordinates differ are refused.
    derived : dict of str to tuple of int, optional
        What depends on free variables: read where some of these are missing.

    Raises
    ------
    InvalidArgumentError
        Names the variable that has another shape, other coordinates, values that are not finite; no variable is
        there, or there are too few draws.
    """
    given = GivenDraws(posterior, dims, coords)
    draws = {name: given.read(name, shape) for name, shape in shapes.items() if name in given}
    return given.as_fit(draws, [*shapes], derived=derived)


def _distinct_share(draws: Mapping[str, NDArray[Any]]) -> float:
    """Return what effective sizes are multiplied by, with a warning where draws are copies of others."""
    found = find_repeats(
        np.concatenate([v.reshape(*v.shape[:2], -1).astype(np.float64) for v in draws.values()], axis=2)
    )
    if found.distinct_share > ALMOST_DISTINCT:
        return found.distinct_share
    if found.same_chains:
        chains = ", ".join(map(str, found.same_chains))
        what = (
            f"posterior= has chains that are the same as an earlier one, draw by draw: {chains}. Chains that share a "
            "seed, or copies: find out why"
        )
    else:
        what = (
            f"posterior= has {found.n_distinct} different draws in {found.n_places} places. Draws that were resampled, "
            "copied or rounded: pass those before that"
        )
    warnings.warn(
        f"{what}. Effective sizes are multiplied by {found.distinct_share:.2g}, so that nothing counts twice.",
        UserWarning,
        stacklevel=4,
    )
    return found.distinct_share


def _fits(found: Sequence[int], wanted: Sequence[int | None]) -> bool:
    return len(found) == len(wanted) and all(b is None or a == b for a, b in zip(found, wanted, strict=True))


def _first_not_finite(values: NDArray[Any]) -> str:
    """Return the first such value and its place; "" where the type is none of numbers."""
    if values.dtype.kind not in "fiub":
        return f" (their type is {values.dtype})"
    chain, draw, *_ = place = tuple(int(one) for one in np.argwhere(~np.isfinite(values))[0])
    return f", such as {values[place]} in chain {chain}, draw {draw}"


def _as_array(name: str, values: Any) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(float), np.nan)  # what is below a mask is no draw
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"posterior= has values of {name!r} that make no array (a {type(values).__name__}): chains, or draws, of "
            "different lengths? Pass one array of shape (chain, draw, ...), all chains of one length."
        ) from None


def _read_variable(name: str, variable: Any, dims: Sequence[str], coords: Mapping[str, Any]) -> NDArray[Any]:
    if not hasattr(variable, "dims"):
        return _as_array(name, variable)
    for required in ("chain", "draw"):
        if required not in variable.dims:
            raise InvalidArgumentError(
                f"posterior= has {name!r} with dimensions {variable.dims}, without {required!r}. Pass draws as "
                "the sampler returns them (not stacked by az.extract)."
            )
    if set(dims) <= set(variable.dims):
        variable = variable.transpose("chain", "draw", *dims, ...)
        for dim in dims:
            if dim not in coords or dim not in variable.coords or variable.sizes[dim] != len(coords[dim]):
                continue
            values = list(variable.coords[dim].values)
            if values != list(coords[dim]):
                raise InvalidArgumentError(
                    f"posterior= has {name!r} with coordinates {values} of {dim!r}, the model has {list(coords[dim])}. "
                    "Pass draws of this model, in its order (Dataset.sel reorders)."
                )
        return _as_array(name, variable)
    return _as_array(name, variable.transpose("chain", "draw", ...))
