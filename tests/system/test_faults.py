"""What a user sees of a mistake: one line that says what is wrong, the rule, the value received and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import bread
from bread.errors import BreadError, InvalidArgumentError
from bread.report import container as report
from bread.statistics.bounds.goal import Goal
from tests.support.fake_results import constrain, fake_result
from tests.support.stan_conjugate import toolchain

RULE = r"a report of bread\.check \(InferenceData or DataTree\), or the path of its file \(netCDF or zarr\)"
READERS = (
    bread.verdict, bread.summary, bread.plot_bounds, bread.plot_consistency, bread.plot_work, bread.plot_path
)  # fmt: skip


def require_one_line(call: Callable[[], Any], message: str, kind: type[BreadError] = InvalidArgumentError) -> None:
    """Require that a call raises an error of bread whose whole message is one line that matches."""
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text and re.search(message, text), text


def draws() -> xr.Dataset:
    return xr.Dataset({"mu": (("chain", "draw"), np.zeros((4, 10)))})


def tree_of_draws(_: Path) -> Any:
    return xr.DataTree.from_dict({"posterior": draws(), "sample_stats": draws()})


def inference_data(_: Path) -> Any:
    """What `pm.sample` returns, of the installed ArviZ."""
    import arviz

    if arviz.__version__.startswith("0."):
        return arviz.InferenceData(posterior=draws(), sample_stats=draws())
    return tree_of_draws(_)


def file_of_draws(folder: Path) -> Path:
    tree_of_draws(folder).to_netcdf(folder / "draws.nc")
    return folder / "draws.nc"


def file_with(content: bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / "report.nc").write_bytes(content)
        return folder / "report.nc"

    return write


def cut_report(folder: Path) -> Path:
    path = folder / "report.nc"
    report.to_container(fake_result(), constrain).to_netcdf(str(path))
    path.write_bytes(path.read_bytes()[:20_000])
    return path


FOREIGN = {
    "None": (lambda _: None, rf"^report must be {RULE}, got None\.$"),
    "a dict": (lambda _: {"mu": 1}, rf"^report must be {RULE}, got \{{'mu': 1\}}\.$"),
    "a number": (lambda _: 3, rf"^report must be {RULE}, got 3\.$"),
    "a Dataset": (lambda _: draws(), rf"^report must be {RULE}, got an object of type Dataset\.$"),
    "a class": (lambda _: xr.DataTree, rf"^report must be {RULE}, got <class '.*DataTree'>\.$"),
    "draws as a DataTree": (
        tree_of_draws,
        rf"^report was not made by bread\.check: an object of type DataTree \(groups: posterior, sample_stats\) "
        rf"without the attribute 'bread_version', .* Pass {RULE}\. Draws of your own go to .*posterior=\)\.$",
    ),
    "draws of pm.sample": (inference_data, r"^report was not made by bread\.check: .* go to .*posterior=\)\.$"),
    "draws in a file": (file_of_draws, r"^'.*draws\.nc' was not made by bread\.check: .* go to .*posterior=\)\.$"),
    "a missing file": (lambda folder: folder / "none.nc", rf"^There is no report at '.*none\.nc'\. Pass {RULE}\.$"),
    "an empty file": (file_with(b""), rf"report\.nc' cannot be read as a report: it is empty\. Pass {RULE}\.$"),
    "text": (file_with(b"no report\n" * 9), r"cannot be read as a report: it is no netCDF file \(version 4\)\. Pass "),
    "an old netCDF": (file_with(b"CDF\x01" + b"\x00" * 99), r"as a report: it is no netCDF file \(version 4\)\. Pass "),
    "garbage in HDF5": (file_with(b"\x89HDF\r\n\x1a\n" + b"x" * 99), r"as a report: it is damaged \(.*\)\. Pass "),
    "half a report": (cut_report, r"cannot be read as a report: it is damaged \(.*truncated.*\)\. Pass "),
    "a directory": (lambda folder: folder, r"as a report: it is a directory, and no zarr store\. Pass "),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_no_report(name: str, tmp_path: Path) -> None:
    build, message = FOREIGN[name]
    value = build(tmp_path)
    for read in READERS:
        require_one_line(lambda read=read: read(value), message)  # type: ignore[misc]


@pytest.mark.parametrize("name", [name for name in FOREIGN if "file" in name or name in ("text", "a directory")])
def test_the_command_line_on_what_is_no_report(name: str, tmp_path: Path) -> None:
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from bread.cli.commands import app

    build, message = FOREIGN[name]
    done = CliRunner().invoke(app, ["show", str(build(tmp_path))])
    assert done.exit_code == (2 if name == "a missing file" else 1)
    if done.exit_code == 1:
        assert done.stdout == "" and done.stderr.count("\n") == 1
        assert re.search(message.removeprefix("^"), done.stderr.strip()), done.stderr


# ---- models, options, data -------------------------------------------------------------------------------------

QUICK: dict[str, Any] = {"simulations": 2, "chains": 1, "n_temperatures": 4, "draws": 4, "path": "prior", "cores": 1}


def check(model: Any, **options: Any) -> Any:
    return bread.check(model, progressbar=False, random_seed=1, **{**QUICK, **options})


Y, X = [1.0, 2.0, 3.0], [0.5, 1.0, -1.0]


def with_(values: list[float], index: int, value: float) -> list[float]:
    changed = list(values)
    changed[index] = value
    return changed


def pymc_model(y: list[float] = Y, x: list[float] = X, *, is_data: bool = True, prior: str = "half-normal") -> Any:
    """A regression through the origin; x is `pm.Data` or an array; its scale may have a support without a transform."""
    import pymc as pm

    with pm.Model() as model:
        slope = pm.Normal("slope")
        scale = (
            pm.HalfNormal("scale") if prior == "half-normal" else pm.Uniform("scale", 0.1, 2, default_transform=None)
        )
        mean = slope * (pm.Data("x", x) if is_data else np.array(x))
        pm.Normal("y", mean, scale, observed=y)
    return model


def own_draws(n_chains: int = 4, n_draws: int = 50, **changes: Any) -> dict[str, Any]:
    """Draws of slope and scale, of the right support; ``changes`` name a value of draw 7 of chain 1."""
    rng = np.random.default_rng(1)
    shape = (n_chains, n_draws)
    draws = {"slope": rng.normal(size=shape), "scale": rng.uniform(0.2, 1.9, shape)}
    for name, value in changes.items():
        draws[name][1, 7] = value
    return draws


NAMES = "must be a name or a sequence of names, got "
FIRST = r"^The log density is not finite at the model's initial point: y = "
LAST = r" Correct such values, or leave them out\.$"
NUTS = {"simulate_from": "fitted"}
PYMC = {
    "the class": (lambda: check(__import__("pymc").Model), r"^model is the class Model, and must be an object: a pymc"),
    "hyperparameters=3": (lambda: check(pymc_model(), hyperparameters=3), rf"^hyperparameters {NAMES}3\."),
    "hyperparameters={}": (
        lambda: check(pymc_model(), hyperparameters={"scale": 1.0}), rf"^hyperparameters {NAMES}\{{'scale': 1\.0\}}\.",
    ),
    "hyperparameters=[3]": (lambda: check(pymc_model(), hyperparameters=[3]), rf"^hyperparameters {NAMES}\[3\]\."),
    "infinite data": (
        lambda: check(pymc_model(y=with_(Y, 1, np.inf))), rf"{FIRST}-inf\. Not finite: 'y' is inf at \[1\] .*{LAST}",
    ),
    "infinite covariate": (
        lambda: check(pymc_model(x=with_(X, 2, -np.inf))), rf"{FIRST}nan\. Not finite: 'x' is -inf at \[2\] .*{LAST}",
    ),
    "NaN in an array": (
        lambda: check(pymc_model(x=with_(X, 0, np.nan), is_data=False)),
        rf"{FIRST}nan\. Not finite: an array that enters 'y' is nan at \[0\] \(1 value in all\)\.{LAST}",
    ),
    "draws outside": (
        lambda: check(pymc_model(), posterior=own_draws(scale=-1.0), simulate_from="prior"),
        r"^posterior= has a value of 'scale' outside its support or on the border: -1\.0, in chain 1, draw 7 \(1 such "
        r"draws of 200\)\. Pass draws of this model\.$",
    ),
    "draws outside, localised": (
        lambda: check(pymc_model(), posterior=own_draws(scale=-1.0), simulate_from="localised"), "outside its support",
    ),
    "draws outside, no transform": (
        lambda: check(pymc_model(prior="uniform"), posterior=own_draws(scale=3.0), kernel="hmc", **NUTS),
        r"^posterior= has draws at which the density of the model is zero, such as chain 1, draw 7 \(1 of 200 draws",
    ),
    "too few draws": (
        lambda: check(pymc_model(), posterior=own_draws(1, 5)),
        r"^posterior= has 1 x 5 draws \(chains x draws\), and must have at least 10 in all\. Pass the whole run\.$",
    ),
    "draws outside, as path=": (
        lambda: check(pymc_model(), path=own_draws(scale=-1.0)), r"^path= has a value of 'scale' outside its support",
    ),
}  # fmt: skip


@pytest.mark.pymc
@pytest.mark.parametrize("name", PYMC)
def test_pymc(name: str) -> None:
    call, message = PYMC[name]
    require_one_line(call, message)


@pytest.mark.slow
@pytest.mark.pymc
def test_pymc_takes_infinite_covariates_and_draws_that_fit() -> None:
    """Controls: a covariate may be infinite where the density is finite, and so may draws without a transform be."""
    import pymc as pm

    with pm.Model() as model:
        scale = pm.Uniform("scale", 0.1, 2.0, default_transform=None)
        pm.Normal("y", np.exp(-pm.Data("x", with_(X, 2, np.inf))), scale, observed=Y)
    report = check(model, posterior={"scale": own_draws()["scale"]}, kernel="hmc", **NUTS)
    assert bread.verdict(report).n_simulations == 2


STAN_PROGRAM = """data {
  int N;
  vector[N] x;
  vector[N] y;
}
parameters {
  real slope;
  real<lower=0> scale;
}
model {
  slope ~ normal(0, 1);
  scale ~ normal(0, 1);
  y ~ normal(slope * x, scale);
}
"""
BEGIN = r"^The program cannot use its data\. Not finite: "


def stan_data(**changes: Any) -> dict[str, Any]:
    return {"N": 3, "x": X, "y": Y, **changes}


def check_stan(data: Any = None, **options: Any) -> Any:
    return check(STAN_PROGRAM, **{"data": stan_data() if data is None else data, "observed": ["y"], **options})


STAN = {
    "hyperparameters=3": (lambda: check_stan(hyperparameters=3), rf"^hyperparameters {NAMES}3\."),
    "NaN in a covariate": (
        lambda: check_stan(stan_data(x=with_(X, 1, np.nan))), rf"{BEGIN}'x' is nan at \[2\] \(1 value in all\)\. The",
    ),
    "infinite covariate": (
        lambda: check_stan(stan_data(x=with_(X, 2, np.inf))), rf"{BEGIN}'x' is inf at \[3\] \(1 value in all\)\. ",
    ),
    "infinite data": (
        lambda: check_stan(stan_data(y=with_(Y, 0, -np.inf))), rf"{BEGIN}'y' is -inf at \[1\] \(1 value in all\)\. ",
    ),
    "masked data": (
        lambda: check_stan(stan_data(y=np.ma.masked_array(Y, [0, 1, 0]))), r"^The data 'y' are masked at y\[2\] \(1 in",
    ),
    "draws outside": (
        lambda: check_stan(posterior=own_draws(scale=-1.0), simulate_from="prior"),
        r"^posterior= has draws outside the support of the program: .* is -1, but must .*\(in 'program\.stan'",
    ),
    "too few draws": (lambda: check_stan(posterior=own_draws(1, 5)), r"^posterior= has 1 x 5 draws .* at least 10"),
}  # fmt: skip


@pytest.mark.stan
@pytest.mark.parametrize("name", STAN)
def test_stan(name: str) -> None:
    toolchain()
    call, message = STAN[name]
    require_one_line(call, message)


JSON = {
    "nested 2000 deep": ('{"x": ' + "[" * 2000 + "]" * 2000 + "}", r"is nested too deeply to be read: arrays"),
    "objects 2000 deep": (
        '{"x": ' + '{"1": ' * 2000 + "1" + "}" * 2000 + "}",
        r"is nested too deeply to be read: arrays",
    ),
    "a name twice": ('{"x": [1], "y": [2], "x": [3]}', r"holds 'x' twice\. Keep one: the other would be ignored\."),
    "null": ('{"x": [1, null]}', r"^The data 'x\[2\]' hold null, which is no number\."),
    "a list": ("[1, 2]", r"must hold one JSON object, \{name: value, \.\.\.\}, but holds list\."),
    "half a file": ('{"x": [1, 2', r"cannot be read as JSON: Expecting ',' delimiter"),
    "a missing file": (None, r"^There is no data file at "),
}


@pytest.mark.stan
@pytest.mark.parametrize("name", JSON)
def test_json(name: str, tmp_path: Path) -> None:
    from bread.backends.stan.opening import read_data

    text, message = JSON[name]
    path = tmp_path / "data.json"
    if text is not None:
        path.write_text(text)
    require_one_line(lambda: read_data(path), message)


def test_json_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    from bread.backends.stan.opening import read_data

    (tmp_path / "data.json").write_text('\ufeff{"x": [1, "NaN"]}', encoding="utf-8")
    data = read_data(tmp_path / "data.json")
    assert data["x"][0] == 1 and np.isnan(data["x"][1])


# ---- words -----------------------------------------------------------------------------------------------------


def negative_estimate(goal: Goal) -> Any:
    """A report whose mean gap is negative: samplers without fault on long paths have such estimates."""
    result = fake_result(gap=1e-3, goal=goal)
    for (simulation, direction, n_temperatures), run in result.runs.items():
        if direction == "reverse":
            lower = replace(run, log_weight=run.log_weight - 0.017, log_ratio=run.log_ratio - 0.3)
            result.runs[simulation, direction, n_temperatures] = lower
    return report.to_container(result, constrain)


@pytest.mark.parametrize("goal", [Goal(), Goal(target=1.0)])
def test_no_bound_is_said_to_be_negative(goal: Goal) -> None:
    made = negative_estimate(goal)
    raw = report.read_group(made, "bounds")["jeffreys_raw"].values[-1]
    assert raw < -0.005  # the report keeps it
    words = bread.verdict(made).details
    assert "B < 0.01 nats" in words and not re.search(r"-\d|\b0 nats|within 0 ", words), words


def test_the_plot_of_the_path_shows_no_negative_gap() -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    axes = bread.plot_path(negative_estimate(Goal()))
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert not any(re.search(r"gap of [-\u2212]", text) for text in texts), texts
    pyplot.close(axes.figure)
