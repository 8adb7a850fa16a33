"""Group `direct_tests` of the report: score and invariance tests of exact draws."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr

from bread.running.state.exactness_results import DirectTest, DirectTests
from bread.statistics.bounds.alarms import combined_p_value


def direct_tests_dataset(found: DirectTests | None) -> xr.Dataset | None:
    """Return the group `direct_tests`: do simulator, density and kernel fit together? None where nothing was tested.

    Exact under every protocol: draws come from the model's own simulator.

    Returns
    -------
    Dataset or None
        `p_value` (), after Bonferroni's correction over everything tested: below 0.001 something is broken.
        `p_value_by_test` (test), corrected within the test; `p_value_by_function` (test, variable, function), not
        corrected, NaN where not tested; `effect`, of the same shape, 0 in theory: mean in standard deviations of a
        draw (scores), or the change in normal scores or in probability (kernels). `worst_variable`,
        `worst_function` (test); `n_tested`, `n_draws`, `n_steps` (test). Attribute `left_out`: JSON, reasons.
    """
    tests = [test for test in found.tests if test.n_tested] if found is not None else []
    if found is None or not tests:
        return None
    variables = tuple(dict.fromkeys(name for test in tests for name in test.variables))
    functions = tuple(dict.fromkeys(name for test in tests for name in test.functions))
    shape = (len(tests), len(variables), len(functions))
    p_values, effect = np.full(shape, np.nan), np.full(shape, np.nan)
    for index, test in enumerate(tests):
        rows = [variables.index(name) for name in test.variables]
        columns = [functions.index(name) for name in test.functions]
        p_values[index][np.ix_(rows, columns)] = test.p_values
        effect[index][np.ix_(rows, columns)] = test.effect
    worst = [_worst(test) for test in tests]
    return xr.Dataset(
        {
            "p_value": ((), np.float64(combined_p_value(p_values.ravel()))),
            "p_value_by_test": ("test", np.array([combined_p_value(test.p_values.ravel()) for test in tests])),
            "p_value_by_function": (("test", "variable", "function"), p_values),
            "effect": (("test", "variable", "function"), effect),
            "worst_variable": ("test", np.array([name for name, _ in worst], dtype=np.str_)),
            "worst_function": ("test", np.array([name for _, name in worst], dtype=np.str_)),
            "n_tested": ("test", np.array([test.n_tested for test in tests], dtype=np.int64)),
            "n_draws": ("test", np.array([test.n_draws for test in tests], dtype=np.int64)),
            "n_steps": ("test", np.array([test.n_steps for test in tests], dtype=np.int64)),
        },
        coords={
            "test": np.array([test.name for test in tests], dtype=np.str_),
            "variable": np.array(variables, dtype=np.str_),
            "function": np.array(functions, dtype=np.str_),
        },
        attrs={"n_gradients": int(found.n_gradients), "left_out": json.dumps(found.left_out)},
    )


def unguarded_attribute(found: DirectTests | None) -> dict[str, str]:
    """Return the attribute `unguarded` of a report, JSON: see `bread.reading.sentences.direct.Unguarded`."""
    if found is None:
        return {}
    said = {
        "untested": found.untested,
        "share_discarded": found.share_discarded,
        "why_discarded": found.why_discarded,
    }
    return {"unguarded": json.dumps(said)}


def direct_notes(found: DirectTests | None) -> list[str]:
    """Return a sentence on what could not be tested; none where everything was."""
    if found is None or not found.left_out:
        return []
    reasons = "; ".join(f"{what}: {why}" for what, why in found.left_out.items())
    return [f"Left out of the tests of exact draws: {reasons}."]


def _worst(test: DirectTest) -> tuple[str, str]:
    row, column = np.unravel_index(int(np.nanargmin(test.p_values)), test.p_values.shape)
    return test.variables[int(row)], test.functions[int(column)]
