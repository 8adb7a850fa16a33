"""What a look finds before any chain runs, and when half of the chains are enough for a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bread.fitting.gaussian.families import FAMILIES
from bread.fitting.search import found_references as founds
from bread.fitting.search import reference_fit, searches, selection
from bread.fitting.search.before_chains import finds_reference
from bread.fitting.search.found_families import CONDITIONAL, MODES, NESTED
from bread.fitting.search.found_references import Found
from bread.fitting.search.reference_fit import FitRequest, fit_reference
from bread.fitting.search.work import FitWork, Part
from bread.paths.mixture import diagonal
from tests.support.two_scales import TWO_SCALES, divergence, exact_draws

REAL = TWO_SCALES.observed_data
REQUEST = FitRequest(TWO_SCALES.dim, TWO_SCALES.transformed, 200)


@pytest.fixture(autouse=True, scope="module")
def no_exact_law():
    """Given its scales this model has an exact law, which would be found first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searches, "FEWEST_SCALES", 99)
        yield


@pytest.fixture(scope="module")
def look(no_exact_law):
    return finds_reference(TWO_SCALES.condition(REAL), REQUEST, root=3, simulation=0)


def fit(looked=None):
    return fit_reference(TWO_SCALES.condition(REAL), replace(REQUEST, looked=looked), root=3, simulation=0)


def test_a_look_brings_what_it_found(look):
    assert look.is_found and look.found.is_looked and not look.found.is_complete
    (law,) = look.found.references.values()
    assert set(law.drivers) == {0, 1}
    value, error = divergence(REAL, law)
    assert value + 4.0 * error < 0.4
    assert 0 < look.found.n_given_gradients <= look.n_gradients


def test_what_a_look_found_is_not_looked_for_again(look, monkeypatch):
    anew = fit()
    monkeypatch.setattr(Found, "look_for_given", lambda *arguments: pytest.fail("looked for again"))
    kept = fit(look.found)
    assert kept.reference is look.found.references[CONDITIONAL] and kept.family == CONDITIONAL
    assert kept.n_given_gradients == look.found.n_given_gradients and set(kept.drivers) >= {0, 1}
    assert kept.criterion[CONDITIONAL] < 0.5
    assert kept.n_gradients < anew.n_gradients - 0.5 * anew.n_given_gradients


def test_no_chain_runs_where_a_look_found_a_law_that_is_near(look, monkeypatch):
    monkeypatch.setattr(reference_fit, "run_chain", lambda *arguments, **others: pytest.fail("a chain was run"))
    kept = fit(look.found)
    assert kept.n_chains == 0 and kept.family == CONDITIONAL and set(kept.settings) == {"step_size", "inverse_metric"}
    with pytest.raises(pytest.fail.Exception, match="a chain was run"):
        fit()


def test_what_a_model_does_not_have_is_not_optimised_first(monkeypatch):
    """Gradients tell which law is at hand: no climb to modes comes before it."""
    law = finds_reference(TWO_SCALES.condition(REAL), REQUEST, root=3, simulation=0).found.references[CONDITIONAL]
    calls = []
    monkeypatch.setattr(searches, "centred", lambda *arguments: calls.append("centred") or law)
    monkeypatch.setattr(searches, "modes", lambda *arguments: calls.append("modes"))
    assert finds_reference(TWO_SCALES.condition(REAL), REQUEST, root=3, simulation=0).is_found and calls == ["centred"]


def test_a_look_that_misled_is_made_good(look):
    """Its law is put three standard deviations beside: another one is looked for, and only its cost is told."""
    law = look.found.references[CONDITIONAL]
    _, spread = law.moments()
    components = tuple(replace(one, mean=one.mean + 3.0 * spread[[0, 1]]) for one in law.marginal.components)
    wrong = replace(law, marginal=replace(law.marginal, components=components))
    assert divergence(REAL, wrong)[0] > 5.0
    mended = fit(replace(look.found, references={CONDITIONAL: wrong}, n_given_gradients=10**9))
    value, error = divergence(REAL, mended.reference)
    assert mended.family == CONDITIONAL and value + 4.0 * error < founds.ENOUGH
    assert mended.n_given_gradients < 10**6 and look.found.n_given_gradients < 10**6


def test_densities_at_chains_are_taken_once_and_no_law_spoils_those_of_others(look):
    """The first law has density zero where chains are: its own ratio is infinite there, not that of the next."""
    law, chains = look.found.references[CONDITIONAL], [exact_draws(REAL)[:400], exact_draws(REAL)[400:800]]

    class Nowhere(type(law)):
        def log_density(self, states):
            return np.full(states.shape[:-1], -np.inf)

    nowhere = Nowhere(**{name: getattr(law, name) for name in law.__dataclass_fields__})
    first, alone = (FitWork(TWO_SCALES.condition(REAL), TWO_SCALES.transformed, 3, 0) for _ in range(2))
    assert first.criterion(nowhere, chains, 100, Part.CRITERION, 0) == np.inf
    before = first.n_evaluations
    assert first.criterion(law, chains, 100, Part.CRITERION, 1) == alone.criterion(law, chains, 100, Part.CRITERION, 1)
    assert first.n_evaluations - before == 100 and alone.n_evaluations == 100 + 400
    ratios = alone.log_ratio(law, np.concatenate([chain[200:] for chain in chains]))
    start = alone.log_ratio(law, law.sample(100, alone.rng(Part.CRITERION, 1)))
    expected = ratios.mean() - start.mean()
    assert alone.criterion(law, chains, 100, Part.CRITERION, 1) == pytest.approx(expected, abs=1e-9)


# ---- half of the chains ---------------------------------------------------------------------------------------


def test_what_is_near_is_not_compared_with_fits_to_draws(monkeypatch):
    near = fit()
    assert set(near.criterion) == {CONDITIONAL} and near.criterion[CONDITIONAL] < founds.ENOUGH
    assert near.fallback is not None and near.fallback.label == "Gaussian"
    monkeypatch.setattr(founds, "ENOUGH", 0.0)
    compared = fit()
    assert compared.family == CONDITIONAL and {"full", "diagonal"} < set(compared.criterion), "control"
    # of four families and the law itself
    assert compared.n_evaluations >= near.n_evaluations + 4 * REQUEST.n_selection_draws


def test_no_more_chains_run_where_no_fit_to_draws_will_be_as_near(monkeypatch):
    monkeypatch.setattr(founds, "ENOUGH", 0.0)  # nothing is near enough by itself
    half = fit()
    assert half.family == CONDITIONAL and half.n_chains == REQUEST.n_chains // 2
    of_draws = [value for name, value in half.criterion.items() if name in FAMILIES]
    assert len(of_draws) >= 3 and min(of_draws) > selection.SETTLED * half.criterion[CONDITIONAL]
    monkeypatch.setattr(selection, "SETTLED", 1e9)
    assert fit().n_chains == REQUEST.n_chains, "control"


@pytest.mark.parametrize(
    ("laws", "is_looked", "criterion", "dim", "expected"),
    [
        ([CONDITIONAL], False, {CONDITIONAL: 0.6, "full": 50.0}, 12, True),
        ([CONDITIONAL], False, {CONDITIONAL: 0.6, "full": np.inf}, 12, True),
        ([CONDITIONAL], False, {CONDITIONAL: 0.6, "full": 2.0}, 12, False),
        ([CONDITIONAL], False, {CONDITIONAL: 3.5, "full": 100.0}, 12, False),
        ([CONDITIONAL], True, {CONDITIONAL: 1.2, "full": 100.0}, 12, False),
        ([CONDITIONAL], True, {CONDITIONAL: 0.9, "full": 100.0}, 12, True),
        ([NESTED], False, {NESTED: 0.9, "full": 100.0}, 12, True),
        ([NESTED], True, {NESTED: 0.9, "full": 100.0}, 12, False),
        ([NESTED, CONDITIONAL], False, {NESTED: 0.9, CONDITIONAL: 2.0, "full": 100.0}, 12, True),
        ([CONDITIONAL], False, {CONDITIONAL: 0.6, "full": 100.0}, 5, False),
        ([MODES], False, {MODES: 0.6, "full": 100.0}, 12, False),
    ],
)
def test_when_a_choice_is_settled(look, monkeypatch, laws, is_looked, criterion, dim, expected):
    law = look.found.references[CONDITIONAL]
    references = {name: diagonal(np.zeros(dim), np.ones(dim)) if name == MODES else law for name in laws}
    nearest = min(criterion, key=lambda name: criterion[name])
    monkeypatch.setattr(selection, "select_family", lambda *arguments: (nearest, criterion))
    work = FitWork(TWO_SCALES.condition(REAL), np.zeros(dim, dtype=bool), 3, 0)
    choice = selection.settled(work, REQUEST, [], Found(references, is_looked=is_looked))
    assert choice == ((nearest, criterion) if expected else None)
