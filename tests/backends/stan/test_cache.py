"""The build cache: one build per key, kills, corruption, size; and what enters the key."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bread.backends.stan.language.messages import StanBuildError, StanProgramError
from bread.backends.stan.native.build import build_library
from bread.backends.stan.native.cache import IN_USE_SECONDS, MARK, PRECOMPILE, BuildCache, default_cache
from bread.backends.stan.native.library import StanLibrary
from bread.backends.stan.native.toolchain import Compiler, Toolchain
from bread.errors import BreadError, MissingDependencyError
from tests.support.stan_engine_programs import CONJUGATE, EXAMPLE, toolchain

BUILDER = """
    import sys, time
    from pathlib import Path
    from bread.backends.stan.native.cache import BuildCache

    def build(folder):
        (folder / "half").write_text("unfinished")
        with open(sys.argv[1] + "/builds", "a") as log:
            log.write("built\\n")
        time.sleep(float(sys.argv[2]))
        (folder / "result").write_text("finished")

    print(BuildCache(Path(sys.argv[1]) / "cache", 10**9).get("key", "result", build).read_text())
"""


def cache_in(folder: Path, max_bytes: int = 10**9) -> BuildCache:
    return BuildCache(folder / "cache", max_bytes)


def write(text: str = "finished"):
    return lambda folder: (folder / "result").write_text(text) and None


def unwanted(folder: Path) -> None:
    raise AssertionError("built again")


def start_builder(folder: Path, seconds: float) -> subprocess.Popen:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", textwrap.dedent(BUILDER), str(folder), str(seconds)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def wait_for(condition, seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited too long"
        time.sleep(0.01)


# ---- entries -------------------------------------------------------------------------------------------------


def test_a_build_is_made_once(tmp_path: Path) -> None:
    path = cache_in(tmp_path).get("key", "result", write())
    assert path.read_text() == "finished"
    assert cache_in(tmp_path).get("key", "result", unwanted) == path
    assert cache_in(tmp_path).keys() == ["key"]


def test_a_failed_build_leaves_no_entry(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "result").write_text("half")
        raise StanBuildError("no memory")

    with pytest.raises(StanBuildError, match="no memory"):
        cache_in(tmp_path).get("key", "result", fail)
    assert not list((tmp_path / "cache" / "building").iterdir())
    assert cache_in(tmp_path).get("key", "result", write()).read_text() == "finished"


DAMAGED_MARKS = {
    "bad mark": b"{",
    "another kind of mark": b'["result"]',
    "an empty mark": b"",
    "a binary mark": bytes(range(256)),
    "a deep mark": b"[" * 200_000,
    "another checksum": b'{"result": "0"}',
}


@pytest.mark.parametrize("damage", ["changed", "truncated", "removed", "unmarked", "a folder", *DAMAGED_MARKS])
def test_a_damaged_entry_is_rebuilt(tmp_path: Path, damage: str) -> None:
    path = cache_in(tmp_path).get("key", "result", write("first"))
    mark = path.with_name(MARK)
    if damage in DAMAGED_MARKS:
        mark.write_bytes(DAMAGED_MARKS[damage])
    elif damage in ("unmarked", "a folder"):
        mark.unlink()
        if damage == "a folder":
            mark.mkdir()
    elif damage == "removed":
        path.unlink()
    else:
        path.write_text("fiRst" if damage == "changed" else "")
    assert cache_in(tmp_path).get("key", "result", write("second")).read_text() == "second"
    assert cache_in(tmp_path).get("key", "result", unwanted).read_text() == "second"


def test_two_processes_build_once(tmp_path: Path) -> None:
    builders = [start_builder(tmp_path, 1.0) for _ in range(2)]
    assert [builder.communicate(timeout=60)[0].strip() for builder in builders] == ["finished"] * 2
    assert (tmp_path / "builds").read_text() == "built\n"


def test_a_kill_during_a_build_leaves_a_usable_cache(tmp_path: Path) -> None:
    killed = start_builder(tmp_path, 600.0)
    wait_for(lambda: list((tmp_path / "cache").glob("building/key-*/half")))
    waiting = start_builder(tmp_path, 0.0)
    time.sleep(0.2)
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=60)
    assert waiting.communicate(timeout=60)[0].strip() == "finished"
    assert (tmp_path / "builds").read_text() == "built\n" * 2
    assert not list((tmp_path / "cache" / "building").iterdir())
    assert cache_in(tmp_path).get("key", "result", unwanted).read_text() == "finished"


def test_the_least_recently_used_entries_go_first(tmp_path: Path) -> None:
    cache, text = cache_in(tmp_path, 3500), "x" * 1000
    for age, key in ((4, "oldest"), (3, "used again"), (2, "old")):
        mark = cache.get(key, "result", write(text)).with_name(MARK)
        os.utime(mark, (time.time() - age * IN_USE_SECONDS,) * 2)
    cache.get("used again", "result", unwanted)
    cache.get("new", "result", write(text))
    assert cache.keys() == ["old", "used again", "new"]
    assert not (tmp_path / "cache" / "oldest").exists()


def test_entries_in_use_are_kept_whatever_the_size(tmp_path: Path) -> None:
    cache = cache_in(tmp_path, 100)
    for key in ("first", "second"):
        cache.get(key, "result", write("x" * 1000))
    assert cache.keys() == ["first", "second"]


def test_the_default_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BREAD_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "bread" in default_cache().folder.parts
    monkeypatch.setenv("BREAD_CACHE", str(tmp_path / "chosen"))
    assert default_cache().folder == tmp_path / "chosen"


# ---- folders that are not as usual --------------------------------------------------------------------------------


def refuse(*arguments: object, **options: object) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")


def test_a_folder_that_is_only_read_gives_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = cache_in(tmp_path).get("key", "result", write())
    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(Path, "mkdir", refuse)
    assert cache_in(tmp_path).get("key", "result", unwanted) == path


def test_a_folder_that_cannot_be_written_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(BreadError, match=r"cannot be written \(Permission denied\).*BREAD_CACHE") as caught:
        cache_in(tmp_path).get("key", "result", write())
    assert str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_in_place_of_the_folder_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    monkeypatch.setenv("BREAD_CACHE", str(file))
    with pytest.raises(BreadError, match=r"cannot be written \(Not a directory\).*BREAD_CACHE"):
        default_cache().get("key", "result", write())
    assert file.read_text() == "no folder"


def test_a_user_without_a_home_is_told_to_name_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BREAD_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what it does where there is no home
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BreadError, match=r"no home folder.*BREAD_CACHE"):
        default_cache()
    assert not list(tmp_path.iterdir())


def test_the_folder_may_have_any_name_and_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BREAD_CACHE", "mémoire à part 缓存")
    cache = default_cache()
    monkeypatch.chdir("/")
    path = cache.get("key", "result", write())
    assert path.read_text() == "finished" and path.is_relative_to(tmp_path / "mémoire à part 缓存")


def test_entries_that_another_process_removes_do_not_disturb(tmp_path: Path) -> None:
    """Entries come and go while they are listed and counted; seen to fail within a second."""
    cache, stopped = cache_in(tmp_path, 100), threading.Event()

    def come_and_go() -> None:
        while not stopped.is_set():
            for number in range(20):
                entry = tmp_path / "cache" / f"entry-{number}"
                entry.mkdir(parents=True, exist_ok=True)
                (entry / MARK).write_text("{}")
            for number in range(20):
                shutil.rmtree(tmp_path / "cache" / f"entry-{number}")

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for number in range(200):
            cache.get(f"key-{number % 5}", "result", write(), content=str(number))
            cache.find("none", "result")
            (tmp_path / "cache" / f"key-{number % 5}" / MARK).unlink()
    finally:
        stopped.set()
        thread.join()


def test_what_killed_builds_left_is_removed_by_any_later_build(tmp_path: Path) -> None:
    killed, building = start_builder(tmp_path, 600.0), tmp_path / "cache" / "building"
    wait_for(lambda: list(building.glob("key-*/half")))
    cache_in(tmp_path).get("other", "result", write())
    assert list(building.glob("key-*/half"))  # it lives
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=60)
    cache_in(tmp_path).get("third", "result", write())
    assert not list(building.iterdir())


def test_waiting_for_another_build_can_be_stopped(tmp_path: Path) -> None:
    builder = start_builder(tmp_path, 600.0)
    wait_for(lambda: list((tmp_path / "cache").glob("building/key-*/half")))
    with pytest.raises(StanBuildError, match="was stopped"):
        cache_in(tmp_path).get("key", "result", unwanted, is_stopped=lambda: True)
    builder.send_signal(signal.SIGKILL)
    builder.communicate(timeout=60)


# ---- builds with a compiler that only keeps a record -----------------------------------------------------------


@pytest.fixture
def recorder(tmp_path: Path) -> Toolchain:
    """Return the toolchain with a compiler that writes its arguments instead of compiling."""
    script = tmp_path / "compiler"
    script.write_text(
        f"""#!{sys.executable}
import json, os, sys, time
if os.path.exists({str(tmp_path / "sleep")!r}):
    open({str(tmp_path / "sleeping")!r}, "a").write(str(os.getpid()) + "\\n")
    time.sleep(600)
with open({str(tmp_path / "commands")!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
if os.path.exists({str(tmp_path / "fail")!r}):
    sys.exit("model.cpp:1: error: no such thing")
open(sys.argv[sys.argv.index("-o") + 1], "w").write("compiled")
"""
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    real = toolchain()
    compiler = Compiler(str(script), "g++ that keeps a record")
    return replace(real, compiler=compiler)


def sleeping(tmp_path: Path) -> list[int]:
    """Return the compilers that have started and sleep."""
    log = tmp_path / "sleeping"
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def is_running(process: int) -> bool:
    """Return whether a process runs; a dead one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def commands(tmp_path: Path) -> list[list[str]]:
    return [json.loads(line) for line in (tmp_path / "commands").read_text().splitlines()]


@pytest.mark.parametrize("precompiled", [False, True])
def test_driver_and_headers_are_compiled_once_for_all_programs(
    precompiled: bool, recorder: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PRECOMPILE, "1" if precompiled else "")
    cache = cache_in(tmp_path)
    first = build_library(CONJUGATE, recorder, cache=cache)
    assert build_library(CONJUGATE, recorder, cache=cache) == first
    second = build_library(CONJUGATE.replace("2, 0.5", "3, 0.5"), recorder, cache=cache)
    assert second != first
    sources = [Path(command[-1]).name for command in commands(tmp_path) if "-c" in command]
    headers = ["tempering.hpp"] if precompiled else []
    assert sorted(sources) == ["driver.cpp", "model.cpp", "model.cpp", *headers]
    models = [command for command in commands(tmp_path) if Path(command[-1]).name == "model.cpp"]
    included = {Path(command[command.index("-include") + 1]) for command in models}
    assert len(included) == 1 and (tmp_path in included.pop().parents) == precompiled
    assert sum("-shared" in command for command in commands(tmp_path)) == 2


def test_the_key_knows_program_name_version_and_compiler(recorder: Toolchain, tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    paths = {
        build_library(CONJUGATE, recorder, cache=cache),
        build_library(CONJUGATE, recorder, cache=cache, filename="other.stan"),  # messages name the file
        build_library(CONJUGATE, replace(recorder, version="9.9.9"), cache=cache),
        build_library(CONJUGATE, replace(recorder, compiler=replace(recorder.compiler, version="newer")), cache=cache),
    }
    assert len(paths) == 4


def test_a_compiler_error_is_one_line_and_leaves_no_entry(recorder: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "fail").touch()
    with pytest.raises(StanBuildError, match=r"status 1 .*error: no such thing") as caught:
        build_library(CONJUGATE, recorder, cache=cache_in(tmp_path))
    assert "\n" not in str(caught.value)
    assert cache_in(tmp_path).keys() == []
    (tmp_path / "fail").unlink()
    assert build_library(CONJUGATE, recorder, cache=cache_in(tmp_path)).read_text() == "compiled"


def test_an_interrupt_ends_the_compilers_too(recorder: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "sleep").touch()

    def interrupt() -> None:
        wait_for(lambda: len(sleeping(tmp_path)) == 2)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        build_library(CONJUGATE, recorder, cache=cache_in(tmp_path))
    thread.join()
    wait_for(lambda: not any(map(is_running, sleeping(tmp_path))))
    assert cache_in(tmp_path).keys() == []


BUILDING = """
    import sys
    from dataclasses import replace
    from pathlib import Path
    from bread.backends.stan.native.build import build_library
    from bread.backends.stan.native.cache import BuildCache
    from bread.backends.stan.native.toolchain import Compiler, find_toolchain

    folder = Path(sys.argv[1])
    toolchain = replace(find_toolchain(), compiler=Compiler(str(folder / "compiler"), "g++ that keeps a record"))
    build_library("parameters { real t; } model { t ~ normal(0, 1); }", toolchain, cache=BuildCache(folder, 10**9))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_compilers_end_with_a_parent_that_is_killed(recorder: Toolchain, tmp_path: Path, number: int) -> None:
    (tmp_path / "sleep").touch()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(BUILDING), str(tmp_path)], env=environment)
    wait_for(lambda: len(sleeping(tmp_path)) == 2)
    assert all(map(is_running, sleeping(tmp_path)))
    parent.send_signal(number)
    parent.wait()
    wait_for(lambda: not any(map(is_running, sleeping(tmp_path))))


def test_without_a_compiler_what_was_compiled_is_used(recorder: Toolchain, tmp_path: Path) -> None:
    cache, without = cache_in(tmp_path), replace(recorder, compiler=None)
    path = build_library(CONJUGATE, recorder, cache=cache, original=CONJUGATE)
    assert build_library(CONJUGATE, without, cache=cache, original=CONJUGATE) == path
    mark = path.with_name(MARK)
    earlier = json.loads(mark.read_text())
    del earlier["content"]
    mark.write_text(json.dumps(earlier))  # as an earlier version wrote it: the next use with a compiler tells
    assert build_library(CONJUGATE, recorder, cache=cache, original=CONJUGATE) == path
    assert build_library(CONJUGATE, without, cache=cache, original=CONJUGATE) == path
    # Negative control: nothing else is taken for it, and damage is seen.
    monkey = pytest.MonkeyPatch()
    monkey.setenv("CXX", "no-such-compiler")
    for program, found in (
        (CONJUGATE.replace("2, 0.5", "3, 0.5"), without),
        (CONJUGATE, replace(without, version="9")),
    ):
        with pytest.raises(MissingDependencyError, match="No C\\+\\+ compiler was found.*this one was not yet"):
            build_library(program, found, cache=cache, original=CONJUGATE)
    path.write_text("damaged")
    with pytest.raises(MissingDependencyError, match="No C\\+\\+ compiler was found"):
        build_library(CONJUGATE, without, cache=cache, original=CONJUGATE)
    monkey.undo()


def test_a_refused_program_is_not_compiled(recorder: Toolchain, tmp_path: Path) -> None:
    with pytest.raises(StanProgramError, match=r"'mine.stan', line 4.*Identifier .x. not in scope"):
        program = "parameters { real t;\n}\nmodel {\n  t ~ normal(x, 1);\n}"
        build_library(program, recorder, cache=cache_in(tmp_path), filename="mine.stan")
    assert not (tmp_path / "commands").exists()


# ---- a real build --------------------------------------------------------------------------------------------

REAL = """
    import sys
    from pathlib import Path
    from bread.backends.stan.native.build import build_library
    from bread.backends.stan.native.cache import BuildCache
    from bread.backends.stan.native.toolchain import find_toolchain

    program = Path(sys.argv[1], "program.stan").read_text()
    print(build_library(program, find_toolchain(), cache=BuildCache(Path(sys.argv[1], "cache"), 10**9)))
"""


@pytest.mark.slow
def test_a_real_build_survives_a_kill_and_two_builders(tmp_path: Path) -> None:
    toolchain()
    (tmp_path / "program.stan").write_text(CONJUGATE)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", textwrap.dedent(REAL), str(tmp_path)]

    def start() -> subprocess.Popen:
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    killed = start()
    wait_for(lambda: list((tmp_path / "cache").glob("building/model-*/model.cpp")))
    time.sleep(2)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    builders = [start() for _ in range(2)]
    paths = {builder.communicate(timeout=600)[0].strip() for builder in builders}
    assert len(paths) == 1
    library = StanLibrary(Path(paths.pop()))
    assert library.instance(EXAMPLE.data).dim == 2
    built = sorted(key.partition("-")[0] for key in cache_in(tmp_path).keys())  # noqa: SIM118  (no mapping)
    assert [kind for kind in built if kind != "headers"] == ["driver", "model"]
