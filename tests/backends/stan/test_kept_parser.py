"""The parser that is kept between processes: the same trees, and files that are damaged, shared or not to be had."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lark
import pytest

from bread.backends.stan.language.kept_parser import FOLDER, read_parser

GRAMMAR = 'start: item+\nitem: WORD | "(" item* ")"\nWORD: /[a-z]+/\n%ignore " "\n'
TEXT = "a (b (c d) e) f"
MANY = """
    import sys
    from bread.backends.stan.language.kept_parser import read_parser
    print(read_parser(sys.argv[1]).parse(sys.argv[2]) == read_parser(sys.argv[1]).parse(sys.argv[2]))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BREAD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / FOLDER


def places(tree: lark.Tree) -> list[tuple[str, int, int]]:
    return [(str(node.data), node.meta.start_pos, node.meta.end_pos) for node in tree.iter_subtrees()]


def refuse(*arguments: object, **options: object) -> None:
    raise AssertionError("made again")


def test_a_kept_parser_is_not_made_again_and_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    made = read_parser(GRAMMAR).parse(TEXT)
    monkeypatch.setattr(lark.Lark, "__init__", refuse)
    kept = read_parser(GRAMMAR).parse(TEXT)
    assert kept == made and places(kept) == places(made)


def test_another_grammar_has_a_parser_of_its_own() -> None:
    read_parser(GRAMMAR)
    with pytest.raises(lark.UnexpectedInput):
        read_parser(GRAMMAR.replace("[a-z]", "[x-z]")).parse(TEXT)


@pytest.mark.parametrize(
    "damage",
    [lambda written: b"", lambda written: written[:-10], lambda written: written[:5000] + b"x" + written[5001:]],
    ids=["empty", "cut off", "a byte changed"],
)
def test_a_damaged_file_is_as_good_as_none(folder: Path, damage, monkeypatch: pytest.MonkeyPatch) -> None:
    made = read_parser(GRAMMAR).parse(TEXT)
    (file,) = folder.iterdir()
    written = file.read_bytes()
    file.write_bytes(damage(written))
    assert file.read_bytes() != written
    assert read_parser(GRAMMAR).parse(TEXT) == made
    monkeypatch.setattr(lark.Lark, "__init__", refuse)  # the file is a good one again
    assert read_parser(GRAMMAR).parse(TEXT) == made


def test_where_nothing_can_be_written_each_process_makes_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("BREAD_CACHE", str(tmp_path / "file"))
    assert read_parser(GRAMMAR).parse(TEXT).data == "start"
    assert (tmp_path / "file").read_text() == "no folder"


def test_a_disk_that_is_full_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert read_parser(GRAMMAR).parse(TEXT).data == "start"
    assert not list(folder.iterdir())


def test_a_user_without_a_home_has_a_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BREAD_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what it does where there is no home
    monkeypatch.chdir(tmp_path)
    assert read_parser(GRAMMAR).parse(TEXT).data == "start"
    assert not list(tmp_path.iterdir())


def test_processes_that_keep_it_at_once_do_not_disturb_each_other(folder: Path) -> None:
    command = [sys.executable, "-c", "\n".join(line.strip() for line in MANY.splitlines()), GRAMMAR, TEXT]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[0].strip() for process in started] == ["True"] * 3
    assert len(list(folder.iterdir())) == 1
