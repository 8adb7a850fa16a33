"""Stan's own words, tidied for a reader: stanc's errors, run-time exceptions, compiler errors."""

from __future__ import annotations

import re

from bread.backends.stan.language.places import STANC_NAME, in_users_files, on_one_line
from bread.backends.stan.language.source import Source, Stanc
from bread.errors import BreadError, InvalidArgumentError

PROGRAM_NAME = "bread_m_"  # of the generated class; a short name would clash with identifiers of the program

ORIGINAL_NAME = "bread_o_"  # of the class of the user's own program
_GENERATED_NAME = re.compile(rf"(?:(?:{PROGRAM_NAME}|{ORIGINAL_NAME})_namespace::)+\w+:? ?")

# Types of Stan 2.36 and later that bread's grammar reads, and what older versions of stanc say where one stands.
_NEWER_TYPES = ("sum_to_zero_vector", "sum_to_zero_matrix", "column_stochastic_matrix", "row_stochastic_matrix")
_TYPE_EXPECTED = ("top-level variable declaration", "non-array type after", "Invalid type in declaration")
_DECLARATION = re.compile(r"(?P<type>[A-Za-z]\w*)\s*(?:<[^;]*>)?\s*(?:\[[^;]*\])?\s+[A-Za-z]\w*\s*[;=]")
_STANC_PLACE = re.compile(r"line (?P<line>\d+), column (?P<column>\d+)")


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


def check_text(source: Source, stanc: Stanc, what: str = "the program") -> None:
    """Check a program by stanc.

    Raises
    ------
    StanProgramError
        stanc rejects it; the message is stanc's, on one line, with the place in the user's file.
    """
    output = stanc(source.text, "--allow-undefined", f"--filename-in-msg={STANC_NAME}")
    if output.returncode != 0:
        reason = stanc_reason(output.stderr).partition(" Available signatures:")[0]
        unknown = _unknown_type(reason, source, stanc)
        raise StanProgramError(f"stanc rejects {what}: {in_users_files(reason, STANC_NAME, source)}{unknown}")


def _unknown_type(reason: str, source: Source, stanc: Stanc) -> str:
    """Return which Stan this is where an error comes from a type that it does not know, "" where it does not.

    stanc's own words never name the type: a word of the line that it found fault with is a type that is not known if
    stanc takes no declaration with it.
    """
    place = _STANC_PLACE.search(reason)
    if place is None:
        return ""
    line = source.text.split("\n")[int(place["line"]) - 1].partition("//")[0]
    words = [word for word in _NEWER_TYPES if re.search(rf"\b{word}\b", line)]
    declaration = _DECLARATION.match(line[int(place["column"]) :])
    if declaration is not None and any(expected in reason for expected in _TYPE_EXPECTED):
        words.append(declaration["type"])
    for word in words:
        if all(stanc(f"data {{ {word}{sizes} bread_x; }}").returncode for sizes in ("", "[2]", "[2, 2]")):
            found = re.search(r"v(\d[\w.]*)", stanc("", "--version").stdout)
            version = found.group(1) if found else "of unknown version"
            newer = "is a type of newer versions" if word in _NEWER_TYPES else "is not a type"
            return (
                f" {word!r} {newer} of Stan; the one found here is {version}. A newer CmdStan is used where cmdstanpy "
                "finds one (python -m cmdstanpy.install_cmdstan); without a CmdStan, the Stan inside httpstan is."
            )
    return ""


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
    text = _GENERATED_NAME.sub("", on_one_line(message))
    return text.removeprefix("Exception: ").strip()


def compiler_reason(stderr: str) -> str:
    """Return the first errors of a C++ compiler, at most three lines."""
    errors = [line.strip() for line in stderr.splitlines() if "error" in line.lower() or "undefined reference" in line]
    return " | ".join((errors or stderr.strip().splitlines()[-3:])[:3])
