"""The README's printed outputs: compare them with what the code prints now, or write them anew with --write.

A comment `<!-- printed by examples/readme.py: NAME -->` in the README stands before each indented block that the code
printed; `<!-- versions: ... -->` says with which versions, on how many cores and on which processor, all of which the
numbers of random runs depend on. Lines may be wrapped in another way, and a block may end in "...". Elsewhere the
status alone is compared of a random run, and how the rest differs is shown. --write also draws the README's plot of the
eight schools.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib.metadata
import io
import os
import platform
import re
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PLOT = ROOT / "docs" / "images" / "eight_schools.png"
WIDTH = 116  # of a block, which is indented by four
VERSIONS = re.compile(r"<!-- versions: (.*?) -->")
BLOCK = re.compile(
    r"(?P<mark><!-- printed by examples/readme\.py: (?P<name>[\w-]+) -->\n\n)(?P<text>(?:    .*\n|\n(?=\n*    ))+)"
)


def example() -> str:
    """Run the README's example, but for its plot."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        run_example()
    return printed.getvalue()


def run_example() -> dict[str, Any]:
    """Run the README's example, but for its plot, and return its names."""
    text = README.read_text(encoding="utf-8")
    (code,) = re.findall(r"^    import pymc as pm, bread\n.*?(?=^\S)", text, flags=re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(re.sub(r"^bread\.plot\w*\(report\)\n", "", textwrap.dedent(code), flags=re.MULTILINE), names)
    return names


def refusal() -> str:
    """Check the eight schools without a prior of mu."""
    program = (ROOT / "examples" / "eight_schools.stan").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as work:
        (Path(work) / "model.stan").write_text(program.replace("  mu ~ normal(0, 5);\n", ""), encoding="utf-8")
        data = ROOT / "examples" / "eight_schools.json"
        options = ("--simulate-from", "fitted", "--no-progress")
        return run_command("check", "model.stan", data, *options, folder=Path(work), status=1)


def two_modes() -> str:
    """Summarise what pm.sample draws from a narrow and heavy mode beside a wide one."""
    import arviz as az
    import pymc as pm
    from models import narrow_and_wide

    with contextlib.redirect_stderr(io.StringIO()):
        draws = pm.sample(model=narrow_and_wide(), chains=4, random_seed=1, progressbar=False)
    table = az.summary(draws)
    return str(table[[name for name in table if not str(name).startswith("mcse")]].to_string())


PRINTERS: dict[str, Callable[[], str]] = {
    "example": example,
    "refusal": refusal,
    "two-modes": two_modes,
}


RANDOM = {"example", "two-modes"}


def run_command(*arguments: object, folder: Path, status: int = 0) -> str:
    """Return what `bread` prints; on stderr where it fails."""
    environment = {**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "bread", *map(str, arguments)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != status:
        raise SystemExit(f"bread {' '.join(map(str, arguments))} left with {done.returncode}:\n{done.stderr}")
    return done.stderr if status else done.stdout


def draw_plot() -> None:
    """Draw what the README's example draws: the draws of the eight schools against certified ones."""
    import matplotlib as mpl

    mpl.use("Agg")
    import bread

    with contextlib.redirect_stdout(io.StringIO()):
        report = run_example()["report"]
    bread.plot(report).figure.savefig(PLOT, dpi=110, bbox_inches="tight")


def versions() -> list[str]:
    """Return what the numbers depend on, as far as it is installed."""
    import numpy as np

    packages = []
    for name in ("pymc", "httpstan", "numpy"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            packages.append(f"{name} {importlib.metadata.version(name)}")
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    processor = " ".join([platform.machine(), *found[-1:]])
    python = f"python {sys.version_info.major}.{sys.version_info.minor}"
    return [python, *packages, f"{os.cpu_count()} cores", processor]  # pm.sample: chains by cores


def indented(text: str) -> str:
    """Return printed text as an indented block; lines that are too long are wrapped."""
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    wrapped = [
        part
        for line in lines
        for part in (textwrap.wrap(line, WIDTH, break_on_hyphens=False) if len(line) > WIDTH else [line])
    ]
    return "".join(f"    {line}".rstrip() + "\n" for line in wrapped)


def differences(block: str, printed: str) -> list[str]:
    """Return how a block of the README differs from what was printed, word by word; empty for none."""
    here, now = block.split(), indented(printed).split()
    if here and here[-1] == "...":
        here, now = here[:-1], now[: len(here) - 1]
    return [] if here == now else list(difflib.unified_diff(here, now, "README.md", "printed now", lineterm="", n=4))


def status(text: str) -> str:
    """Return the status of a verdict, in its first line; of a table, the first words of its head."""
    return re.split(r"[.,:\n]", text.strip(), maxsplit=1)[0].split("  ")[0].strip()


def main() -> None:
    """Compare or write the blocks that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"blocks: {', '.join(PRINTERS)} (default: all)")
    parser.add_argument("--write", action="store_true", help="write what is printed now into the README, and the plot")
    options = parser.parse_args()
    text = README.read_text(encoding="utf-8")
    found = {match["name"]: match["text"] for match in BLOCK.finditer(text)}
    unknown = set(found) - set(PRINTERS) | set(options.names) - set(found)
    if unknown:
        raise SystemExit(f"No such block in README.md, or in this script: {', '.join(sorted(unknown))}.")
    printed = {}
    for name in options.names or found:
        began = time.perf_counter()
        printed[name] = PRINTERS[name]()
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    if options.write:
        text = BLOCK.sub(
            lambda m: m["mark"] + indented(printed[m["name"]]) if m["name"] in printed else m[0], text
        )  # fmt: skip
        README.write_text(VERSIONS.sub(f"<!-- versions: {', '.join(versions())} -->", text), encoding="utf-8")
        if not options.names:
            draw_plot()
        return
    stated = VERSIONS.search(text)
    is_same = stated is not None and set(versions()) <= set(stated[1].split(", "))
    print(f"here: {', '.join(versions())}" + ("" if is_same else f"; the README: {stated and stated[1]}"))
    failed = []
    for name, words in printed.items():
        lines = differences(found[name], words)
        is_wrong = bool(lines) and (is_same or name not in RANDOM or status(found[name]) != status(words))
        failed += [name] * is_wrong
        outcome = "differs" if is_wrong else "differs, as a random run may elsewhere" if lines else "as printed"
        print(f"{name}: {outcome}", *lines, sep="\n")
    if failed:
        raise SystemExit("README.md is not what the code prints: python examples/readme.py --write")


if __name__ == "__main__":
    main()
