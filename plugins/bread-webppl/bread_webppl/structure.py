"""What is read of a WebPPL program before it is opened: its sites, their names, what depends on what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bread.backends.base import FloatArray
from bread.backends.support.hyperparameters import Parents
from bread.errors import UnsupportedModelError
from bread_webppl.bridge import Bridge, pack, unpack
from bread_webppl.coordinates import Coordinates
from bread_webppl.given import Given, slots, tags
from bread_webppl.laws import refuse_wrong_draws

RUNS = 5  # prior draws at which a program is looked at
MORE_RUNS = 50  # prior draws that tell sites apart, the first of which are moved
BARELY = 1e-6  # an inverse temperature at which proposals are accepted
RESERVED_NAMES = ("simulation", "chain", "draw", "knot", "direction")  # dimensions of the report
UNNAMED = "unreturned"  # the name of all sites that the program does not return
WITHOUT_DENSITY = ("Delta",)
WHOLE = ("Binomial", "Discrete", "Multinomial", "MultivariateBernoulli", "Poisson", "RandomInteger")  # their values
Look = Mapping[str, Any]


@dataclass(frozen=True)
class Structure:
    """The sites of a program, as coordinates and as named parameters.

    Attributes
    ----------
    sizes : tuple of int
        Coordinates of each site, in the order of a run.
    discrete : ndarray of bool, shape (dim,)
    smooth : ndarray of bool, shape (dim,)
        Coordinates whose law has a gradient: those of simplexes have none.
    shapes : dict of str to tuple of int
        Of each parameter.
    positions : dict of str to ndarray of int
        Its coordinates.
    types : dict of str to dtype
        bool, int64 or float64.
    parents : dict of str to tuple of str
        The parameters that the law of each depends on.
    slots : ndarray of int
        Place in the flat data of each number that a run observes.
    coordinates : Coordinates
        The map from coordinates to the values of the sites.
    """

    sizes: tuple[int, ...]
    discrete: NDArray[np.bool_]
    smooth: NDArray[np.bool_]
    shapes: dict[str, tuple[int, ...]]
    positions: dict[str, NDArray[np.int64]]
    types: dict[str, np.dtype[Any]]
    parents: Parents
    slots: NDArray[np.int64]
    coordinates: Coordinates


def read(bridge: Bridge, given: Given) -> tuple[Structure, Given]:
    """Read the program behind a bridge, and tell it what its sites are; return the data in the types of draws.

    Raises
    ------
    UnsupportedModelError
        The program cannot be simulated or annealed exactly.
    """
    looks = [bridge.ask("look", seed=f"look {number}", data=tags(given), tags=True) for number in range(RUNS)]
    _refuse_changes(looks)
    first = looks[0]
    _refuse_sites(first)
    places = slots(given, first["observations"])
    given = _with_types(given, first["observations"], places)
    _refuse_data_elsewhere(bridge, given, looks)
    refuse_wrong_draws(bridge)
    keys = ("address", "kind", "dims", "size")
    bridge.keep("fix", sites=[{key: site[key] for key in keys} for site in first["sites"]], slots=places.tolist())
    sites = first["sites"]
    sizes = tuple(int(site["size"]) for site in sites)
    states, data = _moved(bridge, sites, sizes, places)
    runs = bridge.ask("replay", data=pack(data[0]), states=pack(states), seed="replay")["rows"]
    again = bridge.ask("replay", data=pack(data[0]), states=pack(states[:1]), seed="other")["rows"]
    if any(again[0][part] != runs[0][part] for part in ("scores", "likelihood")):
        raise UnsupportedModelError(
            "The density differs between two runs at the same values of all sites: the program draws random numbers "
            "outside of sample (an inference of its own by sampling, Math.random). Draw them by sample."
        )
    _refuse_sites_after_data(bridge, states, data, runs)
    _try_kernel(bridge, states[0], data[0], len(sites))
    names = _named(states, [run["returned"] for run in runs], given)
    owner = {int(place): name for name, (_, own) in names.items() for place in own}
    discrete = np.repeat([bool(site["discrete"]) for site in sites], sizes)
    kinds = np.repeat([site["kind"] for site in sites], sizes)
    whole = np.repeat([site["law"] in WHOLE for site in sites], sizes)
    structure = Structure(
        sizes,
        discrete,
        np.repeat([bool(site["smooth"]) for site in sites], sizes),
        {name: shape for name, (shape, _) in names.items()},
        {name: own for name, (_, own) in names.items()},
        {name: _type(kinds[own], whole[own]) for name, (_, own) in names.items()},
        _parents(sizes, runs, owner, tuple(names)),
        places,
        _coordinates(looks, sizes),
    )
    _refuse_unrelated(given, structure, first["observations"], runs)
    return structure, given


def _refuse_changes(looks: Sequence[Look]) -> None:
    def outline(look: Look, what: str) -> list[tuple[Any, ...]]:
        keys = ("address", "law", "kind", "dims", "size") if what == "sites" else ("law", "kind")
        return [tuple(map(str, (one[key] for key in keys))) for one in look[what]]

    for what, name in (("sites", "sample"), ("observations", "observe")):
        first = outline(looks[0], what)
        for other in (outline(look, what) for look in looks[1:]):
            if first != other:
                place = next((i for i, pair in enumerate(zip(first, other, strict=False)) if pair[0] != pair[1]), -1)
                raise UnsupportedModelError(
                    f"The {what} of the program depend on random values: {len(first)} in one prior draw, {len(other)} "
                    f"in another, the first that differs being number {place + 1 if place >= 0 else len(first) + 1}. "
                    f"Their number, order, distributions and sizes must be fixed. Call {name} in every run, and let "
                    "branches choose among values."
                )


def _refuse_sites(look: Look) -> None:
    if not look["sites"]:
        raise UnsupportedModelError("The program has no sample statement: there is nothing to infer.")
    if not look["observations"]:
        raise UnsupportedModelError(
            "The program observes nothing, so that there is no posterior to anneal to. Mark its data by "
            "observe(distribution, data.y[i])."
        )
    for number, one in enumerate(look["sites"]):
        if not one["discrete"] and not one["smooth"]:
            raise UnsupportedModelError(
                f"Site {number + 1} of the program is a {one['law']}, whose values lie on a simplex: its coordinates "
                "have no density. Draw it otherwise: Gamma numbers divided by their sum are a Dirichlet."
            )
    for what in ("sites", "observations"):
        for number, one in enumerate(look[what]):
            if one["law"] in WITHOUT_DENSITY:
                raise UnsupportedModelError(
                    f"Number {number + 1} of the {what} of the program is a {one['law']}, which has no density. "
                    "Compute the value without it."
                )


def _with_types(given: Given, observations: Sequence[Look], places: NDArray[np.int64]) -> Given:
    """Return the data as floats where the draws of a variable are, and refuse numbers in place of booleans."""
    is_float, is_boolean = np.zeros((2, given.size), dtype=bool)
    low = 0
    for one in observations:
        high = low + len(unpack(one["value"]))
        is_float[places[low:high]] = one["law"] not in WHOLE and one["kind"] != "boolean"
        is_boolean[places[low:high]] = one["kind"] == "boolean"
        low = high
    observed, low = {}, 0
    for name, real in given.observed.items():
        own = slice(low, low + real.size)
        low += real.size
        if is_boolean[own].any() != (real.dtype == bool) or is_boolean[own].any() != is_boolean[own].all():
            raise UnsupportedModelError(
                f"data.{name} holds values of type {real.dtype}, and its distributions draw "
                f"{'booleans' if is_boolean[own].any() else 'numbers'}. Pass y.astype(bool) for Bernoulli, and "
                "numbers for all others."
            )
        observed[name] = real.astype(np.float64) if is_float[own].any() else real
    return replace(given, observed=observed)


def _refuse_data_elsewhere(bridge: Bridge, given: Given, looks: Sequence[Look]) -> None:
    """Refuse data that a run uses elsewhere than in observe: real data would stand there beside simulated ones."""
    real = pack(given.flat(given.observed))
    for number, look in enumerate(looks):
        for data in (None, real):
            try:
                other = bridge.ask("look", seed=f"look {number}", data=data, tags=False)
            except UnsupportedModelError as error:
                other = {"sites": [], "observations": [], "error": str(error)}
            is_same = other["sites"] == look["sites"] and all(
                one["value"] == its["value"] and one["score"] == its["score"]
                for one, its in zip(other["observations"], look["observations"], strict=True)
            )
            if not is_same:
                raise UnsupportedModelError(
                    f"The program uses observed data ({', '.join(given.observed)}) elsewhere than in observe: there "
                    "the real ones would stand beside simulated ones. Use what observe returns in their place, and no "
                    f"data in priors.{' ' + other['error'] if 'error' in other else ''}"
                )


def _moved(
    bridge: Bridge, sites: Sequence[Look], sizes: Sequence[int], places: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
    """Return prior draws, then each of them with one site moved at a time; and the data of the draws, flat."""
    drawn = bridge.ask("simulate", seeds=[f"draw {number}" for number in range(MORE_RUNS)], held=None)
    states = unpack(drawn["states"]).reshape(MORE_RUNS, -1)
    data = np.empty((MORE_RUNS, len(places)))
    data[:, places] = unpack(drawn["data"]).reshape(MORE_RUNS, -1)
    rows = [*states[:RUNS]]
    for state in states[:RUNS]:
        low = 0
        for site, size in zip(sites, sizes, strict=True):
            own = slice(low, low + size)
            moved = state.copy()
            different = next((row for row in states if (row[own] != state[own]).any()), state)
            moved[own] = 1.0 - state[own] if site["kind"] == "boolean" else different[own]
            rows.append(moved)
            low += size
    return np.array(rows), data[:RUNS]


def _refuse_sites_after_data(
    bridge: Bridge, states: FloatArray, data: FloatArray, runs: Sequence[Mapping[str, Any]]
) -> None:
    """Refuse sites whose law changes with the data, which prior draws would have from data of their own."""
    for state, own, run in zip(states, data, runs, strict=False):
        again = bridge.ask("replay", data=pack(own), states=pack(state), seed="replay")["rows"][0]
        changed = np.flatnonzero(unpack(again["scores"]) != unpack(run["scores"]))
        if len(changed):
            raise UnsupportedModelError(
                f"The law of site {changed[0] + 1} of the program depends on what observe returned, so that its prior "
                "is not the same for all data. Draw sites from other sites; let what observe returns enter later "
                "observations alone."
            )


def _try_kernel(bridge: Bridge, state: FloatArray, data: FloatArray, n_sites: int) -> None:
    """Run a chain, at the end of which the driver compares its scores with those of a new run."""
    betas = pack(np.full(RUNS, BARELY))
    bridge.ask("chain", data=pack(data), state=pack(state), betas=betas, updates=n_sites, seed="chain", keep=[])


def _named(
    states: FloatArray, returned: Sequence[Mapping[str, Any]], given: Given
) -> dict[str, tuple[tuple[int, ...], NDArray[np.int64]]]:
    """Return shape and coordinates of each parameter: what the program returns that is a site's value in every run."""
    free: dict[bytes, list[int]] = {}
    for place, column in enumerate(states.T):
        free.setdefault((column + 0.0).tobytes(), []).append(place)
    found: dict[str, tuple[tuple[int, ...], NDArray[np.int64]]] = {}
    for name in returned[0]:
        try:
            values = np.array([run[name] for run in returned], dtype=np.float64)
        except (KeyError, ValueError, TypeError):  # ragged, or not the same in two runs
            continue
        columns = [(column + 0.0).tobytes() for column in values.reshape(len(returned), -1).T]
        if not columns or any(columns.count(one) != 1 or len(free.get(one, ())) != 1 for one in columns):
            continue  # no site's, or one of several that were the same in all draws
        if name in RESERVED_NAMES or name in given.observed or name in given.constants:
            raise UnsupportedModelError(
                f"The program returns a site by the name {name!r}, which the data or a dimension of the report "
                f"({', '.join(RESERVED_NAMES)}) have. Return it by another name, such as {name + '_'!r}."
            )
        found[name] = (values.shape[1:], np.array([free[one].pop(0) for one in columns], dtype=np.int64))
    left = np.array(sorted(place for places in free.values() for place in places), dtype=np.int64)
    if len(left):
        found[UNNAMED if UNNAMED not in found else f"{UNNAMED}_"] = ((len(left),), left)
    return found


def _type(kinds: NDArray[Any], whole: NDArray[np.bool_]) -> np.dtype[Any]:
    if (kinds == "boolean").all():
        return np.dtype(bool)
    return np.dtype(np.int64 if whole.all() else np.float64)


def _coordinates(looks: Sequence[Look], sizes: Sequence[int]) -> Coordinates:
    """Return the map of the coordinates; a support whose ends depend on other sites is left as it is."""
    ends = np.array([[unpack(site["bounds"]) for site in look["sites"]] for look in looks])
    is_fixed = (ends == ends[:1]).all(axis=(0, 2))
    lower, upper = np.where(is_fixed, ends[0].T, [[-np.inf], [np.inf]])
    return Coordinates(np.repeat(lower, sizes), np.repeat(upper, sizes))


def _parents(
    sizes: Sequence[int], runs: Sequence[Mapping[str, Any]], owner: Mapping[int, str], names: Sequence[str]
) -> Parents:
    """Return the parameters that the law of each depends on: whose move changes the score of a site that stayed."""
    found: dict[str, set[str]] = {name: set() for name in names}
    scores = [unpack(run["scores"]) for run in runs]
    ends = np.cumsum(sizes)
    owners = [{owner[place] for place in range(end - size, end)} for end, size in zip(ends, sizes, strict=True)]
    for number, moved in enumerate(scores[RUNS:]):
        draw, site = divmod(number, len(sizes))
        for other in np.flatnonzero(moved != scores[draw]):
            if other != site:
                for name in owners[other]:
                    found[name] |= owners[site] - {name}
    return {name: tuple(one for one in names if one in parents) for name, parents in found.items()}


def _refuse_unrelated(
    given: Given, structure: Structure, observations: Sequence[Look], runs: Sequence[Mapping[str, Any]]
) -> None:
    scores = np.array([unpack(run["likelihood"]) for run in runs])
    depends = (scores != scores[:1]).any(axis=0)
    place_of = np.zeros(given.size, dtype=bool)
    low = 0
    for one, own in zip(observations, depends, strict=True):
        high = low + len(unpack(one["value"]))
        place_of[structure.slots[low:high]] = own
        low = high
    low = 0
    for name, real in given.observed.items():
        if not place_of[low : low + real.size].any():
            raise UnsupportedModelError(
                f"The observed variable {name!r} depends on no site: its data say nothing of the parameters. Leave it "
                "out, or write what it depends on (what is given need not be observed)."
            )
        low += real.size
