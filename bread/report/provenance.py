"""How a report was made: version, time and seed; Python, platform, and the commit of the working folder, if any."""

from __future__ import annotations

import datetime
import platform
import subprocess

import numpy as np

from bread._version import __version__
from bread.backends.info import Identity

_LARGEST_INTEGER = np.iinfo(np.int64).max  # of netCDF
_SECONDS = 5.0  # of a repository that answers no sooner, nothing is said


def stamp(seed: int) -> dict[str, str | int]:
    """Return root attributes: `bread_version`, `created_at`, `seed` (as text where netCDF has no integer so large)."""
    return {
        "bread_version": __version__,
        "created_at": datetime.datetime.now(datetime.UTC).isoformat(),
        "seed": seed if abs(seed) <= _LARGEST_INTEGER else str(seed),
    }


def library_attributes(identity: Identity) -> dict[str, str]:
    """Return root attributes: `inference_library`; `kernels_of` where the backend says whose its kernels are."""
    kernels_of = {"kernels_of": identity.kernels_of} if identity.kernels_of else {}
    return {"inference_library": identity.backend, **kernels_of}


def provenance_attributes() -> dict[str, str | int]:
    """Return root attributes: `python_version`, `platform`; in a git repository `git_commit` and `git_is_changed`.

    `git_is_changed` is 1 where tracked files differ from the commit. No path and no name of the machine is kept.
    """
    return {"python_version": platform.python_version(), "platform": platform.platform(terse=True), **_git()}


def _git() -> dict[str, str | int]:
    command = ["git", "-c", "core.fsmonitor=false", "--no-optional-locks", "status"]
    options = ["--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules=all"]
    try:
        done = subprocess.run(
            [*command, *options],
            check=False,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            start_new_session=True,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = done.stdout.decode(errors="replace").splitlines()
    commit = next((line.removeprefix("# branch.oid ") for line in lines if line.startswith("# branch.oid ")), "")
    if done.returncode or not commit or not set(commit) <= set("0123456789abcdef"):  # "(initial)": nothing committed
        return {}
    return {"git_commit": commit, "git_is_changed": int(any(line and not line.startswith("#") for line in lines))}
