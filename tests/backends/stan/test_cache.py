"""The build cache: one build per key, kills, corruption, size; and what enters the key."""

from __future__ import annotations

import json
import os
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
from bread.backends.stan.native.cache import IN_USE_SECONDS, MARK, BuildCache, default_cache
from bread.backends.stan.native.library import StanLibrary
from bread.backends.stan.native.toolchain import Compiler, Toolchain
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


@pytest.mark.parametrize("damage", ["changed", "truncated", "removed", "unmarked", "bad mark"])
def test_a_damaged_entry_is_rebuilt(tmp_path: Path, damage: str) -> None:
    path = cache_in(tmp_path).get("key", "result", write("first"))
    mark = path.with_name(MARK)
    {
        "changed": lambda: path.write_text("fiRst"),
        "truncated": lambda: path.write_text(""),
        "removed": path.unlink,
        "unmarked": mark.unlink,
        "bad mark": lambda: mark.write_text("{"),
    }[damage]()
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


def commands(tmp_path: Path) -> list[list[str]]:
    return [json.loads(line) for line in (tmp_path / "commands").read_text().splitlines()]


def test_the_driver_is_compiled_once_for_all_programs(recorder: Toolchain, tmp_path: Path) -> None:
    cache = cache_in(tmp_path)
    first = build_library(CONJUGATE, recorder, cache=cache)
    assert build_library(CONJUGATE, recorder, cache=cache) == first
    second = build_library(CONJUGATE.replace("2, 0.5", "3, 0.5"), recorder, cache=cache)
    assert second != first
    sources = [Path(command[-1]).name for command in commands(tmp_path) if "-c" in command]
    assert sorted(sources) == ["driver.cpp", "model.cpp", "model.cpp"]
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
    sleeping = tmp_path / "sleeping"

    def interrupt() -> None:
        wait_for(lambda: sleeping.exists() and sleeping.read_text().count("\n") == 2)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        build_library(CONJUGATE, recorder, cache=cache_in(tmp_path))
    thread.join()
    for process in sleeping.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(process), 0)
    assert cache_in(tmp_path).keys() == []


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
    assert len(cache_in(tmp_path).keys()) == 2
