"""Group `fit` of the report: whether the real data look like the model's."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from bread.backends.base import ModelInfo, Node
from bread.report.labels import coordinate_values
from bread.running.model_fit.fit_check import NodeTest
from bread.running.state.results import CheckResult
from bread.statistics.real_data.fit import N_EXTREMES, fit_p_value
from bread.statistics.real_data.replication import STATISTICS

_NAN = float("nan")


def fit_dataset(result: CheckResult) -> xr.Dataset | None:
    """Return the group `fit`: sampled posterior p-values; None where the fit was not tested.

    `p_value`: over all nodes and draws (Bonferroni within a draw, Cauchy's rule over draws); wrong by at most the total
    variation between annealed draws and the posterior. `ranked_p_value`: its rank among those of `n_ranked` data sets
    simulated from the prior, treated alike: exact whatever the sampler, never below 1 / (n_ranked + 1); NaN with
    n_ranked = 0 where `p_value` is above 0.05, data do not come from the prior, one reference of the user's serves all
    data sets, or fewer than 19 were at hand. The fit is poor where `p_value` <= 0.005, unless `ranked_p_value` > 0.05.
    `p_value_by_node`
    (node, statistic), not adjusted for their number: the summed log density ("total", two-sided), the most extreme
    element ("extreme"), and for parameters the rank of each element ("rank", two-sided); NaN where a node has none.
    `effect` (node): by how many nats an element the node is less probable than replicates. `extreme_element`,
    `extreme_size` (node, extreme): the elements that lie furthest from the centre of their replicates, and how many
    standard deviations that is, with sign. `n_replicates` (node): the most that a draw was compared with. The
    attribute `left_out` is JSON, node -> reason.
    """
    check = result.fit_check
    if check is None:
        return None
    tests = check.tests
    names = [one.node.name for one in tests]
    p_values = np.array([[_combined(one, column) for column in range(len(STATISTICS))] for one in tests])
    elements = np.full((len(tests), N_EXTREMES), "", dtype=object)
    sizes = np.full((len(tests), N_EXTREMES), _NAN)
    for row, one in enumerate(tests):
        extremes = one.extremes
        sizes[row, : len(extremes)] = one.deviation[extremes]
        elements[row, : len(extremes)] = [element_label(result.info, one.node, int(index)) for index in extremes]
    variables: dict[str, Any] = {
        "p_value": ((), np.float64(check.p_value)),
        "ranked_p_value": ((), np.float64(check.ranked_p_value)),
        "n_ranked": ((), np.int64(max(0, len(check.ranked_p_values) - 1))),
        "p_value_by_draw": ("draw", check.p_value_by_draw),
        "p_value_by_node": (("node", "statistic"), p_values),
        "kind": ("node", np.array([one.node.kind for one in tests], dtype=np.str_)),
        "n_elements": ("node", np.array([one.node.size for one in tests], dtype=np.int64)),
        "n_replicates": ("node", np.array([int(one.n_replicates.max()) for one in tests], dtype=np.int64)),
        "effect": ("node", np.array([_effect(one) for one in tests]), {"units": "nats an element"}),
        "extreme_element": (("node", "extreme"), elements.astype(np.str_)),
        "extreme_size": (("node", "extreme"), sizes, {"units": "standard deviations of replicates"}),
    }
    return xr.Dataset(
        variables,
        coords={"node": np.array(names, dtype=np.str_), "statistic": np.array(STATISTICS, dtype=np.str_)},
        attrs={"left_out": json.dumps(check.left_out)},
    )


def element_label(info: ModelInfo, node: Node, index: int) -> str:
    """Return the name of one element of a node, such as "y[Choate]" or "theta[3]"."""
    for name, shape in node.shapes.items():
        size = int(np.prod(shape, dtype=np.int64))
        if index >= size:
            index -= size
            continue
        dims = tuple(info.data.observed_dims.get(name, info.layout.parameters.get(name, ())))
        places = np.unravel_index(index, shape) if shape else ()
        labels = []
        for axis, place in enumerate(places):
            coordinates = info.data.coords.get(dims[axis]) if axis < len(dims) else None
            fits = coordinates is not None and len(coordinates) == shape[axis]
            labels.append(str(coordinate_values(coordinates)[place]) if fits else str(int(place)))
        return f"{name}[{', '.join(labels)}]" if labels else name
    raise IndexError(f"{node.name} has no element {index}")


def _combined(test: NodeTest, column: int) -> float:
    return fit_p_value(test.p_values[:, column])


def _effect(test: NodeTest) -> float:
    """Return the median over draws, by element."""
    return float(np.median(test.effect)) / test.node.size
