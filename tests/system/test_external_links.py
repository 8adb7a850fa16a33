"""External links, without the network: each is listed in docs/papers.md, has a sound form, and fits its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
LISTED_IN = ROOT / "docs" / "papers.md"
URL = re.compile(r"https?://[^\s)>\]\"'`|]+")
ARXIV = re.compile(r"(?:arXiv:|arxiv\.org/abs/)(\d{4}\.\d{4,5})")
NAMES_OF_XML = ("http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg")  # names, which nobody opens
EXAMPLES = ("localhost", "127.0.0.1", "example.org", "example.com")
FIRST_AUTHORS = {"1606.02275": "Grosse", "1511.02543": "Grosse", "1810.01382": "Rischard", "2001.06465": "Gandy"}
NEAR = 500  # characters before a number in which its authors are named


def sources() -> Iterator[Path]:
    for folder in ("bread", "plugins", "docs", "examples", "stan_models", "benchmarks"):
        files = (ROOT / folder).rglob("*")
        yield from (file for file in files if file.suffix in {".py", ".md", ".jinja", ".js", ".hpp", ".cpp", ".stan"})
    yield from (
        ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "pyproject.toml")
    )


def texts() -> dict[str, str]:
    built = {"_build", "generated", "jupyter_execute"}
    return {
        str(file.relative_to(ROOT)): file.read_text(encoding="utf-8")
        for file in sources()
        if not built & set(file.relative_to(ROOT).parts)
    }


def links(text: str) -> set[str]:
    found = {match.group().rstrip(".,;:") for match in URL.finditer(text)}
    return {url for url in found if url not in NAMES_OF_XML and urlsplit(url).hostname not in EXAMPLES}


def is_sound(url: str) -> bool:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not re.fullmatch(r"(?:[a-z0-9-]+\.)+[a-z]{2,}", host) or ".." in parts.path or "//" in parts.path:
        return False
    if host == "arxiv.org":
        number = re.fullmatch(r"/abs/(\d\d)(\d\d)\.\d{4,5}", parts.path)
        return number is not None and 1 <= int(number[2]) <= 12
    if host == "doi.org":
        return re.fullmatch(r"/10\.\d{4,9}/\S+", parts.path) is not None
    if host == "github.com":
        return re.fullmatch(r"/[\w.-]+/[\w.-]+(?:/(?:issues|pull)/\d+)?", parts.path) is not None
    return True


def entries() -> dict[str, str]:
    """Return what the list says of each link."""
    section = LISTED_IN.read_text(encoding="utf-8").partition("\n## Links\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| ") and "://" in line]
    return {address.strip(" <>"): what.strip() for what, address in rows}


def test_the_list_has_every_link_and_no_other() -> None:
    used: set[str] = set()
    for name, text in texts().items():
        own = text.partition("\n## Links\n")[0] if name == str(LISTED_IN.relative_to(ROOT)) else text
        used |= links(own) | {f"https://arxiv.org/abs/{number}" for number in ARXIV.findall(own)}
    assert used == set(entries())


@pytest.mark.parametrize("url", sorted(entries()))
def test_form(url: str) -> None:
    assert is_sound(url)


def test_a_number_of_arxiv_stands_beside_its_authors_and_year() -> None:
    for name, text in texts().items():
        for match in ARXIV.finditer(text):
            author = FIRST_AUTHORS[match[1]]
            near = text[max(0, match.start() - NEAR) : match.end() + NEAR]
            assert author in near or "Paper of the method" in near, (name, match[1])
    for url, what in entries().items():
        if number := ARXIV.search(url):
            assert what.startswith(FIRST_AUTHORS[number[1]])
            year = 2000 + int(number[1][:2])
            assert f"({year})" in what or f"({year + 1})" in what


@pytest.mark.parametrize(
    "url",
    [
        "https://arxiv.org/abs/1613.02275",  # no thirteenth month
        "https://arxiv.org/1606.02275",
        "https://github.com/pymc-devs/pymc/issue/7628",
        "https://doi.org/1214/aos",
        "https://localhost../x",
        "http://webppl..org",
    ],
)
def test_bad_forms_are_noticed(url: str) -> None:
    """Negative control."""
    assert not is_sound(url)


def test_links_are_found() -> None:
    assert links("see [x](https://arxiv.org/abs/1606.02275), http://webppl.org.") == {
        "https://arxiv.org/abs/1606.02275", "http://webppl.org",
    }  # fmt: skip
