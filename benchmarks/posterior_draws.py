"""What ``simulate_from="posterior"`` says of right and wrong draws: python benchmarks/posterior_draws.py [MODEL ...].

On hard PyMC models, a line of JSON each: ``bread.check`` given draws of NUTS; the same under "fitted", whose gradients
are compared with those of the first; given draws of mean-field ADVI; and given stale ones, of NUTS on data that were
replicated at a draw of the posterior.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from typing import Any

import hard_posteriors
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.model.fgraph import clone_model

import bread
from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.report.compat import read_attributes, read_group

KINDS = ("nuts", "fitted", "advi", "stale")
Draws = dict[str, np.ndarray]


def sampled(model: Any, seed: int) -> Draws:
    with model:
        drawn = pm.sample(500, tune=1000, chains=4, cores=1, random_seed=seed, progressbar=False)["posterior"]
    return {one.name: np.asarray(drawn[one.name].values) for one in model.free_RVs}


def approximated(model: Any, _: Draws, seed: int) -> Draws:
    with model:
        drawn = pm.fit(20_000, random_seed=seed, progressbar=False).sample(2000, random_seed=seed)["posterior"]
    return {one.name: np.asarray(drawn[one.name].values) for one in model.free_RVs}


def stale(model: Any, draws: Draws, seed: int) -> Draws:
    """Return draws of the same model given data that are replicated at a draw of its posterior."""
    rng = np.random.default_rng(seed)
    held = {name: values[rng.integers(4), rng.integers(values.shape[1])] for name, values in draws.items()}
    opened = open_model(model, OpenOptions(simulate_from="posterior"))
    data = opened.simulate(1, fixed=held, seed=np.random.SeedSequence(seed)).data_of(0)
    other = clone_model(model)
    for one in other.observed_RVs:
        value = other.rvs_to_values.pop(one)
        other.values_to_rvs.pop(value)
        new = pt.constant(np.asarray(data[one.name], dtype=value.type.dtype), name=one.name)
        other.rvs_to_values[one], other.values_to_rvs[new] = new, one
    return sampled(other, seed)


def measure(name: str, seed: int, options: argparse.Namespace) -> None:
    model = hard_posteriors.MODELS[name]()
    right = sampled(model, seed)
    for kind in options.draws:
        try:
            draws = {"advi": approximated, "stale": stale}.get(kind, lambda *_: right)(model, right, seed)
        except FloatingPointError as error:  # of pm.fit
            print(json.dumps({"model": name, "seed": seed, "draws": kind, "status": f"no draws: {error}"[:100]}))
            continue
        began = time.perf_counter()
        report = bread.check(
            model, simulate_from="fitted" if kind == "fitted" else "posterior", posterior=draws, random_seed=seed,
            cores=options.cores, progressbar=False,
            max_seconds=options.wrong_seconds if kind in ("advi", "stale") else options.max_seconds,
        )  # fmt: skip
        row = {"model": name, "seed": seed, "draws": kind, "seconds": round(time.perf_counter() - began, 1)}
        print(json.dumps(row | read_row(report)), flush=True)


def read_row(report: Any) -> dict[str, Any]:
    verdict, attributes = bread.verdict(report), read_attributes(report)
    cost, alarm = read_group(report, "cost"), read_group(report, "alarm")
    return {
        "status": verdict.status,
        "look": float(read_group(report, "first_look")["p_value"]),
        "r_hat": round(float(attributes["fit_r_hat"]), 3),
        "effective": round(float(attributes["fit_n_effective"])),
        "chains": None if alarm is None else float(alarm["weighted_rank_p_value_combined"]),
        "V": round(float(verdict.error_limit), 3) if read_group(report, "certificate") is not None else None,
        "gradients": int(cost["n_gradients"].sum()),
        "interrupted": bool(attributes.get("is_interrupted", 0)),
        "verdict": str(verdict),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(hard_posteriors.MODELS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--draws", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--max-seconds", type=float, default=60.0)
    parser.add_argument("--wrong-seconds", type=float, default=60.0, help="the same for wrong draws")
    parser.add_argument("--cores", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.names:
        for seed in options.seeds:
            measure(name, seed, options)


if __name__ == "__main__":
    main()
