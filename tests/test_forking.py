"""Workers that are forked: when, what they inherit, and that they end; each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="workers are forked on Linux")

HEAD = """
import json, os, signal, sys, threading, time, warnings
from pathlib import Path
from bread import workers
from bread.forking import ForkedPool, can_fork
from bread.workers import call_on_workers, end_forked_workers, fork_workers

def pid(_):
    time.sleep(0.2)
    return os.getpid()

def is_running(number):
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

def digest(report):
    # all numbers of a report but wall times
    import hashlib
    from bread.report.compat import group_names, read_group
    found = hashlib.sha256()
    for group in sorted(group_names(report)):
        values = read_group(report, group)
        for name in sorted(set(values.data_vars) - {"seconds"}):
            found.update(f"{group} {name} {values[name].values.tolist()}".encode())
    return found.hexdigest()

if __name__ == "__main__":
"""


def run(body: str, *arguments: str, **environment: str) -> Any:
    """Run the body of a script, and return what it prints last, as JSON."""
    script = HEAD + "\n".join(f"    {line}" for line in body.strip().splitlines())
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False, timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}, start_new_session=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_a_script_forks_and_its_workers_have_what_it_has() -> None:
    found = run("""
os.mark_of_test = "before"
fork_workers(2)
os.mark_of_test = "after"
values = [value for _, value in call_on_workers(lambda _: getattr(os, "mark_of_test", ""), [(0,), (1,)], 2)]
pids = {value for _, value in call_on_workers(pid, [(n,) for n in range(4)], 2)}
end_forked_workers()
print(json.dumps([values, len(pids), os.getpid() in pids, any(map(is_running, pids)), threading.active_count()]))
""")
    assert found[0] == ["before", "before"]
    assert found[1:] == [2, False, False, 1], "two workers, none of them this process; they ended, with their threads"


def test_a_script_that_says_no_does_not_fork() -> None:
    assert run("print(json.dumps(can_fork()))") is True
    assert run("print(json.dumps(can_fork()))", BREAD_FORK="0") is False


def test_nothing_is_forked_beside_other_threads_or_what_starts_them() -> None:
    found = run("""
import _thread
import types

found = {"alone": can_fork()}
for name in ("jax", "torch", "tensorflow"):
    sys.modules[name] = types.ModuleType(name)
    found[name] = can_fork()
    del sys.modules[name]
wait = threading.Event()
thread = threading.Thread(target=wait.wait)
thread.start()
found["a thread"] = can_fork()
wait.set()
thread.join()
timer = threading.Timer(60.0, print)
timer.name = "bread-limit"
timer.start()
found["the end of max_seconds"] = can_fork()
timer.cancel()
timer.join()
seen = []
thread = threading.Thread(target=lambda: seen.append(can_fork()))
thread.start()
thread.join()
found["in a thread"] = seen[0]
found["alone again"] = can_fork()
lock = _thread.allocate_lock()
lock.acquire()
_thread.start_new_thread(lambda: lock.acquire(), ())
time.sleep(0.2)
found["a thread that threading does not know"] = can_fork()
print(json.dumps(found))
""")
    assert {name for name, is_safe in found.items() if is_safe} == {"alone", "the end of max_seconds", "alone again"}
    assert len(found) == 9


def test_a_thread_that_waits_for_a_call_into_stan_is_no_hindrance_and_one_that_makes_it_is() -> None:
    found = run("""
from bread.backends.stan.native.watching import WatchedCall
over, found = threading.Event(), []
for _ in range(2):
    call = WatchedCall(lambda: str(over.wait(60)))
    call.start()
    found.append(can_fork())
    over.set()
    call.ended.wait(60)
    found.append(can_fork())
    over.clear()
print(json.dumps([*found, threading.active_count()]))
""")
    assert found == [False, True, False, True, 2]


def test_a_killed_worker_costs_nothing_but_time(tmp_path: Path) -> None:
    found = run(
        """
def square(number):
    mark = Path(sys.argv[1], "killed")
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2

fork_workers(2)
restarts = []
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    values = sorted(call_on_workers(square, [(n,) for n in range(8)], 2, before_restart=lambda: restarts.append(1)))
was_killed = Path(sys.argv[1], "killed").exists()
print(json.dumps([values, len(restarts), [str(one.message)[:27] for one in said], was_killed]))
""",
        str(tmp_path),
    )
    assert found == [[[n, n**2] for n in range(8)], 1, ["A worker process was killed"], True]


def test_an_error_of_a_call_arrives_and_abandoned_calls_end(tmp_path: Path) -> None:
    found = run(
        """
try:
    fork_workers(2)
    list(call_on_workers(lambda number: 1 // number, [(1,), (0,)], 2))
except ZeroDivisionError as error:
    first = str(error)

def wait(number):
    Path(sys.argv[1], str(os.getpid())).touch()
    time.sleep(600)

def poll():
    if len(list(Path(sys.argv[1]).iterdir())) == 2:
        raise KeyboardInterrupt

try:
    fork_workers(2)
    list(call_on_workers(wait, [(0,), (1,)], 2, poll))
except KeyboardInterrupt:
    left = [is_running(int(one.name)) for one in Path(sys.argv[1]).iterdir()]
print(json.dumps([first, left, threading.active_count()]))
""",
        str(tmp_path),
    )
    assert found == ["integer division or modulo by zero", [False, False], 1]


def test_the_interrupt_is_the_parents() -> None:
    """A terminal interrupts the whole group: workers go on, without a traceback."""
    found = run("""
signal.signal(signal.SIGINT, lambda *_: None)
fork_workers(2)

def poll():
    os.killpg(0, signal.SIGINT)

print(json.dumps(len(list(call_on_workers(pid, [(n,) for n in range(8)], 2, poll)))))
""")
    assert found == 8


def test_idle_workers_end_and_others_follow() -> None:
    found = run("""
workers._IDLE_SECONDS = 0.5
first = {value for _, value in call_on_workers(pid, [(0,), (1,)], 2)}
deadline = time.monotonic() + 60
while any(map(is_running, first)) and time.monotonic() < deadline:
    time.sleep(0.1)
ended = not any(map(is_running, first))
second = {value for _, value in call_on_workers(pid, [(0,), (1,)], 2)}
print(json.dumps([ended, bool(first & second), len(second) > 0]))
""")
    assert found == [True, False, True]


def test_forks_draw_other_global_random_numbers() -> None:
    """A user's own code may draw from NumPy's global generator: each worker has its own, as one that starts anew."""
    found = run("""
import random
import numpy as np
np.random.seed(1)
random.seed(1)
fork_workers(2)

def draw(_):
    time.sleep(0.5)
    return os.getpid(), float(np.random.uniform()), random.random()

drawn = {value[0]: value[1:] for _, value in call_on_workers(draw, [(0,), (1,)], 2)}
print(json.dumps(list(drawn.values())))
""")
    (one, first), (two, second) = found
    assert one != two and first != second


def test_a_model_is_there_for_workers_that_replace_its_heirs() -> None:
    """Between two calls: heirs were killed, or another number of workers was wanted."""
    found = run(
        """
import numpy as np
from tests.models.reference import NormalMean
from bread.jobs.executors import PoolExecutor

class Task:
    n_chains = 1
    def run(self, model):
        time.sleep(0.2)
        return os.getpid(), model.info.identity.name

seen = []
with PoolExecutor(NormalMean(np.array([0.3])), 2) as executor:
    for what in ("nothing", "killed", "others"):
        found = dict(executor.run([Task(), Task(), Task()]))
        seen.append([len(found), len({name for _, name in found.values()})])
        pids = {pid for pid, _ in found.values()}
        if what == "nothing":
            for one in pids:
                os.kill(one, signal.SIGKILL)
            while any(map(is_running, pids)):
                time.sleep(0.1)
        if what == "killed":
            list(call_on_workers(pid, [(0,)], 1))
print(json.dumps(seen))
"""
    )
    assert found == [[3, 1]] * 3


CHECK = """
import numpy as np
import bread
from tests.models.reference import NormalMean

class Counted(NormalMean):
    def __reduce__(self):
        Path(sys.argv[1], f"{time.monotonic_ns()}").touch()
        return super().__reduce__()

report = bread.check(
    Counted(np.array([0.3, 1.2, -0.4])), simulate_from="prior", n_temperatures=[4, 8], simulations=6, draws=8, cores=2,
    random_seed=4, progressbar=False,
)
print(json.dumps([digest(report), len(list(Path(sys.argv[1]).iterdir())), threading.active_count()]))
"""


def test_a_check_is_the_same_to_the_bit_and_its_model_is_not_pickled(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("forked", "new")]
    for folder in folders:
        folder.mkdir()
    forked = run(CHECK, str(folders[0]))
    new = run(CHECK, str(folders[1]), BREAD_FORK="0")
    assert forked[0] == new[0]
    assert forked[1] == 0 and forked[2] == 1, "inherited, and no worker is left"
    assert new[1] > 0, "the control"


PYMC = """
import pymc as pm
import bread

with pm.Model() as model:
    scale = pm.HalfNormal("scale", 2.0)
    mean = pm.Normal("mean", 0.0, scale, shape=2)
    pm.Normal("y", mean, 1.0, observed=[0.3, 2.2])

def checked(cores):
    return digest(bread.check(
        model, simulate_from="prior", path="reference", n_temperatures=[4], simulations=3, draws=4, tune=100,
        cores=cores, random_seed=4, progressbar=False,
    ))

pools = []
made = ForkedPool.__init__

def counted(self, *arguments):
    pools.append(arguments[0])
    made(self, *arguments)

ForkedPool.__init__ = counted
warnings.simplefilter("ignore")
print(json.dumps([checked(2) == checked(1), checked(2) == checked(2), pools]))
"""


@pytest.mark.pymc
@pytest.mark.slow
def test_a_model_of_pymc_is_inherited_compiled() -> None:
    pytest.importorskip("pymc")
    is_serial, is_again, pools = run(PYMC)
    assert is_serial and is_again and pools == [2, 2, 2]
