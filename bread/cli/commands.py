"""The command line: `bread check model.stan data.json --observed y --output report.nc`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from enum import StrEnum
from json import dumps
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

import bread
from bread.cli.output import INTERRUPTED_STATUS, STATUSES, Output
from bread.cli.plan import BudgetOption, as_budget, plan
from bread.errors import BreadError, CheckpointWarning, InvalidArgumentError
from bread.jobs import interrupts
from bread.reading.as_json import evidence_json
from bread.reading.command_line import as_options
from bread.reading.page.writing import require_writable as require_page
from bread.reading.sentences.printable import printable
from bread.report.opening import opened_report

app = typer.Typer(
    name="bread",
    help="Can I trust the draws my sampler gave me? Bounds, in nats, on how far annealed MCMC draws are from the "
    "posterior, on data like yours.",
    epilog=STATUSES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write the report to this netCDF file.", show_default=False)
]
CoresOption = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Processes; by default all.", show_default=False)
]
ProgressOption = Annotated[bool, typer.Option(help="Show progress, on stderr.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object in place of tables, errors included.")]
MarkdownOption = Annotated[bool, typer.Option("--markdown", help="Print the report as Markdown in place of tables.")]
HtmlOption = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write the report as one HTML page, with plots.", show_default=False),
]


class SimulateFrom(StrEnum):
    """Where simulated data come from."""

    auto = "auto"
    fitted = "fitted"
    prior = "prior"
    posterior = "posterior"
    localised = "localised"


class PathName(StrEnum):
    """Where chains anneal from."""

    auto = "auto"
    prior = "prior"
    reference = "reference"


class KernelName(StrEnum):
    """Stan's samplers."""

    nuts = "nuts"
    hmc = "hmc"
    independence_nuts = "independence+nuts"
    independence_hmc = "independence+hmc"


class ScheduleName(StrEnum):
    """Where the inverse temperatures lie."""

    adaptive = "adaptive"
    linear = "linear"
    sigmoid = "sigmoid"
    geometric = "geometric"


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"bread {bread.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


@app.command(epilog=STATUSES)
def check(
    model: Annotated[Path, typer.Argument(help="Stan program, a .stan file.", show_default=False)],
    data: Annotated[
        Path | None, typer.Argument(help="Data, a JSON file in CmdStan's format.", show_default=False)
    ] = None,
    observed: Annotated[
        list[str] | None,
        typer.Option(
            "--observed",
            "-y",
            metavar="NAME",
            help="Data variable that is an outcome; repeat it for several. Inferred where the program leaves no doubt.",
        ),
    ] = None,
    output: OutputOption = None,
    simulate_from: Annotated[
        SimulateFrom,
        typer.Option(
            help="'auto': the first of 'fitted', 'posterior', 'localised' that the model allows, else a look at draws "
            "alone. 'prior': exact, data may look unlike yours. 'fitted': hyperparameters held at draws of a fit. "
            "'posterior': at draws of the posterior, added to your data; no prior need be drawn. "
            "'localised': exact, near your data, on a model whose hyperparameters have a fit as their law."
        ),
    ] = SimulateFrom.auto,
    hyperparameter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Parameter to hold under 'fitted'; repeat it for several.", show_default=False
        ),
    ] = None,
    posterior: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="CSV", help="Your own draws: CmdStan's CSV file of a chain; repeat it.", show_default=False
        ),
    ] = None,
    simulator: Annotated[
        Path | None,
        typer.Option(help="Stan program whose generated quantities are parameters and data.", show_default=False),
    ] = None,
    likelihood: Annotated[
        list[int] | None,
        typer.Option(metavar="LINE", help="Line of the program that is likelihood; repeat it.", show_default=False),
    ] = None,
    simulations: Annotated[int, typer.Option(min=1, metavar="N", help="Simulated data sets that give the bound.")] = 20,
    chains: Annotated[int, typer.Option(min=1, metavar="N", help="Chains per data set and direction.")] = 4,
    temperatures: Annotated[
        list[int] | None,
        typer.Option(
            "--temperatures",
            "-T",
            min=2,
            metavar="T",
            help="Run exactly this number of inverse temperatures; repeat it. "
            "By default it grows until the bound is below the target.",
            show_default=False,
        ),
    ] = None,
    path: Annotated[
        PathName,
        typer.Option(
            metavar="NAME",
            help="Where chains anneal from: prior, reference (fitted to each data set) or auto (the cheaper).",
        ),
    ] = PathName.auto,
    max_temperatures: Annotated[int, typer.Option(min=2, metavar="T", help="Where growing ends.")] = 1024,
    max_error: Annotated[float, typer.Option(metavar="V", help="Largest error of a probability to reach.")] = 0.1,
    target: Annotated[
        float | None, typer.Option(metavar="NATS", help="Reach this B instead, in nats.", show_default=False)
    ] = None,
    budget: BudgetOption = None,
    schedule: Annotated[
        ScheduleName,
        typer.Option(
            metavar="NAME", help="Where the inverse temperatures lie: adaptive, linear, sigmoid or geometric."
        ),
    ] = ScheduleName.adaptive,
    kernel: Annotated[
        KernelName, typer.Option(help="Stan's sampler; after proposals from the path's start.")
    ] = KernelName.nuts,
    init_steps: Annotated[
        int, typer.Option(min=0, metavar="N", help="Steps before reverse chains, under 'fitted'.")
    ] = 100,
    tune: Annotated[int, typer.Option(min=10, metavar="N", help="Adaptation steps at every knot.")] = 200,
    draws: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Certified draws on your data; by default as many as the comparison with your draws needs.",
            show_default=False,
        ),
    ] = None,
    cores: CoresOption = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep what is finished here; the same call, or bread resume FOLDER, goes on from there.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed of everything random.", show_default=False)
    ] = None,
    html: HtmlOption = None,
    json: JsonOption = False,
    markdown: MarkdownOption = False,
    progress: ProgressOption = True,
) -> None:
    """Bound how far draws of annealed MCMC are from the posterior of a Stan program.

    For example: bread check model.stan data.json --observed y --output report.nc

    The program is not changed. It is compiled at first use (half a minute or so), then taken from a cache.
    """
    options: dict[str, Any] = {
        "data": data, "observed": observed or None, "simulator": simulator, "likelihood": likelihood or None,
        "simulate_from": simulate_from.value, "hyperparameters": hyperparameter or None,
        "posterior": posterior or None, "init_steps": init_steps, "simulations": simulations, "chains": chains,
        "n_temperatures": temperatures or None, "max_temperatures": max_temperatures,
        "max_error": max_error, "target": target, "budget": as_budget(budget),
        "path": path.value, "schedule": schedule.value, "kernel": kernel.value, "tune": tune, "draws": draws,
        "cores": cores, "checkpoint": checkpoint, "random_seed": seed, "progressbar": progress,
    }  # fmt: skip
    _run(lambda: bread.check(model, **options), output, html, Output(json, markdown))


@app.command(epilog=STATUSES)
def resume(
    checkpoint: Annotated[Path, typer.Argument(metavar="FOLDER", help="What --checkpoint named.", show_default=False)],
    output: OutputOption = None,
    cores: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Processes; by default as in the first call.", show_default=False),
    ] = None,
    html: HtmlOption = None,
    json: JsonOption = False,
    markdown: MarkdownOption = False,
    progress: ProgressOption = True,
) -> None:
    """Go on with a check from its checkpoint, which holds program, data and options.

    It holds pickles, and reading those can run any code: resume only what you or someone you trust has made.
    """
    _run(lambda: bread.resume(checkpoint, cores=cores, progressbar=progress), output, html, Output(json, markdown))


@interrupts.ends_later()
def _run(run: Callable[[], Any], output: Path | None, html: Path | None, printed: Output) -> NoReturn:
    """Run a check, write its report, print it and leave."""
    _require_writable(output)
    _require_page(html, output)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an interruption is part of the verdict
            warnings.simplefilter("always", CheckpointWarning)
            warnings.showwarning = _warn
            report = run()
    except BreadError as error:
        if error.report is not None:
            _save(error.report, output)
            printed.write_page(error.report, html)
        printed.fail(as_options(str(error)))
    except KeyboardInterrupt as interrupt:
        printed.fail(str(interrupt), INTERRUPTED_STATUS)
    saved = _save(report, output)
    printed.show(report, saved, html, is_where_asked=saved == output)


@app.command(epilog=STATUSES)
def show(
    report: Annotated[Path, typer.Argument(help="Report that `bread check` wrote (netCDF or zarr).", exists=True)],
    html: HtmlOption = None,
    json: JsonOption = False,
    markdown: MarkdownOption = False,
) -> None:
    """Print the table and the verdict of a report again, with the same exit status."""
    _require_page(html, report)
    printed = Output(json, markdown)
    try:
        with opened_report(report) as found:
            printed.show(found, page=html)
    except BreadError as error:
        printed.fail(str(error))


app.command()(plan)


@app.command()
def evidence(
    report: Annotated[Path, typer.Argument(help="Report that `bread check` wrote (netCDF or zarr).", exists=True)],
    level: Annotated[float, typer.Option(metavar="P", help="Two-sided confidence level.")] = 0.95,
    json: JsonOption = False,
) -> None:
    """Print the log evidence of the model on the real data, with every estimator."""
    printed = Output(json)
    try:
        found = bread.evidence(report, level=level)
    except BreadError as error:
        printed.fail(as_options(str(error)))
    typer.echo(dumps(evidence_json(found), allow_nan=False) if json else str(found))


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(printable(f"warning: {message}"), err=True)


def _require_writable(output: Path | None) -> None:
    """Refuse a report that cannot be written before anything is computed."""
    if output is None:
        return
    from bread.report.writing import require_writable  # xarray takes a second

    try:
        require_writable(output)
    except InvalidArgumentError as error:
        raise typer.BadParameter(str(error), param_hint="--output") from None


def _require_page(html: Path | None, report: Path | None) -> None:
    """Refuse a page that cannot be written, or would replace the report, before anything is computed."""
    if html is None:
        return
    if report is not None and html.resolve() == report.resolve():
        raise typer.BadParameter("the page would replace the report; name another file", param_hint="--html")
    try:
        require_page(html)
    except InvalidArgumentError as error:
        raise typer.BadParameter(str(error), param_hint="--html") from None


def _save(report: Any, output: Path | None) -> Path | None:
    """Write the report, whatever signal comes meanwhile; return where it is, and say so if that is elsewhere."""
    if output is None:
        return None
    from bread.report.writing import save

    with interrupts.handled():
        interrupts.defer()
        place, why = save(report, output)
    if why:
        where = "It is not kept: nothing takes it." if place is None else f"It is in {place}."
        typer.echo(f"error: {why} {where}", err=True)
    return place
