"""Mutated Stan programs and data files."""

from __future__ import annotations

import json
import random
import re
from typing import Any

from tests.support.stan_corpus_table import CORPUS, Case

_TOKEN = re.compile(r"\w+|[^\w\s]|\s+")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")
_NAME = re.compile(r"\b[a-zA-Z]\w*\b")
_NUMBERS = ["0", "-1", "1e400", "1e-400", "99999999999999999999999", "2147483648", "1.0e+", "1_0", "1__", "0x1F", "1."]
_NUMBERS += [".5", "1e308 * 10", "1 / 0", "1 %/% 0", "3i", "9" * 400]
_STRANGE = [
    "\x00",
    "\ufeff",
    "é",
    "日本",
    "\u202e",
    "\U0001f600",
    "`",
    "$",
    "\\",
    '"',
    "'",
    "#",
    "\r",
    "\x0b",
    "\u2028",
]
_STRANGE += ["//", "/*", "*/", "#include x.stan\n", '#include "\n', "#include <>\n", "#include\n", "@", "?:", ".*="]
_WORDS = ["target", "normal", "lpdf", "real", "int", "vector", "array", "tuple", "complex", "matrix", "simplex"]
_WORDS += ["ordered", "lower", "upper", "offset", "multiplier", "T", "print", "reject", "return", "break", "continue"]
_WORDS += ["while", "for", "in", "if", "else", "void", "data", "functions", "profile", "jacobian", "log_mix", "size"]
_WORDS += ["log_sum_exp", "to_vector", "cauchy", "poisson", "bernoulli", "multi_normal", "uniform", "sum", "bread_x"]


# ---- programs --------------------------------------------------------------------------------------------------


def _pieces(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _delete_tokens(text: str, draw: random.Random) -> str:
    pieces = _pieces(text)
    for _ in range(draw.choice([1, 1, 1, 2, 5])):
        del pieces[draw.randrange(len(pieces))]
    return "".join(pieces)


def _duplicate_token(text: str, draw: random.Random) -> str:
    pieces = _pieces(text)
    place = draw.randrange(len(pieces))
    return "".join([*pieces[:place], pieces[place], *pieces[place:]])


def _swap_tokens(text: str, draw: random.Random) -> str:
    pieces = _pieces(text)
    a, b = draw.randrange(len(pieces)), draw.randrange(len(pieces))
    pieces[a], pieces[b] = pieces[b], pieces[a]
    return "".join(pieces)


def _swap_lines(text: str, draw: random.Random) -> str:
    lines = text.split("\n")
    a, b = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return "\n".join(lines)


def _duplicate_line(text: str, draw: random.Random) -> str:
    lines = text.split("\n")
    lines.insert(draw.randrange(len(lines)), draw.choice(lines))
    return "\n".join(lines)


def _delete_line(text: str, draw: random.Random) -> str:
    lines = text.split("\n")
    del lines[draw.randrange(len(lines))]
    return "\n".join(lines)


def _random_bytes(text: str, draw: random.Random) -> str:
    place = draw.randrange(len(text) + 1)
    noise = draw.randbytes(draw.choice([1, 3, 30])).decode("latin-1")
    return text[:place] + noise + text[place:]


def _strange_text(text: str, draw: random.Random) -> str:
    place = draw.randrange(len(text) + 1)
    return text[:place] + draw.choice(_STRANGE) + text[place:]


def _braces(text: str, draw: random.Random) -> str:
    places = [match.start() for match in re.finditer(r"[(){}\[\]<>]", text)] or [0]
    place = draw.choice(places)
    return text[:place] + draw.choice(["", *"(){}[]<>"]) + text[place + 1 :]


def _truncate(text: str, draw: random.Random) -> str:
    return text[: draw.randrange(len(text))]


def _number(text: str, draw: random.Random) -> str:
    found = list(_NUMBER.finditer(text))
    if not found:
        return text
    match = draw.choice(found)
    return text[: match.start()] + draw.choice(_NUMBERS) + text[match.end() :]


def _words(text: str) -> list[re.Match[str]]:
    """Return the numbers of a text, else its names, else its pieces."""
    return list(_NUMBER.finditer(text)) or list(_NAME.finditer(text)) or list(_TOKEN.finditer(text))


def _rename_one(text: str, draw: random.Random) -> str:
    """Put another of the program's names, or a word of Stan, in the place of a name: often still a valid program."""
    found = list(_NAME.finditer(text)) or list(_TOKEN.finditer(text))
    match = draw.choice(found)
    word = draw.choice(found).group() if draw.random() < 0.7 else draw.choice(_WORDS)
    return text[: match.start()] + word + text[match.end() :]


def _rename_all(text: str, draw: random.Random) -> str:
    names = _NAME.findall(text) or ["y"]
    old, new = draw.choice(names), draw.choice([*names, *_WORDS])
    return re.sub(rf"\b{old}\b", new, text)


def _parentheses(text: str, draw: random.Random) -> str:
    """Nest a number or name deeply; a valid program if it stands in an expression."""
    match = draw.choice(_words(text))
    opening, closing = draw.choice([("(", ")"), ("-(", ")"), ("exp(", ")"), ("[", "][1]"), ("{", "}[1]"), ("!", "")])
    depth = draw.choice([1, 5] if opening in "[{" else [1, 20, 300, 3000])  # more takes stanc minutes
    return text[: match.start()] + opening * depth + match.group() + closing * depth + text[match.end() :]


def _blocks(text: str, draw: random.Random) -> str:
    """Nest a line of the program in blocks, loops or conditions."""
    lines = text.split("\n")
    place = draw.randrange(len(lines))
    depth = draw.choice([1, 2, 20, 300])
    opening, closing = draw.choice(
        [("{ ", " }"), ("if (1) ", ""), ("for (bad in 1:2) { ", " }"), ("while (0) ", ""), ("profile(\"p\") { ", " }")]
    )  # fmt: skip
    lines[place] = opening * depth + lines[place] + closing * depth
    return "\n".join(lines)


def _long_sum(text: str, draw: random.Random) -> str:
    match = draw.choice(_words(text))
    length = draw.choice([2, 50, 1000])
    operator = draw.choice(["+", "*", "-", "? 1 :", "||", "^", "'*"])
    return text[: match.start()] + f" {operator} ".join([match.group()] * length) + text[match.end() :]


def _statement(text: str, draw: random.Random) -> str:
    """Copy a statement of this or another program to another line."""
    other = text if draw.random() < 0.6 else draw.choice(CORPUS).path.read_text(encoding="utf-8")
    statements = [line for line in other.split("\n") if line.strip().endswith(";")] or [";"]
    lines = text.split("\n")
    lines.insert(draw.randrange(len(lines) + 1), draw.choice(statements))
    return "\n".join(lines)


def _operator(text: str, draw: random.Random) -> str:
    found = list(re.finditer(r"[-+*/^~=,;:|']", text))
    if not found:
        return text
    match = draw.choice(found)
    return text[: match.start()] + draw.choice([*"-+*/^~=,;:|'", "+=", ".*", "%/%"]) + text[match.end() :]


def _carriage_returns(text: str, draw: random.Random) -> str:
    return text.replace("\n", draw.choice(["\r\n", "\r", " "]))


def _small_number(text: str, draw: random.Random) -> str:
    found = list(_NUMBER.finditer(text))
    if not found:
        return text
    match = draw.choice(found)
    return text[: match.start()] + draw.choice(["0", "1", "2", "3", "0.5", "(1 + 1)", "-1"]) + text[match.end() :]


def _comment(text: str, draw: random.Random) -> str:
    lines = text.split("\n")
    place = draw.randrange(len(lines))
    lines[place] += draw.choice([" // } ~ target", " /* { */", " /* two\nlines */", ' // "', " # hash"])
    return "\n".join(lines)


def _around_statement(text: str, draw: random.Random) -> str:
    """Put a statement of the density into a block, a loop or a condition; or twice."""
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if line.strip().endswith(";") and ("~" in line or "target" in line)]
    if not places:
        return text
    place = draw.choice(places)
    form = draw.choice(
        ["{ S }", "if (1) S", "if (1 > 2) { S } else { S }", "for (bad in 1:1) S", "for (bad in 1:2) { S }", "S S",
         "{ real bad = 1; S }", "while (0) { S }", "profile(\"p\") { S }", "{ { { S } } }", "for (bad in {1, 2}) S"]
    )  # fmt: skip
    lines[place] = form.replace("S", lines[place].strip())
    return "\n".join(lines)


def _swap_statements(text: str, draw: random.Random) -> str:
    lines = text.split("\n")
    places = [i for i, line in enumerate(lines) if line.strip().endswith(";")] or [0]
    a, b = draw.choice(places), draw.choice(places)
    lines[a], lines[b] = lines[b], lines[a]
    return "\n".join(lines)


# those that often leave a program that stanc accepts, and those that seldom do
GENTLE = [_small_number, _comment, _around_statement, _swap_statements, _rename_one, _statement, _delete_line]
HARSH = [
    _delete_tokens, _duplicate_token, _swap_tokens, _swap_lines, _duplicate_line, _random_bytes, _strange_text, _braces,
    _truncate, _number, _rename_all, _parentheses, _blocks, _long_sum, _operator, _carriage_returns,
]  # fmt: skip


def mutated_program(number: int) -> tuple[Case, str, random.Random]:
    """Return case ``number``: the program that it comes from, its text, and the random numbers for its options."""
    draw = random.Random(number)
    case = draw.choice(CORPUS)
    text = case.path.read_text(encoding="utf-8")
    for _ in range(draw.choice([1, 1, 2, 4])):
        text = draw.choice(draw.choice([GENTLE, GENTLE, HARSH]))(text, draw) or ";"
    return case, text, draw


# ---- data ------------------------------------------------------------------------------------------------------

_VALUES = [
    "NaN", "Infinity", "-Infinity", '"NaN"', '"Inf"', '"-inf"', "null", "true", "1e999", "-0", "[]", "[[]]", "{}",
    '""', '"\\ud800"', "99999999999999999999", "2147483648", "1.5", "[1, [2]]", '{"1": 2}', '{"1": [1, {"2": 3}]}',
    "[" * 2000 + "]" * 2000, "[" * 400 + "1" + "]" * 400, '{"1": ' * 400 + "1" + "}" * 400, "[" * 40 + "]" * 40,
    "[" * 2000 + "1" + "]" * 2000, '{"a":' * 2000 + "1" + "}" * 2000, "1e-400", "01", "1.",
    "[1, 2, 3", "'x'", "[NaN, 1, 2]", "[null, 1, 2]", '[1, "2", 3]', "[true, false, true]", "9" * 5000, "[,]",
]  # fmt: skip


def mutated_data(number: int, plain: dict[str, Any]) -> bytes:
    """Return the bytes of the data file ``number``, made from correct data."""
    draw = random.Random(number)
    values = {name: json.dumps(value) for name, value in plain.items()}
    for _ in range(draw.choice([1, 1, 2])):
        name = draw.choice([*values, "other", "", "é", "bread_original", "bread_use_fixed_mu"])
        values[name] = draw.choice([*_VALUES, *values.values()])
    parts = [f"{json.dumps(name)}: {value}" for name, value in values.items()]
    if draw.random() < 0.2:
        parts.append(draw.choice(parts))  # a name twice
    text = "{" + ", ".join(parts) + "}"
    kind = draw.random()
    if kind < 0.1:
        return text.encode()[: draw.randrange(len(text))]
    if kind < 0.2:
        place = draw.randrange(len(text))
        return text[:place].encode() + draw.randbytes(draw.choice([1, 4])) + text[place:].encode()
    if kind < 0.25:
        return text.encode(draw.choice(["utf-16", "utf-8-sig", "utf-32"]))
    if kind < 0.3:
        return draw.choice([b"", b"{}", b"[]", b"null", b"3", b"\x00", b'"text"', b"[" * 3000, text.encode() * 2])
    return text.encode()
