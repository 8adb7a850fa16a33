"""The command line's own words: options in place of arguments, and how the check was made."""

from __future__ import annotations

import pytest

from bread.backends.base import ModelInfo
from bread.reading.command_line import as_options, how_it_was_made
from bread.report import container as report
from tests.support.fake_results import constrain, fake_result, model_info


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("observed='mu' is a parameter", "--observed mu is a parameter"),
        ("Name them: observed=[...] (data", "Name them: --observed NAME (data"),
        ("observed=['y', 'z']", "--observed y --observed z"),
        ("or give simulator= and path='reference', which", "or give --simulator and --path reference, which"),
        ("Pass simulator=, and", "Pass --simulator, and"),
        ("use simulate_from='prior'.", "use --simulate-from prior."),
        ('use simulate_from="localised", which', "use --simulate-from localised, which"),
        ("likelihood=[3, 4] does", "--likelihood 3 --likelihood 4 does"),
        ("Or likelihood=12.", "Or --likelihood 12."),
        ("posterior= has no variable 'mu'", "--posterior has no variable 'mu'"),
        ("raise init_steps, or", "raise --init-steps, or"),
        ("hyperparameters names 'tu', which", "--hyperparameter names 'tu', which"),
        ("hyperparameters=[...] names", "--hyperparameter NAME names"),
        ("temperatures (max_temperatures=), or", "temperatures (--max-temperatures), or"),
        ("a larger n_temperatures may", "a larger --temperatures may"),
        ("Use simulations=20 or more", "Use --simulations 20 or more"),
        # prose, and text of a program, stay
        ("the hyperparameters of the model, its path and draws", None),
        ("line 7: `path='a' + observed=3`: no", None),
        ("brms: prior(normal(0, 2.5), class = b)", None),
        ("if (target == 3) my_path=2", None),
    ],
)
def test_arguments_become_options(message: str, wanted: str | None) -> None:
    assert as_options(message) == (message if wanted is None else wanted)


def lines(info: ModelInfo | None = None, **settings: object) -> dict[str, list[str]]:
    result = fake_result(info=info, simulate_from=str(settings.get("simulate_from", "prior")))
    result.settings.update(settings)
    found: dict[str, list[str]] = {}
    for label, words in how_it_was_made(report.to_container(result, constrain)):
        found.setdefault(label, []).append(words)
    return found


def test_path_protocol_held_parameters_and_outcomes_are_said() -> None:
    made = lines(simulate_from="fitted", hyperparameters=["mu", "tau"], path="auto")
    assert made["Path"] == ["prior, chosen by pilots"]
    assert made["Data sets"][0].startswith("fitted, near your data")
    assert made["Held"] == ["mu, tau"] and made["Outcomes"] == ["y"]
    made = lines(simulate_from="prior", hyperparameters=["mu", "tau"], path="prior")
    assert made["Path"] == ["prior"] and made["Data sets"] == ["prior, from the prior"] and "Held" not in made


def test_notes_that_matter_are_said_and_no_others() -> None:
    again = "The simulator made 40 joint draws again for 200 that were kept (mu is too large)."
    overflow = "Simulator and density were not compared by gradients: they overflow at 3 of 200 prior draws."
    notes = (
        "Observed, inferred from the program: y.", "Lines of the program by part: prior: 7; likelihood: 8.",
        "The tempered program has the density of the original one at 20 random points.", again, overflow,
        "Simulator and density agree on 200 joint draws: mean gradients are zero.",
    )  # fmt: skip
    made = lines(model_info(backend="stan", notes=notes))
    assert made["Note"][:2] == [again, overflow] and not set(made["Note"]) & set(notes) - {again, overflow}
    assert made["Outcomes"] == ["y, inferred from the program (--observed names others)"]


def test_warnings_of_the_check_are_notes() -> None:
    result = fake_result()
    result.warnings.append("Interrupted: the report holds what was finished.")
    made = how_it_was_made(report.to_container(result, constrain))
    assert ("Note", "Interrupted: the report holds what was finished.") in made
