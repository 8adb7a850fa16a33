"""Runs mutated Stan programs and data files in a worker: a crash or a hang is an outcome, too."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from bread.backends.stan.analysis.analyse import analyse
from bread.backends.stan.language.refusals import RefusedError
from bread.backends.stan.localising import rewrite
from bread.backends.stan.opening import read_program
from bread.errors import BreadError
from tests.support.stan_bad_input_table import DATA, PROGRAM
from tests.support.stan_conjugate import opened, toolchain
from tests.support.stan_fuzz_input import mutated_data, mutated_program

SECONDS = 120.0  # for one case, however busy the machine is; a case takes a fraction of a second


def analyse_mutated(number: int) -> None:
    """Read, split and rewrite one program, as opening it does before it is compiled."""
    case, text, draw = mutated_program(number)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mutated.stan"
        path.write_bytes(text.encode("utf-8", errors="surrogateescape"))
        source, _ = read_program(path)
    program = analyse(
        source,
        observed=draw.choice([case.observed_argument, case.observed_argument, None, ["y"], ["nobody"]]),
        data_names=draw.choice([None, tuple(case.data)]),
        likelihood_lines=draw.choice([None, None, None, (5,), (1000,), (10, 12)]),
        held=draw.choice([None, None, (), ("mu",)]),
        data=case.data,
        stanc=toolchain().run_stanc,
    )
    if program.split_refusal is None:
        try:
            rewrite(program, program.held or [one.name for one in program.parameters][:1])
        except RefusedError as error:
            assert str(error.refusal)


def open_mutated_data(number: int) -> None:
    """Open one program, which is compiled once, with a data file."""
    with tempfile.TemporaryDirectory() as folder:
        path, program = Path(folder) / "data.json", Path(folder) / "user.stan"
        path.write_bytes(mutated_data(number, DATA))
        program.write_text(PROGRAM)
        opened(program, path, observed="y")


def fail_in_every_way(number: int) -> None:
    """Do what must not happen; case 5 is refused as it must be."""
    if number == 0:
        raise BreadError("two\nlines")
    if number == 1:
        raise RecursionError("deep")
    if number == 2:
        raise SystemExit(3)
    if number == 3:
        os._exit(1)
    if number == 4:
        time.sleep(600)
    raise BreadError("refused")


# ---- a worker --------------------------------------------------------------------------------------------------

# A folder called tests may lie elsewhere on the path, too.
_WORKER = f"""
import sys, types
package = types.ModuleType("tests")
package.__path__ = [{str(Path(__file__).parents[1])!r}]
sys.modules["tests"] = package
from tests.support import stan_fuzz
stan_fuzz.work(getattr(stan_fuzz, sys.argv[1]))
"""


def work(run: Callable[[int], Any]) -> None:
    """Run the cases whose numbers come in, one a line; write the outcome of each."""
    for line in sys.stdin:
        try:
            run(int(line))
            outcome = "accepted"
        except BreadError as error:
            message = str(error)
            outcome = "refused" if message.strip() and len(message.splitlines()) == 1 else f"message: {message!r}"
        except BaseException as error:
            outcome = f"{type(error).__name__}: {error}"[:500]
        print(json.dumps(outcome), flush=True)


def outcomes(numbers: Iterable[int], run: str, seconds: float = SECONDS) -> Iterator[tuple[int, str]]:
    """Run cases by a function of this module, in a process of their own, a new one after a crash or a hang.

    An outcome is "accepted", "refused" (a BreadError of one line), or what must not happen: another exception, a
    message of several lines, "crash", "hang" (more than ``seconds``).
    """
    remaining = list(numbers)
    while remaining:
        with subprocess.Popen(
            [sys.executable, "-c", _WORKER, run], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            try:
                while remaining:
                    number = remaining.pop(0)
                    print(number, file=process.stdin, flush=True)
                    ready, _, _ = select.select([process.stdout], [], [], seconds)
                    line = process.stdout.readline() if ready else ""
                    yield number, json.loads(line) if line else "crash" if ready else "hang"
                    if not line:
                        break
            finally:
                process.kill()
