"""The README's printed outputs: compare them with what the code prints now, or write them anew with --write.

A comment `<!-- printed by examples/readme.py: NAME -->` in the README stands before each indented block that the code
printed; `<!-- versions: ... -->` says with which versions. Lines may be wrapped in another way, and a block may end in
"...". With other versions the numbers may differ: then words alone are compared. --write also draws the README's plot
of the eight schools.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import importlib.metadata
import io
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PLOT = ROOT / "docs" / "images" / "eight_schools.png"
WIDTH = 116  # of a block, which is indented by four
VERSIONS = re.compile(r"<!-- versions: (.*?) -->")
BLOCK = re.compile(
    r"(?P<mark><!-- printed by examples/readme\.py: (?P<name>[\w-]+) -->\n\n)(?P<text>(?:    .*\n|\n(?=\n*    ))+)"
)
NUMBER = re.compile(r"\d[\d.,]*(?:e[+-]?\d+)?%?")


def example() -> str:
    """Run the README's example, but for its plot."""
    text = README.read_text(encoding="utf-8")
    (code,) = re.findall(r"^    import pymc as pm, bread\n.*?(?=^\S)", text, flags=re.DOTALL | re.MULTILINE)
    without_plot = textwrap.dedent(code).replace("bread.plot_bounds(report)\n", "")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(without_plot, {})
    return printed.getvalue()


def command() -> str:
    """Run the README's command on the eight schools."""
    folder = ROOT / "examples"
    with tempfile.TemporaryDirectory() as work:
        return run_command(
            "check", folder / "eight_schools.stan", folder / "eight_schools.json", "--observed", "y", "--output",
            Path(work) / "report.nc", "--seed", 1,
        ).partition("\nReport: ")[0]  # fmt: skip


def refusal() -> str:
    """Check the eight schools without a prior of mu."""
    program = (ROOT / "examples" / "eight_schools.stan").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as work:
        (Path(work) / "model.stan").write_text(program.replace("  mu ~ normal(0, 5);\n", ""), encoding="utf-8")
        data = ROOT / "examples" / "eight_schools.json"
        return run_command("check", "model.stan", data, "--no-progress", folder=Path(work), status=1)


def two_modes() -> str:
    """Sample the narrow and heavy mode beside a wide one, and check it."""
    import arviz as az
    import pymc as pm
    from models import narrow_and_wide

    import bread

    model = narrow_and_wide()
    with contextlib.redirect_stderr(io.StringIO()):
        draws = pm.sample(model=model, chains=4, random_seed=1, progressbar=False)
    settings = {"simulate_from": "prior", "path": "prior", "kernel": "hmc", "max_temperatures": 256}
    report = bread.check(model, random_seed=1, **settings)
    return f"{az.summary(draws).to_string()}\n\n{bread.verdict(report)}\n"


PRINTERS: dict[str, Callable[[], str]] = {
    "example": example,
    "command": command,
    "refusal": refusal,
    "two-modes": two_modes,
}


def run_command(*arguments: object, folder: Path = ROOT, status: int = 0) -> str:
    """Return what `bread` prints; on stderr where it fails."""
    environment = {**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "bread", *map(str, arguments)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != status:
        raise SystemExit(f"bread {' '.join(map(str, arguments))} left with {done.returncode}:\n{done.stderr}")
    return done.stderr if status else done.stdout


def draw_plot() -> None:
    """Draw the bounds of the eight schools along the path from the prior."""
    import matplotlib as mpl

    mpl.use("Agg")
    import bread

    text = README.read_text(encoding="utf-8")
    (code,) = re.findall(
        r"^    import pymc as pm, bread\n.*?(?=^    with model:)", text, flags=re.DOTALL | re.MULTILINE
    )
    namespace: dict[str, object] = {}
    exec(textwrap.dedent(code), namespace)
    report = bread.check(namespace["model"], random_seed=1, path="prior")
    bread.plot_bounds(report).figure.savefig(PLOT, dpi=110, bbox_inches="tight")


def versions() -> str:
    """Return the versions that the figures depend on."""
    named = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("pymc", "httpstan", "numpy"))
    return f"python {sys.version_info.major}.{sys.version_info.minor}, {named}"


def indented(text: str) -> str:
    """Return printed text as an indented block; lines that are too long are wrapped."""
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    wrapped = [part for line in lines for part in (textwrap.wrap(line, WIDTH) if len(line) > WIDTH else [line])]
    return "".join(f"    {line}".rstrip() + "\n" for line in wrapped)


def differences(block: str, printed: str, *, with_numbers: bool) -> list[str]:
    """Return how a block of the README differs from what was printed, word by word; empty for none."""
    here, now = block.split(), indented(printed).split()
    if here and here[-1] == "...":
        here, now = here[:-1], now[: len(here) - 1]
    if not with_numbers:
        here, now = ([NUMBER.sub("#", word) for word in words] for words in (here, now))
    return [] if here == now else list(difflib.unified_diff(here, now, "README.md", "printed now", lineterm="", n=4))


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
    printed = {name: PRINTERS[name]() for name in options.names or found}
    if options.write:
        text = BLOCK.sub(
            lambda m: m["mark"] + indented(printed[m["name"]]) if m["name"] in printed else m[0], text
        )  # fmt: skip
        README.write_text(VERSIONS.sub(f"<!-- versions: {versions()} -->", text), encoding="utf-8")
        if not options.names:
            draw_plot()
        return
    stated = VERSIONS.search(text)
    is_same = stated is not None and stated[1] == versions()
    print(f"versions: {versions()}" + ("" if is_same else f"; the README's are {stated and stated[1]}: words alone"))
    failed = {name: differences(found[name], words, with_numbers=is_same) for name, words in printed.items()}
    for name, lines in failed.items():
        print(f"{name}: {'differs' if lines else 'as printed'}", *lines, sep="\n")
    if any(failed.values()):
        raise SystemExit("README.md is not what the code prints: python examples/readme.py --write")


if __name__ == "__main__":
    main()
