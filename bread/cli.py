"""The command line: `bread check model.stan data.json --observed y --output report.nc`."""

from __future__ import annotations

import os
import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import bread
from bread.errors import BreadError
from bread.reading.agreement import agreement_table
from bread.reading.command_line import as_options, how_it_was_made
from bread.report.compat import read_attributes
from bread.report.opening import opened_report
from bread.running import interrupts

EXIT_STATUS = {"converged": 0, "not converged": 3, "inconclusive": 3, "mismatch": 4, "bug": 5, "disagreement": 6}
ERROR_STATUS = 1
INTERRUPTED_STATUS = 130  # as a shell reports a program that Ctrl-C ended

_STATUSES = (
    "Exit status: 0 the bound is below the target; 1 error; 2 wrong usage; 3 not converged, or inconclusive; "
    "4 your data anneal unlike simulated data; 5 a bug in model, simulator or sampler; 6 your draws disagree."
)

_CAPTION = (
    "T: number of temperatures. V: bound of the error of any probability computed from one annealed draw, on average "
    "over data sets, with the limit that decides and one that holds whatever other data sets are like (exact). B: "
    "bound of the Jeffreys divergence in nats, with its interval; - where it has no finite mean. diverged: transitions."
)

_MOST_PARAMETERS = 8
_DRAWS_CAPTION = (
    "holds: share of annealed draws that the 90% interval of your draws (or of the fit's) holds, with limits; shift "
    "of the mean and ratio of standard deviations; error: of any P(parameter <= x), at most, V included; "
    "effective draws, of which 100 are needed."
)

app = typer.Typer(
    name="bread",
    help="Can I trust the draws my sampler gave me? Bounds, in nats, on how far annealed MCMC draws are from the "
    "posterior, on data like yours.",
    epilog=_STATUSES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class SimulateFrom(StrEnum):
    """Where simulated data come from."""

    fitted = "fitted"
    prior = "prior"
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


@app.command(epilog=_STATUSES)
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
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the report to this netCDF file.", show_default=False)
    ] = None,
    simulate_from: Annotated[
        SimulateFrom,
        typer.Option(
            help="'prior': exact, data may look unlike yours. 'fitted': hyperparameters held at draws of a fit. "
            "'localised': exact, near your data, on a model whose hyperparameters have a fit as their law."
        ),
    ] = SimulateFrom.fitted,
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
    schedule: Annotated[
        ScheduleName,
        typer.Option(
            metavar="NAME", help="Where the inverse temperatures lie: adaptive, linear, sigmoid or geometric."
        ),
    ] = ScheduleName.adaptive,
    kernel: Annotated[KernelName, typer.Option(help="Stan's sampler.")] = KernelName.nuts,
    init_steps: Annotated[
        int, typer.Option(min=0, metavar="N", help="Steps before reverse chains, under 'fitted'.")
    ] = 100,
    tune: Annotated[int, typer.Option(min=10, metavar="N", help="Adaptation steps at every knot.")] = 200,
    draws: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Annealed draws on your data; by default as many as the comparison with your draws needs.",
            show_default=False,
        ),
    ] = None,
    cores: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Processes; by default all.", show_default=False)
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed of everything random.", show_default=False)
    ] = None,
    progress: Annotated[bool, typer.Option(help="Show progress, on stderr.")] = True,
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
        "max_error": max_error, "target": target,
        "path": path.value, "schedule": schedule.value, "kernel": kernel.value, "tune": tune, "draws": draws,
        "cores": cores, "random_seed": seed, "progressbar": progress,
    }  # fmt: skip
    _require_writable(output)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an interruption is part of the verdict
            report = bread.check(model, **options)
    except BreadError as error:
        _save(error.report, output)
        _fail(as_options(str(error)))
    except KeyboardInterrupt as interrupt:
        _fail(str(interrupt), INTERRUPTED_STATUS)
    _save(report, output)
    _show(report, output)


@app.command(epilog=_STATUSES)
def show(
    report: Annotated[Path, typer.Argument(help="Report that `bread check` wrote (netCDF or zarr).", exists=True)],
) -> None:
    """Print the table and the verdict of a report again, with the same exit status."""
    try:
        with opened_report(report) as found:
            _show(found)
    except BreadError as error:
        _fail(str(error))


def _show(report: Any, output: Path | None = None) -> None:
    """Print table and verdict, and leave with the verdict's status."""
    console = Console()
    frame = bread.summary(report)
    frame = frame[frame["n_simulations"] > 0] if len(frame) else frame  # the rest served the consistency test alone
    table = Table(
        title="Bounds", title_justify="left", caption=_CAPTION, caption_justify="left", box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )  # fmt: skip
    for name in ("T", "V", "limit", "exact", "B", "interval", "data sets", "diverged"):
        table.add_column(name, no_wrap=True, justify="right")
    for n_temperatures, row in frame.iterrows():
        jeffreys = _number(row["jeffreys"]) if row["reliable"] else "-"
        interval = f"{_number(row['lower'])} to {_number(row['upper'])}" if row["reliable"] else "-"
        data_sets = f"{row['n_simulations']} {row['role']}"
        table.add_row(
            str(n_temperatures), _number(row["error"]), _number(row["error_limit"]), _number(row["error_limit_exact"]),
            jeffreys, interval, data_sets, str(row["n_divergences"]),
        )  # fmt: skip
    if len(frame):
        console.print(table)
        console.print()
    _show_draws(report, console)
    verdict = bread.verdict(report)
    is_stan = str(read_attributes(report).get("inference_library", "")) == "stan"  # PyMC has no command line here
    for label, words in how_it_was_made(report):
        console.print(
            Text.assemble((f"{label}:", "dim"), " ", as_options(words) if is_stan else words), highlight=False
        )
    console.print()
    words = str(verdict).removeprefix(f"{verdict.status.capitalize()}. ")
    words = as_options(words) if is_stan else words
    console.print(Text.assemble((f"{verdict.status}:", "bold"), " ", words), highlight=False)
    if output is not None:
        console.print(Text(f"Report: {output}"), soft_wrap=True)
    raise typer.Exit(EXIT_STATUS[verdict.status])


def _show_draws(report: Any, console: Console) -> None:
    """Print the comparison of draws, the worst parameters first."""
    frame = agreement_table(report)
    if frame is None:
        return
    shown = frame.head(_MOST_PARAMETERS)
    left = f", worst {len(shown)} of {len(frame)}" if len(frame) > len(shown) else ""
    table = Table(
        title=f"Draws{left}", title_justify="left", caption=_DRAWS_CAPTION, caption_justify="left", box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )  # fmt: skip
    table.add_column("parameter", overflow="fold")
    for name in ("holds", "limits", "shift", "sd ratio", "error", "effective"):
        table.add_column(name, no_wrap=True, justify="right")
    for parameter, row in shown.iterrows():
        table.add_row(
            str(parameter), f"{row['content']:.2f}", f"{row['lower']:.2f} to {row['upper']:.2f}", f"{row['shift']:.2f}",
            f"{row['sd_ratio']:.2f}", f"{row['error_limit']:.2f}", f"{row['n_effective']:.0f}",
        )  # fmt: skip
    console.print(table)
    console.print()


def _number(value: Any) -> str:
    return f"{max(float(value), 0.0):.3g}"


def _require_writable(output: Path | None) -> None:
    if output is not None and not output.resolve().parent.is_dir():
        raise typer.BadParameter(f"the folder {output.resolve().parent} does not exist", param_hint="--output")


def _save(report: Any, output: Path | None) -> None:
    """Write the report, whatever signal comes meanwhile; a file that is there is replaced only by a whole one."""
    if output is None or report is None:
        return
    unfinished = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        with interrupts.handled():
            interrupts.defer()
            report.to_netcdf(unfinished)
            os.replace(unfinished, output)
    except OSError as error:
        _fail(f"The report cannot be written to {output}: {error}")
    finally:
        unfinished.unlink(missing_ok=True)


def _fail(message: str, status: int = ERROR_STATUS) -> NoReturn:
    typer.secho("error: ", fg=typer.colors.RED, err=True, nl=False)
    typer.echo(message, err=True)
    raise typer.Exit(status)
