"""C modules compiled side by side: PyTensor finds them under its own keys, and computes the same bits."""

import json
import os
import subprocess
import sys

import pytest

from bread.backends.pymc.density.pytensor_fixes.common_headers import begins_alike

pytestmark = pytest.mark.pymc

# In a process of its own, whose compile folder is empty.
SCRIPT = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, pytensor, pytensor.tensor as pt
from pytensor.link.c.cmodule import GCC_compiler
from bread.backends.pymc.density.pytensor_fixes import side_by_side
from bread.backends.pymc.density.pytensor_fixes.side_by_side import with_modules_side_by_side

compiled = []
compile_str = GCC_compiler.compile_str
def counted(*arguments, **options):
    compiled.append((options.get("py_module", True), options.get("include_dirs") or [""]))
    return compile_str(*arguments, **options)
GCC_compiler.compile_str = staticmethod(counted)

def values(mode, power):
    x, y = pt.dvector("x"), pt.dmatrix("y")
    total = pt.gammaln(pt.exp(x) + power).sum() + pt.log(pt.dot(y, x) ** power + 1).max() + pt.prod(pt.cos(y * power))
    total += pt.sort(x * power)[0]
    function = pytensor.function([x, y], [total, *pytensor.grad(total, [x, y])], mode=mode)
    rng = np.random.default_rng(3)
    before = list(compiled)
    compiled.clear()
    return before, [np.asarray(one).tobytes().hex() for one in function(rng.normal(size=4), rng.normal(size=(3, 4)))]

ours, found = {}, {}
mode = with_modules_side_by_side("CVM")
ours["side by side"], found["ours"] = values(mode, 2)
ours["plain after it"], found["plain"] = values("CVM", 2)
ours["plain"], found["plain of another"] = values("CVM", 4)
ours["side by side after it"], found["ours of another"] = values(mode, 4)

def refuse(*arguments):
    raise RuntimeError("no compiler today")
side_by_side.compile_modules = refuse
ours["failing"], _ = values(mode, 6)
print(json.dumps({
    "alone": {name: sum(not one for one, _ in many) for name, many in ours.items()},
    "by PyTensor": {name: sum(one for one, _ in many) for name, many in ours.items()},
    "with headers": sum("headers" in folders[0] for one, folders in ours["side by side"] if not one),
    "same": found["ours"] == found["plain"] and found["ours of another"] == found["plain of another"],
}))
"""


@pytest.fixture(scope="module")
def counts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compiled")
    environment = {**os.environ, "PYTENSOR_FLAGS": f"compiledir={folder}"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_modules_are_pytensors_own(counts):
    alone, by_pytensor = counts["alone"], counts["by PyTensor"]
    assert alone["side by side"] >= 5
    assert by_pytensor["side by side"] <= 2, "its own lazy linker, and nothing of the graph"
    assert by_pytensor["plain after it"] == alone["plain after it"] == 0, "the same keys"
    assert by_pytensor["plain"] >= 1 and alone["plain"] == 0, "the control: a graph that nobody had compiled"
    assert by_pytensor["side by side after it"] == alone["side by side after it"] == 0


def test_the_bits_are_the_same(counts):
    assert counts["same"]


@pytest.mark.skipif(sys.platform != "linux", reason="precompiled headers are used on Linux")
def test_headers_are_read_once_where_modules_are_many(counts):
    assert counts["with headers"] >= 4


def test_what_fails_pytensor_does_itself(counts):
    assert counts["alone"]["failing"] == 0
    assert counts["by PyTensor"]["failing"] >= 1


INCLUDES = (
    "#include <Python.h>",
    '#include "pytensor_mod_helper.h"',
    "#include <math.h>",
    "#include <numpy/arrayobject.h>",
    "#include <numpy/arrayscalars.h>",
    "#include <numpy/npy_math.h>",
)


def test_headers_are_used_where_all_come_first():
    assert begins_alike("\n".join([*INCLUDES, "#include <vector>", "int x;"]))
    assert not begins_alike("\n".join(["#define NO_IMPORT_ARRAY", *INCLUDES]))
    assert not begins_alike("\n".join([*INCLUDES[:3], "#define NO_IMPORT_ARRAY", *INCLUDES[3:]]))
    assert not begins_alike("\n".join(INCLUDES[1:]))
    assert not begins_alike("\n".join(INCLUDES[:-1]))
