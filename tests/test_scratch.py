"""Temporary folders: removed in the end, and after a kill by the next process, never while their owner lives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bread.scratch import OWNER, PREFIX, UNOWNED_SECONDS, scratch_folder, sweep_folders

OWNER_PROCESS = """
import sys
from bread.scratch import scratch_folder

with scratch_folder() as folder:
    (folder / "model.pkl").write_text("large")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def start_owner(folder: Path) -> tuple[subprocess.Popen, Path]:
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER_PROCESS], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_folder_is_removed_after_its_block(tmp_path: Path) -> None:
    with scratch_folder() as folder:
        assert folder.parent == tmp_path and folder.name.startswith(PREFIX)
        (folder / "file").write_text("text")
    with pytest.raises(ZeroDivisionError), scratch_folder() as second:
        raise ZeroDivisionError
    assert not folder.exists() and not second.exists()


def test_the_folder_of_a_killed_process_is_swept_and_that_of_a_live_one_is_kept(tmp_path: Path) -> None:
    killed, left_over = start_owner(tmp_path)
    alive, in_use = start_owner(tmp_path)
    sweep_folders()
    assert (left_over / "model.pkl").exists() and (in_use / "model.pkl").exists()
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    sweep_folders()
    assert not left_over.exists()
    assert (in_use / "model.pkl").exists()
    alive.communicate("")
    assert not in_use.exists()


def test_the_first_folder_of_a_process_sweeps(tmp_path: Path) -> None:
    killed, left_over = start_owner(tmp_path)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert left_over.exists()
    later, _ = start_owner(tmp_path)
    assert not left_over.exists()
    later.communicate("")


def test_what_is_not_ours_is_kept(tmp_path: Path) -> None:
    others = [tmp_path / "bread-other", tmp_path / f"{PREFIX}file", tmp_path / f"{PREFIX}link"]
    others[0].mkdir()
    (others[0] / OWNER).touch()
    others[1].touch()
    others[2].symlink_to(others[0])
    young, old = tmp_path / f"{PREFIX}young", tmp_path / f"{PREFIX}old"
    for folder in (young, old):  # no lock: its owner may be about to make it, or was killed before it did
        folder.mkdir()
    os.utime(old, (0, os.stat(young).st_mtime - 2 * UNOWNED_SECONDS))
    sweep_folders()
    assert all(path.exists() for path in (*others, young, others[0] / OWNER))
    assert not old.exists()
