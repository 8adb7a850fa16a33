"""Stan's own words, tidied for a reader: stanc's errors, run-time exceptions, compiler errors."""

from __future__ import annotations

import re

from bread.errors import BreadError, InvalidArgumentError

PROGRAM_NAME = "bread_m_"  # of the generated class; a short name would clash with identifiers of the program

_PLACE = re.compile(r"\(in '[^']*', line [^()]*\)")
ORIGINAL_NAME = "bread_o_"  # of the class of the user's own program
_GENERATED_NAME = re.compile(rf"(?:(?:{PROGRAM_NAME}|{ORIGINAL_NAME})_namespace::)+\w+:? ?")


class StanProgramError(InvalidArgumentError):
    """Stan's compiler refuses a Stan program; the message has the place and stanc's reason."""


class StanDataError(InvalidArgumentError):
    """Data do not fit the program's data block, or its transformed data fail; the message is Stan's."""


class StanBuildError(BreadError, RuntimeError):
    """The C++ compiler failed on a program that stanc accepts."""


def stanc_reason(stderr: str) -> str:
    """Return a stanc error as one line: kind, place, reason; the excerpt of the program is left out.

    Parameters
    ----------
    stderr : str
        What stanc wrote.

    Returns
    -------
    str
        Such as "Semantic error in 'm.stan', line 3, column 2 to column 5: Identifier 'x' not in scope".
    """
    kept = []
    for line in stderr.strip().splitlines():
        text = line.strip()
        is_excerpt = re.match(r"^(?:-{3,}|\d+:|\^)", text) or set(text) <= set("^-~ ")
        if text and not is_excerpt:
            kept.append(text)
    return " ".join(kept)


def run_time_reason(message: str) -> str:
    """Return a run-time message of Stan as one line, without names of generated C++.

    Parameters
    ----------
    message : str
        ``what()`` of an exception of the compiled program.

    Returns
    -------
    str
        Such as "normal_lpdf: Scale parameter is -1, but must be positive! (in 'm.stan', line 5)".
    """
    text = _GENERATED_NAME.sub("", " ".join(message.split()))
    return text.removeprefix("Exception: ").strip()


def place_of(message: str) -> str:
    """Return the place in the program that a run-time message names, innermost first; "" if it names none."""
    found = _PLACE.search(message)
    return found.group(0) if found else ""


def without_place(message: str) -> str:
    """Return a run-time message without its place, which may lie in code that bread wrote."""
    return message.replace(place_of(message), "").strip()


def compiler_reason(stderr: str) -> str:
    """Return the first errors of a C++ compiler, at most three lines."""
    errors = [line.strip() for line in stderr.splitlines() if "error" in line.lower() or "undefined reference" in line]
    return " | ".join((errors or stderr.strip().splitlines()[-3:])[:3])
