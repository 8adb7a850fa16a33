"""Whole checks of WebPPL programs, WebPPL's own laws, and the figure: minutes."""

from __future__ import annotations

import csv
import subprocess
import sys

import numpy as np
import pytest
import webppl_models as models

import bread
from bread.report.compat import read_attributes

pytestmark = pytest.mark.skipif(models.why_not() != "", reason=models.why_not() or "runs here")
SILENT = {"cores": 1, "random_seed": 1, "progressbar": False}


@pytest.mark.slow
def test_a_check_of_a_whole_program():
    options = {"simulate_from": "prior", "simulations": 10, "n_temperatures": [64, 512], "draws": 100, **SILENT}
    report = bread.check(models.normal_mean(updates=4), **options)
    assert bread.verdict(report).status == "converged", bread.verdict(report)
    assert read_attributes(report)["kernels_of"] == "WebPPL"
    broken = bread.check(models.normal_mean(updates=4, packages=[models.NARROW]), **options)
    assert bread.verdict(broken).status == "bug", bread.verdict(broken)


@pytest.mark.slow
def test_a_check_has_the_same_numbers_on_two_workers():
    options = {"simulate_from": "prior", "simulations": 4, "n_temperatures": [8], "draws": 0, "random_seed": 1}
    one, two = (bread.check(models.coins(), cores=cores, progressbar=False, **options) for cores in (1, 2))
    for group in ("forward", "reverse"):
        assert np.array_equal(one[group]["log_weight"], two[group]["log_weight"])


@pytest.mark.slow
def test_draws_of_continuous_laws_of_webppl_follow_their_densities():
    """All but those of simplexes, which are refused; draws that are too narrow by half are seen among them."""
    laws = {
        "laplace": "Laplace({location: 1, scale: 2})",
        "cauchy": "Cauchy({location: 0, scale: 1})",
        "lognormal": "LogNormal({mu: 0, sigma: 1})",
        "logitnormal": "LogitNormal({mu: 0, sigma: 1, a: 0, b: 2})",
        "gamma": "Gamma({shape: 0.5, scale: 2})",
        "beta": "Beta({a: 0.5, b: 2})",
        "exponential": "Exponential({a: 2})",
        "uniform": "Uniform({a: -1, b: 3})",
        "mixture": "Mixture({dists: [Gaussian({mu: -2, sigma: 1}), Gaussian({mu: 2, sigma: 0.5})], ps: [0.3, 0.7]})",
        "multivariate": "MultivariateGaussian({mu: Vector([0, 1]), cov: Matrix([[1, 0.5], [0.5, 2]])})",
        "diagonal": "DiagCovGaussian({mu: Vector([0, 1]), sigma: Vector([1, 3])})",
        "tensor": "TensorGaussian({mu: 1, sigma: 2, dims: [2, 2]})",
    }
    drawn = " ".join(f"var {name} = sample({law});" for name, law in laws.items())
    names = ", ".join(f"{name}: {name}" for name in laws)
    program = models.program(f"var mu = gaussian(0, 1); {drawn} {models.OBSERVED}", f"{{mu: mu, {names}}}")
    for packages, status in (((), "no bug found"), ((models.NARROW,), "bug")):
        model = models.wrapped(program, {"y": models.Y}, packages=packages)
        report = bread.debug(model, only="simulator", random_seed=1, progressbar=False)
        assert bread.verdict(report).status == status, bread.verdict(report)


@pytest.mark.slow
@pytest.mark.parametrize(("packages", "status"), [((models.SAMPLER_OF_2016,), "bug"), ((), "no bug found")])
def test_the_sampler_that_the_paper_found_is_found(packages, status):
    """Draws of multivariate data by transposed eigenvectors; today's sampler passes the same tests."""
    report = bread.debug(models.correlated(packages=packages), only="simulator", random_seed=1, progressbar=False)
    assert bread.verdict(report).status == status, bread.verdict(report)


@pytest.mark.slow
def test_the_figure_of_the_factorisation(tmp_path):
    """The script runs on a small matrix; summing out one factor lowers B at any number of steps."""
    script = models.FOLDER / "examples" / "papers" / "bread_figure_2_webppl.py"
    where = [] if models.node_modules() is None else ["--node-modules", models.node_modules()]
    command = [sys.executable, str(script), "--quick", "--proposals", "prior", "--simulations", "4", *where]
    subprocess.run([*command, "--output", str(tmp_path)], check=True, capture_output=True)
    with (tmp_path / "bread_figure_2_webppl.csv").open(encoding="utf-8") as file:
        found = {(row["form"], row["steps"]): float(row["B"]) for row in csv.DictReader(file)}
    assert len(found) == 6
    assert all(found["collapsed", steps] < found["uncollapsed", steps] for _, steps in found)
    assert (tmp_path / "bread_figure_2_webppl.png").stat().st_size > 10_000
