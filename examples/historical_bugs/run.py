"""Make the environments of the historical bugs, and run each script in the bad and in the mended one.

    python examples/historical_bugs/run.py [lkj proportional mixed_hmc hmc smc] [--environments .historical]

Each environment is a folder made by ``venv`` and filled by ``pip`` from requirements, this copy of bread among them;
one that is there already is used again. Without names all are run, which no one Python can: `hmc` and `smc`, with old
releases of JAX, need Python 3.11 (or 3.10), `lkj` and `proportional`, with PyMC 6, 3.12 or newer. `webppl_gaussian.py`,
which is run by itself, needs Node.js and no environment.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
BREAD = str(HERE.parents[1])
OLD_JAX = ("jax==0.4.30", "jaxlib==0.4.30", "scipy<1.13", "arviz<1")


class Story(NamedTuple):
    """A script, and what it runs under: requirements, and arguments of the script."""

    script: str
    bad: tuple[str, ...]
    mended: tuple[str, ...]
    bad_arguments: tuple[str, ...] = ()
    mended_arguments: tuple[str, ...] = ()


STORIES = {
    "lkj": Story("pymc_lkj.py", ("pymc==6.3.1",), ("pymc==6.4.0",)),
    "proportional": Story("pymc_proportional.py", ("pymc==6.4.0",), ()),  # not mended yet
    "mixed_hmc": Story("numpyro_mixed_hmc.py", ("numpyro==0.22.0",), ("numpyro==0.22.0",), (), ("--low", "0")),
    "hmc": Story("blackjax_hmc.py", ("blackjax==0.2", *OLD_JAX), ("blackjax==0.2.1", *OLD_JAX)),
    "smc": Story("blackjax_smc.py", ("blackjax==1.5",), ("blackjax==1.6",)),
}


def environment(folder: Path, requirements: tuple[str, ...]) -> Path:
    """Return the Python of an environment with the requirements and bread; make it where it is not there."""
    name = requirements[0].replace("==", "-")
    python = folder / name / "bin" / "python"
    ready = folder / name / "ready"
    if not ready.exists():
        print(f"-- making {folder / name}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder / name], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements, BREAD], check=True)
        ready.touch()
    return python


def main() -> None:
    """Run the stories that are named, bad before mended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stories", nargs="*", help=f"of {', '.join(STORIES)}; all if none is named")
    parser.add_argument("--environments", type=Path, default=Path(".historical"))
    wanted = parser.parse_args()
    unknown = sorted(set(wanted.stories) - set(STORIES))
    if unknown:
        parser.error(f"stories are {', '.join(STORIES)}, but got {', '.join(unknown)}")
    for name in wanted.stories or STORIES:
        story = STORIES[name]
        runs = ((story.bad, story.bad_arguments, "bad"), (story.mended, story.mended_arguments, "mended"))
        for requirements, arguments, what in runs:
            if requirements:
                python = environment(wanted.environments.resolve(), requirements)
                print(f"== {name}, {what}: {requirements[0]} {' '.join(arguments)}", flush=True)
                subprocess.run([python, HERE / story.script, *arguments], check=True)


if __name__ == "__main__":
    main()
