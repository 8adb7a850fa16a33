"""Seconds of `bread.look` at draws of NUTS: python benchmarks/first_look_seconds.py {pymc,stan} [MODEL ...].

Twenty hard PyMC models (4 chains of 500 by ``pm.sample``), and ten Stan programs (4 chains by Stan's NUTS in the
embedded engine). Draws and what PyTensor compiles are kept in ``--folder``. Each look is in a process of its own,
the second one on its model: compiled code comes from the cache, and draws are an xarray Dataset with coordinates, as
ArviZ has them. Beside the wall time, for machines in use, is the processor's, that of child processes included: in all,
of opening the model, and of the look itself. "Again" is the same look once more in that process, which has imported
what it needs, as one that has sampled. With ``--check``, gradients and seconds of a whole `bread.check` of those draws.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import xarray as xr
from first_look_draws import draws_of, file_of

import bread
from bread.report.compat import read_attributes, read_group
from bread.verbs import look as _look

STAN = (
    "regression, flat priors", "eight schools, priors", "varying slopes, LKJ", "Poisson, over-dispersed",
    "zero-inflated Poisson", "two-parameter items", "Gaussian process", "stochastic volatility", "ICAR and Poisson",
    "brms, default flat b",
)  # fmt: skip


def processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def timed(function: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        began = processor()
        try:
            return function(*arguments, **named)
        finally:
            spent.append(processor() - began)

    return call


def as_dataset(draws: dict[str, Any]) -> xr.Dataset:
    arrays = {
        name: (("chain", "draw", *(f"{name}_{i}" for i in range(values.ndim - 2))), values)
        for name, values in draws.items()
    }
    sizes = next(iter(draws.values())).shape[:2]
    return xr.Dataset(arrays, coords={"chain": np.arange(sizes[0]), "draw": np.arange(sizes[1])})


def arguments_of(kind: str, name: str) -> tuple[Any, dict[str, Any]]:
    """Return the model, and what `bread.look` and `bread.check` take with it."""
    if kind == "pymc":
        import hard_posteriors

        return hard_posteriors.MODELS[name](), {}
    import shapes_stan

    program, data, observed = shapes_stan.PROGRAMS[name]
    return program, {"data": data, "observed": observed}


def look(kind: str, name: str, folder: Path) -> str:
    model, named = arguments_of(kind, name)
    draws = as_dataset(draws_of(file_of(folder, name)))
    opening: list[float] = []
    looking: list[float] = []
    bread.verdict  # noqa: B018 - what reads a report is imported here
    with (
        patch.object(_look, "open_model", timed(_look.open_model, opening)),
        patch.object(_look, "look_at", timed(_look.look_at, looking)),
    ):
        began, began_processor = time.perf_counter(), processor()
        report = bread.look(model, posterior=draws, progressbar=False, **named)
        seconds, spent = time.perf_counter() - began, processor() - began_processor
    began = time.perf_counter()
    bread.look(model, posterior=draws, progressbar=False, **named)
    again = time.perf_counter() - began
    verdict = bread.verdict(report)
    size = read_group(report, "first_look").sizes.get("coordinate", 0)
    figures = " | ".join(f"{one:.2f}" for one in (seconds, spent, *opening, *looking, again))
    return f"| {name} | {size} | {figures} | {verdict.status} | {verdict.direct_p_value:.2g} |"


def check(kind: str, name: str, folder: Path) -> str:
    model, named = arguments_of(kind, name)
    began, began_processor = time.perf_counter(), processor()
    report = bread.check(
        model,
        posterior=as_dataset(draws_of(file_of(folder, name))),
        progressbar=False,
        random_seed=1,
        max_seconds=120,
        **named,
    )
    seconds, spent = time.perf_counter() - began, processor() - began_processor
    groups = [read_group(report, group) for group in ("forward", "reverse", "observed_forward")]
    gradients = sum(int(group["n_gradients"].sum()) for group in groups if group is not None)
    protocol = read_attributes(report).get("simulate_from", "")
    return f"  a check: {seconds:.1f} s, {spent:.1f} of a processor, {gradients} gradients annealing, {protocol}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("pymc", "stan"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("--folder", type=Path, default=Path("first_look_draws"))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--task", choices=("look", "check"), help="what a process of its own does")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.task is not None:
        print({"look": look, "check": check}[options.task](options.kind, options.names[0], options.folder))
        return
    if options.kind == "pymc":
        import hard_posteriors

        names = options.names or list(hard_posteriors.MODELS)
    else:
        names = options.names or STAN
    print("| model | coordinates | seconds | of a processor | opening | looking | again | status | p |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in names:
        command = [sys.executable, __file__, options.kind, name, "--folder", str(options.folder), "--task"]
        if not file_of(options.folder, name).exists():
            maker = Path(__file__).with_name("first_look_draws.py")
            subprocess.run([sys.executable, maker, options.kind, name, "--folder", options.folder], check=True)
        tasks = ["look", "look", *(["check"] if options.check else [])]
        compiled = os.environ | {"PYTENSOR_FLAGS": f"base_compiledir={options.folder.resolve() / 'compiled'}"}
        done = [
            subprocess.run([*command, task], capture_output=True, text=True, check=False, env=compiled)
            for task in tasks
        ]
        for one in done[1:]:  # the first look fills the cache
            print(one.stdout.strip() or f"| {name} | {one.stderr.strip().splitlines()[-1]} |", flush=True)


if __name__ == "__main__":
    main()
