"""What the tests of exact draws say: simulator against density, and the kernel against its density."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import xarray as xr

from bread.reading.sentences.lines import LETTERS, Answer, short
from bread.reading.sentences.numbers import percent
from bread.reading.sentences.words import (
    CERTIFIED_DRAWS,
    NOTHING_MEANS_ANYTHING,
    SEEN_WITHOUT_ANNEALING,
    YOUR_MODEL,
    p_words,
)
from bread.report.compat import read_attributes, read_group

DIRECT_LEVEL = 0.001
MUCH_DISCARDED = 0.1  # of the joint draws: from here on the verdict speaks of the prior

LONGEST_REASON = 160  # characters; the notes of the report have all of them

_CULPRITS = {  # what is wrong, and what to look at
    "prior score": (
        "The random draws of {variable} do not follow its log density",
        "look for a custom distribution whose random function and log density differ, such as a variance where a "
        "standard deviation is meant",
    ),
    "likelihood score": (
        "Simulated data do not follow the likelihood, by its slope in {variable}",
        "look for an observed custom distribution (or simulator) whose draws and log density differ, or a term of the "
        "likelihood that does not depend on the data",
    ),
    "outcome score": (
        "Simulated data do not follow the likelihood, by the {variable}",
        "look for an observed custom distribution (or simulator) whose draws and log density differ, such as a "
        "variance where a standard deviation is meant",
    ),
    "joint score": (
        "Simulated parameters and data do not follow the log density, by its slope in {variable}",
        "look at the simulator, and at distributions whose draws and log density differ",
    ),
}
_KERNEL = "Steps of the kernel change the law of exact draws"
_STEP_METHOD = "look for a step method without a correct accept step, or one that does not leave its density unchanged"
DERIVED = "or the simulator that bread derived from it is wrong: simulator= tells which"
_DRAWS_FIRST = (
    "Look first for a custom distribution whose random draws and log density differ: such draws do not follow what the "
    "kernel leaves unchanged"
)
_LIBRARIES = {"pymc": "PyMC", "stan": "Stan", "numpyro": "NumPyro"}  # with kernels of their own; others say so
_DERIVED = ("PyMC", "Stan")  # where simulator= may take the place of what bread makes


@dataclass(frozen=True)
class Makers:
    """Who made what a test of exact draws puts together: the kernel, and the simulator.

    Attributes
    ----------
    library : str
        Whose step methods the kernel is made of, "PyMC"; "" where they may be anybody's. A check takes no others than
        the library's own.
    kernel : str
    is_derived : bool
        Whether bread made the simulator from the model, as no ``simulator=`` was given.
    """

    library: str = ""
    kernel: str = ""
    is_derived: bool = False

    @classmethod
    def of(cls, attributes: Mapping[str, Any]) -> Makers:
        """Return those of a report, by its attributes."""
        backend, said = (str(attributes.get(name, "")) for name in ("inference_library", "kernels_of"))
        library = _LIBRARIES.get(backend, said)
        settings = json.loads(str(attributes.get("settings", "{}")))
        is_derived = library in _DERIVED and settings.get("simulator") is None
        return cls(library, str(attributes.get("kernel", "")), is_derived)

    def of_kernel(self) -> str:
        """Say where to look when steps of the kernel change the law of exact draws: never first at one well tried."""
        if not self.library:
            return f"{_KERNEL}: {_STEP_METHOD}."
        parts = [
            f"{_KERNEL}. {_DRAWS_FIRST}.",
            self.or_derived(),
            f"Least likely is {self.kernel or 'the kernel'}, whose steps are {self.library}'s own.",
        ]
        return " ".join(part for part in parts if part)

    def or_derived(self) -> str:
        """Say that the simulator which bread derived may be wrong, and what to send then; "" where it derived none."""
        if not self.is_derived:
            return ""
        model = "program" if self.library == "Stan" else "model"
        return (
            f"Or the simulator that bread derived from your {model} is wrong: if you find nothing, please report that "
            f"to bread, with the {model}, its data and this report. A simulator of your own (simulator=) tells which."
        )


@dataclass(frozen=True)
class DirectFindings:
    """The tests of exact draws of a report.

    Attributes
    ----------
    p_value : float
        After correction over everything.
    test, variable, function : str
        What has the smallest p-value.
    n_draws : int
        Of that test.
    """

    p_value: float
    test: str
    variable: str
    function: str
    n_draws: int

    @property
    def is_bug(self) -> bool:
        """Whether something is broken."""
        return self.p_value < DIRECT_LEVEL


@dataclass(frozen=True)
class Unguarded:
    """What the tests of exact draws could not look at, and how many joint draws numbers cannot represent.

    Attributes
    ----------
    untested : dict of str to str
        Whole tests, each with the reason.
    share_discarded : float
        Of the joint draws.
    why_discarded : str
    """

    untested: dict[str, str] = field(default_factory=dict)
    share_discarded: float = 0.0
    why_discarded: str = ""

    def sentence(self) -> str:
        """Return what was not tested; "" where everything was."""
        by_reason: dict[str, list[str]] = {}
        for test, why in self.untested.items():
            by_reason.setdefault(_short(why), []).append(test)
        if not by_reason:
            return ""
        listed = "; ".join(f"{', '.join(tests)} ({why})" for why, tests in by_reason.items())
        return (
            f"Whether simulator, density and kernel fit together was tested in part only, and a fault may have gone "
            f"unseen. Not tested: {listed}."
        )

    def warnings(self) -> list[str]:
        """Return the same, and what is said of the prior, as warnings of one line."""
        found = []
        if self.untested:
            why = _short(next(iter(self.untested.values())))
            found.append(f"faults may go unseen, as not tested: {', '.join(self.untested)} ({why})")
        if self.share_discarded > MUCH_DISCARDED:
            share = percent(self.share_discarded)
            found.append(f"{share} of the data sets that your priors make cannot be represented: tighten the priors")
        return found

    def about_prior(self) -> str:
        """Return a sentence on the prior where it makes many data sets that cannot be represented; else ""."""
        if not self.share_discarded > MUCH_DISCARDED:
            return ""
        many = "Most" if self.share_discarded > 0.5 else "Many"
        return (
            f"{many} data sets that your priors make cannot be represented ({percent(self.share_discarded)}: "
            f"{_short(self.why_discarded)}): tighten the priors."
        )


def read_unguarded(attributes: dict[str, Any]) -> Unguarded:
    """Return what a report's attributes say; nothing where they are of an older version."""
    said = json.loads(str(attributes.get("unguarded", "{}")))
    return Unguarded(**said)


def _short(reason: str) -> str:
    """Return the first line of a reason, without its end."""
    return textwrap.shorten(reason.split("\n", maxsplit=1)[0].rstrip(". "), LONGEST_REASON, placeholder=" ...")


def read_direct(dataset: xr.Dataset) -> DirectFindings:
    """Return what the group `direct_tests` says.

    Draws that do not follow the density fail the tests of the kernel too: a score that fails is named first.
    """
    names = [str(name) for name in dataset["test"].values]
    by_test = np.minimum(dataset["p_value_by_test"].values * len(names), 1.0)
    index = int(np.argmin(by_test))
    failed = [i for i in range(len(names)) if by_test[i] < DIRECT_LEVEL and names[i].endswith("score")]
    if failed:
        index = min(failed, key=lambda i: by_test[i])
    return DirectFindings(
        float(dataset["p_value"]),
        names[index],
        str(dataset["worst_variable"].values[index]),
        str(dataset["worst_function"].values[index]),
        int(dataset["n_draws"].values[index]),
    )


def direct_bug(direct: DirectFindings, p_value: str, makers: Makers) -> list[str]:
    """Return the sentences of a bug that these tests found; ``p_value`` is written out."""
    where = f"{direct.variable}, function {direct.function}"
    culprits = [makers.of_kernel()]
    if direct.test in _CULPRITS:
        culprits = [": ".join(_culprit(direct)) + ".", makers.or_derived()]
    return [
        f"{SEEN_WITHOUT_ANNEALING}: the {direct.test} of {direct.n_draws} exact "
        f"draws fails ({p_value} after correction for all that was tested; {where}).",
        *culprits,
        NOTHING_MEANS_ANYTHING,
    ]


def _culprit(direct: DirectFindings, variable: str = "") -> tuple[str, str]:
    """Return what is wrong, and what to look at, where a score fails; ``variable`` as it is to be called."""
    what, look = _CULPRITS[direct.test]
    named = variable or direct.variable
    return what.format(variable=named.replace(" (", "'s ").removesuffix(")")), look


def direct_lines(direct: DirectFindings, makers: Makers) -> Answer:
    """Return the same as lines; ``details`` are left to the caller."""
    finding = f"the test '{direct.test}' of {direct.n_draws} exact draws fails ({p_words(direct.p_value)})"
    if direct.test in _CULPRITS:
        return bug(finding, *_culprit(direct, short(direct.variable, LETTERS)), is_derived=makers.is_derived)
    look = "look first for a custom distribution whose random draws and log density differ; then bread.debug(model)"
    return bug(finding, _KERNEL, look if makers.library else _STEP_METHOD, is_derived=makers.is_derived)


def bug(finding: str, what: str, look: str, *, is_derived: bool = False) -> Answer:
    """Return the lines of a bug: what is wrong with the model, and what to look at."""
    return Answer(
        "bug",
        finding,
        (
            (YOUR_MODEL, what[:1].lower() + what[1:]),
            ("", DERIVED if is_derived else ""),
            (CERTIFIED_DRAWS, "none: until that is found, no bound in this report means anything"),
        ),
        advice=look,
    )


def bug_answer(report: Any) -> Answer | None:
    """Return what a verb without findings of its own says where the tests of exact draws failed; None elsewhere."""
    group = read_group(report, "direct_tests")
    tested = None if group is None else read_direct(group)
    if tested is None or not tested.is_bug:
        return None
    makers = Makers.of(read_attributes(report))
    found = direct_bug(tested, p_words(tested.p_value), makers)
    details = " ".join(sentence for sentence in found if sentence)
    return replace(direct_lines(tested, makers), details=details, numbers={"direct_p_value": tested.p_value})
