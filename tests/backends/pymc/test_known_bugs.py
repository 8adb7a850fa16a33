"""Warnings of defects of released versions of PyMC, on both sides of each bound."""

import json

import numpy as np
import pymc as pm
import pytest

import bread
from bread.backends import open_model
from bread.backends.base import OpenOptions
from bread.backends.pymc.known_bugs import KNOWN_BUGS, find_known_bugs, warn_of
from bread.errors import KnownBugWarning

DRAWS, JACOBIAN, CONSTANT = "random draws have too little correlation", "leaves out a Jacobian", "constant factor"


def correlation(n):
    with pm.Model() as model:
        matrix = pm.LKJCorr("matrix", n=n, eta=2.0)
        pm.Normal("y", matrix.sum(), 1.0, observed=0.3)
    return model


def cholesky(n):
    with pm.Model() as model:
        chol, _, _ = pm.LKJCholeskyCov("chol", n=n, eta=1.0, sd_dist=pm.HalfNormal.dist(1.0, shape=n))
        pm.MvNormal("y", np.zeros(n), chol=chol, observed=np.ones((2, n)))
    return model


PATH = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])  # neighbours on a line


def without():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu"), 1.0, observed=0.3)
    return model


def kinds(model, version):
    texts = [found.text for found in find_known_bugs(model, version)]
    assert all("Upgrade to pymc >= 6.4.0." in text and f"PyMC {version}" in text for text in texts)
    return [next(kind for kind in (DRAWS, JACOBIAN, CONSTANT) if kind in text) for text in texts]


@pytest.mark.parametrize(
    ("build", "n", "version", "expected"),
    [
        (correlation, 2, "5.25.0", [CONSTANT]),
        (correlation, 3, "5.28.5", [CONSTANT]),
        (correlation, 2, "6.3.2", [CONSTANT]),
        (correlation, 3, "6.0.0", [DRAWS, JACOBIAN, CONSTANT]),
        (correlation, 3, "6.3.2", [DRAWS, JACOBIAN, CONSTANT]),
        (correlation, 3, "6.4.0", []),
        (cholesky, 3, "5.28.5", [CONSTANT]),
        (cholesky, 2, "6.0.0", [CONSTANT]),
        (cholesky, 3, "6.0.0", [DRAWS, CONSTANT]),
        (cholesky, 4, "6.3.2", [DRAWS, CONSTANT]),
        (cholesky, 3, "6.4.0", []),
    ],
)
def test_a_defect_is_named_within_its_versions_and_dimensions_only(build, n, version, expected):
    assert kinds(build(n), version) == expected


@pytest.mark.parametrize("version", ["5.25.0", "5.28.5", "6.0.0", "6.3.2", "6.4.0"])
def test_other_models_meet_nothing(version):
    assert find_known_bugs(without(), version) == []


def test_the_installed_version_has_a_constant_where_the_table_says_so():
    # log of what the density of a correlation of two variables integrates to: its support is (-1, 1), eta = 1
    value = 0.0 if pm.LKJCorr.dist(n=2, eta=1.0).type.ndim == 1 else np.eye(2)
    at_zero = float(pm.logp(pm.LKJCorr.dist(n=2, eta=1.0), np.atleast_1d(value)).eval(mode="FAST_COMPILE"))
    has_constant = abs(at_zero + np.log(2.0)) > 1e-6
    assert has_constant == bool(kinds(correlation(2), pm.__version__))


def test_only_what_changes_draws_or_posteriors_is_warned_of():
    found = find_known_bugs(cholesky(3), "6.3.1")
    with pytest.warns(KnownBugWarning) as said:
        warn_of(found)
    assert len(said) == 1 and DRAWS in str(said[0].message) and "'chol' (LKJCholeskyCov, n = 3)" in str(said[0].message)
    warn_of(find_known_bugs(cholesky(2), "6.3.1"))  # a constant alone: any warning would be an error here
    assert [bug.is_harmless for bug in KNOWN_BUGS] == [False, False, True, False, True, False, False, True]


@pytest.mark.parametrize("version", ["5.28.5", "6.4.0"])
def test_what_no_version_mends_is_named_with_what_to_use_instead(version):
    with pm.Model() as model:
        pm.CAR("field", np.zeros(3), PATH, alpha=0.5, tau=2.0)
    found, constant = find_known_bugs(model, version)
    assert "'field' (CAR): its random draws have the covariance Q^-2" in found.text and not found.is_harmless
    assert constant.is_harmless and "leaves out the constant" in constant.text
    assert "Use pm.MvNormal(mu, tau=Q)" in found.text and "Upgrade" not in found.text


def test_what_is_named_in_place_of_a_car_has_its_density_and_draws_of_its_own():
    precision = 2.0 * (np.diag(PATH.sum(axis=1)) - 0.5 * PATH)
    exact, at = np.linalg.inv(precision), np.array([0.3, -1.0, 0.5])
    instead = pm.MvNormal.dist(np.zeros(3), tau=precision)
    field = pm.CAR.dist(np.zeros(3), PATH, alpha=0.5, tau=2.0)
    rises = [(pm.logp(law, at) - pm.logp(law, 0.0 * at)).sum().eval(mode="FAST_COMPILE") for law in (field, instead)]
    assert rises[0] == pytest.approx(rises[1], abs=1e-6)  # CAR's density has another constant
    n, variances = 4000, {}
    for name, law in (("CAR", field), ("MvNormal", instead)):
        draws = pm.draw(law, draws=n, random_seed=1, mode="FAST_COMPILE")
        variances[name] = draws.var(axis=0)
    error = np.diag(exact) * np.sqrt(2.0 / n)  # of a normal variance
    assert (np.abs(variances["MvNormal"] - np.diag(exact)) < 5 * error).all()
    assert (np.abs(variances["CAR"] - np.diag(exact @ exact)) < 5 * np.diag(exact @ exact) * np.sqrt(2.0 / n)).all()


def at_points(law, points, what=pm.logp):
    return np.asarray(what(law, np.asarray(points)).eval(mode="FAST_COMPILE"))


# Each defect of a density: a variable that meets it, one of its kind that does not, and whether PyMC has it.
CUT = {
    "Censored Wald": (
        lambda: pm.Censored("x", pm.Wald.dist(2.0, 2.0), lower=None, upper=2.0),
        lambda: pm.Wald("x", 2.0, 2.0),
        lambda: abs(at_points(pm.Wald.dist(2.0, 2.0), 2.0, pm.logcdf) - np.log(0.66810)) > 1e-4,  # SciPy's invgauss
    ),
    "Truncated Wald": (
        lambda: pm.Truncated("x", pm.Wald.dist(2.0, 2.0), upper=2.0),
        lambda: pm.Truncated("x", pm.Gamma.dist(2.0, 2.0), upper=2.0),
        lambda: abs(at_points(pm.Wald.dist(2.0, 2.0), 2.0, pm.logcdf) - np.log(0.66810)) > 1e-4,
    ),
    "Censored DiscreteUniform": (
        lambda: pm.Censored("x", pm.DiscreteUniform.dist(0, 3), lower=0, upper=None),
        lambda: pm.DiscreteUniform("x", 0, 3),
        lambda: np.isinf(at_points(pm.DiscreteUniform.dist(0, 3), 0, pm.logcdf)),
    ),
    "VonMises": (
        lambda: pm.VonMises("x", 0.0, 93.0),
        lambda: pm.VonMises("x", 0.0, 91.0),
        lambda: np.isinf(at_points(pm.VonMises.dist(0.0, 93.0), 0.0)),
    ),
    "VonMises, any kappa": (
        lambda: pm.VonMises("x", 0.0, pm.HalfNormal("kappa")),
        lambda: pm.VonMises("x", 0.0, pm.math.exp(2.0)),
        lambda: np.isinf(at_points(pm.VonMises.dist(0.0, np.float64(714.0)), 0.0)),
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Scan return signature")
@pytest.mark.parametrize("name", CUT)
def test_a_defect_of_a_density_is_named_where_the_installed_version_has_it(name):
    affected, spared, is_wrong = CUT[name]
    found = {}
    for build in (affected, spared):
        with pm.Model() as model:
            build()
        found[build] = [len(find_known_bugs(model, version)) for version in (pm.__version__, "6.3.2", "6.4.0")]
    assert found == {affected: [int(is_wrong()), 1, 0], spared: [0, 0, 0]}


@pytest.mark.slow
def test_opening_warns_and_notes_under_an_affected_version(monkeypatch):
    monkeypatch.setattr(pm, "__version__", "6.3.1")
    with pytest.warns(KnownBugWarning, match=r"PyMC 6\.3\.1 in 'chol'.*Upgrade to pymc >= 6\.4\.0"):
        opened = open_model(cholesky(3), OpenOptions())
    notes = [note for note in opened.info.identity.notes if note.startswith("Known defect of PyMC 6.3.1")]
    assert len(notes) == 2 and CONSTANT in notes[1]


@pytest.mark.slow
def test_opening_says_nothing_under_the_mended_version(monkeypatch):
    monkeypatch.setattr(pm, "__version__", "6.4.0")
    opened = open_model(cholesky(3), OpenOptions())  # any warning would be an error
    assert not any("Known defect" in note for note in opened.info.identity.notes)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["6.3.1", "6.4.0"])
def test_a_report_of_debug_says_it(monkeypatch, version):
    monkeypatch.setattr(pm, "__version__", version)
    report = bread.debug(correlation(2), only="simulator", budget=0.02, random_seed=1, progressbar=False)
    notes = json.loads(report.attrs["notes"])
    assert any(CONSTANT in note for note in notes) == (version == "6.3.1")
    assert ("Known defect of PyMC" in bread.verdict(report).details) == (version == "6.3.1")
