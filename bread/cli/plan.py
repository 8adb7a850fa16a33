"""The command `bread plan`, and how a budget is written on the command line."""

from __future__ import annotations

from dataclasses import asdict
from json import dumps
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer

import bread
from bread.cli.output import INTERRUPTED_STATUS, Output
from bread.errors import BreadError
from bread.reading.command_line import as_options

BudgetOption = Annotated[
    str | None,
    typer.Option(
        metavar="BUDGET",
        help="What to spend: a time with its unit ('5 min', '90 s', '2 h'), or a whole number of gradient evaluations.",
        show_default=False,
    ),
]


def as_budget(text: str | None) -> str | int | None:
    """Return a budget as `bread.check` takes it: digits alone are gradient evaluations."""
    digits = "" if text is None else text.strip().replace("_", "")
    return int(digits) if digits.isdecimal() else text


def plan(
    model: Annotated[Path, typer.Argument(help="Stan program, a .stan file.", show_default=False)],
    data: Annotated[
        Path | None, typer.Argument(help="Data, a JSON file in CmdStan's format.", show_default=False)
    ] = None,
    budget: BudgetOption = None,
    observed: Annotated[
        list[str] | None,
        typer.Option("--observed", "-y", metavar="NAME", help="Data variable that is an outcome; repeat it."),
    ] = None,
    simulate_from: Annotated[
        str, typer.Option(metavar="NAME", help="auto, prior, fitted, posterior or localised.")
    ] = "auto",
    path: Annotated[str, typer.Option(metavar="NAME", help="prior, reference or auto.")] = "auto",
    max_error: Annotated[float, typer.Option(metavar="V", help="Largest error of a probability to reach.")] = 0.1,
    cores: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes; by default all.", show_default=False)
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed of everything random.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object in place of a sentence.")] = False,
    progress: Annotated[bool, typer.Option(help="Show progress, on stderr.")] = True,
) -> None:
    """Predict which errors a check could see within a budget, without making it.

    For example: bread plan model.stan data.json --observed y --budget "5 min"
    """
    printed = Output(json)
    options: dict[str, Any] = {
        "data": data, "observed": observed or None, "simulate_from": simulate_from, "path": path,
        "max_error": max_error, "cores": cores, "random_seed": seed, "progressbar": progress,
    }  # fmt: skip
    if budget is None:
        raise typer.BadParameter("say what may be spent, such as '5 min'", param_hint="--budget")
    try:
        found = bread.plan(model, budget=as_budget(budget) or 0, **options)
    except BreadError as error:
        printed.fail(as_options(str(error)))
    except KeyboardInterrupt as interrupt:
        printed.fail(str(interrupt), INTERRUPTED_STATUS)
    values = {
        name: value if not isinstance(value, float) or isfinite(value) else None
        for name, value in asdict(found).items()
    }
    typer.echo(dumps({**values, "text": str(found)}, allow_nan=False) if json else str(found))
