"""Digests of code: what the user's code says, and all that it refers to, counts; what libraries hold goes by name."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bread.digests import Digests, digest

ROOT = Path(__file__).parents[1]

# A module that the main one imports, and the main one: it says what ``wanted`` is.
HELPERS = "LIMIT = 1.0\ndef one(x):\n    return x + ~\ndef other(x):\n    return x\n"
CASES = {
    "method": "class K:\n    def step(self, x):\n        return x + ~\nwanted = K()",
    "class": "class K:\n    def step(self, x):\n        return x + ~\nwanted = K",
    "static method": "class K:\n    @staticmethod\n    def step(x):\n        return x + ~\nwanted = K()",
    "class method": "class K:\n    @classmethod\n    def step(cls, x):\n        return x + ~\nwanted = K()",
    "property": "class K:\n    @property\n    def step(self):\n        return ~\nwanted = K()",
    "cached property": (
        "import functools\nclass K:\n    @functools.cached_property\n    def step(self):\n        return ~"
        "\nwanted = K()"
    ),
    "base class": "class B:\n    def step(self, x):\n        return x + ~\nclass K(B):\n    pass\nwanted = K()",
    "metaclass": "class M(type):\n    def f(cls):\n        return ~\nclass K(metaclass=M):\n    pass\nwanted = K()",
    "class attribute": "class K:\n    scale = ~\nwanted = K()",
    "slots": "class K:\n    __slots__ = ('a',)\n    def __init__(self):\n        self.a = ~\nwanted = K()",
    "inner class": "class K:\n    class Inner:\n        def f(self):\n            return ~\nwanted = K()",
    "class in a global": "class H:\n    def f(self):\n        return ~\ndef wanted(x):\n    return H().f() + x",
    "object in a global": (
        "class H:\n    def __init__(self):\n        self.a = ~\nH = H()"
        "\ndef wanted(x):\n    return H.a"
    ),
    "dict in a global": "H = {'a': [~]}\ndef wanted(x):\n    return H['a']",
    "function of a function": (
        "def f(x):\n    return x + ~\ndef g(x):\n    return f(x)"
        "\ndef wanted(x):\n    return g(x)"
    ),
    "functions in turn": (
        "def f(x):\n    return g(x) if x else ~\ndef g(x):\n    return f(x - 1)\ndef wanted(x):\n    return g(x)"
    ),
    "inner function": "F = ~\ndef wanted(x):\n    def inner():\n        return F\n    return inner()",
    "comprehension": "F = ~\ndef wanted(x):\n    return [F for _ in x]",
    "class in a function": "F = ~\ndef wanted(x):\n    class K:\n        a = F\n    return K.a",
    "closure": "def make(n):\n    return lambda x: x + n\nwanted = make(~)",
    "closure of a closure": "def make(n):\n    def f(x):\n        return lambda: n\n    return f\nwanted = make(~)",
    "default": "def wanted(x, n=~):\n    return x + n",
    "keyword default": "def wanted(x, *, n=~):\n    return x + n",
    "attribute of a function": "def wanted(x):\n    return x + wanted.n\nwanted.n = ~",
    "partial": "import functools\ndef f(x, n):\n    return x + n\nwanted = functools.partial(f, n=~)",
    "partial of code": "import functools\ndef f(x):\n    return x + ~\nwanted = functools.partial(f)",
    "bound method": "class K:\n    def f(self, x):\n        return x + ~\nwanted = K().f",
    "wrapped": (
        "import functools, numpy\ndef d(f):\n    @functools.wraps(numpy.sum)\n    def g(x):\n        return f(x)\n"
        "    return g\n@d\ndef wanted(x):\n    return x + ~"
    ),
    "named as a library's": "def wanted(x):\n    return x + ~\nwanted.__module__, wanted.__qualname__ = 'numpy', 'sum'",
    "cache": "import functools\n@functools.lru_cache\ndef f(x):\n    return x + ~\ndef wanted(x):\n    return f(x)",
    "vectorised": "import numpy\nwanted = numpy.vectorize(lambda x: x + ~)",
    "in a list": "wanted = [lambda x: x, lambda x: x + ~]",
    "enum": "import enum\nclass K(enum.Enum):\n    A = ~\ndef wanted(x):\n    return K.A",
    "dataclass": "import dataclasses\n@dataclasses.dataclass\nclass K:\n    n: float = ~\nwanted = K",
    "order": "def m(n):\n    return lambda x: x - n\nwanted = sorted([m(1.0), m(2.0)], key=lambda f: f(0) * (1.5 - ~))",
    "module": "import helpers\ndef wanted(x):\n    return helpers.one(x)",
    "module under another name": "import helpers as h\ndef wanted(x):\n    return h.one(x)",
    "module passed on": (
        "import helpers\ndef call(m, x):\n    return m.one(x)"
        "\ndef wanted(x):\n    return call(helpers, x)"
    ),
    "module by a computed name": "import helpers\ndef wanted(x):\n    return getattr(helpers, 'on' + 'e')(x)",
    "module enclosed": "def make():\n    import helpers\n    return lambda x: helpers.one(x)\nwanted = make()",
    "module in an object": "import helpers\nclass K:\n    def __init__(self):\n        self.m = helpers\nwanted = K()",
    "import inside": "def wanted(x):\n    import helpers\n    return helpers.one(x)",
    "import from inside": "def wanted(x):\n    from helpers import one\n    return one(x)",
    "method of an object's own": "class K:\n    pass\nwanted = K()\nwanted.step = lambda x: x + ~",
    "method of a generator's": "import numpy\nwanted = numpy.random.default_rng(int(2 * ~)).normal",
    "structured array": "import numpy\nwanted = numpy.array([(1.0, ~)], dtype=[('a', 'f8'), ('b', object)])",
    "weak reference": "import weakref\ndef f(x):\n    return x + ~\nwanted = weakref.ref(f)",
}  # fmt: skip


def load(monkeypatch: pytest.MonkeyPatch, code: str, edit: str) -> Any:
    """Return what a module with this code wants, as a fresh process would have it."""
    for name, text in (("helpers", HELPERS), ("users", code)):
        module = type(sys)(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(text.replace("~", edit), f"/home/someone/{name}.py", "exec"), vars(module))
    return sys.modules["users"].wanted


@pytest.mark.parametrize("case", CASES)
def test_an_edit_shows(case, monkeypatch):
    """A second load of the same code has the same digest: it is no address that shows."""
    before = Digests()
    one = before.of(load(monkeypatch, CASES[case], "0.5"))
    assert not before.unknown
    assert digest(load(monkeypatch, CASES[case], "0.5")) == one
    assert digest(load(monkeypatch, CASES[case], "2.5")) != one


def test_what_is_not_referred_to_does_not_count(monkeypatch):
    code = "import helpers\nUNUSED = ~\ndef wanted(x):\n    return helpers.other(x)  # ~"
    assert digest(load(monkeypatch, code, "0.5")) == digest(load(monkeypatch, code, "2.5"))


UNKNOWN = {
    "lock": "import threading\nlock = threading.Lock()\ndef wanted(x):\n    with lock:\n        return x",
    "file": "wanted = [open('/dev/null')]",
    "generator": "wanted = [(x for x in range(3))]",
    "code that is made": "wanted = lambda x: eval('x + 1')",
    "code that is made by name": "import importlib\nwanted = lambda x: importlib.import_module('help' + 'ers').one(x)",
    "hidden function": "import numpy\nwanted = numpy.frompyfunc(lambda x: x + 1, 1, 1)",
    "foreign library": "import ctypes\nlibrary = ctypes.CDLL(None)\ndef wanted(x):\n    return library.abs(x)",
    "name alone": "class K:\n    def __reduce__(self):\n        return 'wanted'\nwanted = K()",
}


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("case", UNKNOWN)
def test_what_cannot_be_taken_apart_is_said(case, monkeypatch):
    found = Digests()
    found.of(load(monkeypatch, UNKNOWN[case], "0.5"))
    assert len(found.unknown) == 1


def test_packages_are_noted_not_taken_apart(monkeypatch):
    code = (
        "import scipy.stats, numpy\nlaw = scipy.stats.norm(0, ~)\ndef wanted(x):\n    return law.logpdf(numpy.sum(x))"
    )
    found = Digests()
    found.of(load(monkeypatch, code, "0.5"))
    assert {"scipy", "numpy"} <= found.packages and not found.unknown


def test_functions_that_call_each_other_take_no_longer_than_they_are_many(monkeypatch):
    """Taken apart along every way, forty functions that call all others would never end."""
    names = [f"f{i}" for i in range(40)]
    calls = " + ".join(f"{name}(x)" for name in names)
    code = "\n".join(f"def {name}(x):\n    return {calls} if x else {i}" for i, name in enumerate(names))
    one, other = (load(monkeypatch, f"{code} + ~\nwanted = {names[0]}", edit) for edit in ("0.5", "2.5"))
    assert digest(one) != digest(other)


def test_what_was_pickled_by_value_has_the_digest_of_the_original():
    """As what a checkpoint keeps of a call: functions and classes of a script, or of a notebook."""
    program = """
        import functools, cloudpickle, numpy as np
        from bread.digests import digest
        mean = 3.0  # an attribute of the same name is none of it
        class B:
            scale = 2.0
            def __init__(self): self.draws = np.arange(3.0)
            def f(self, x): return super().__repr__() + str(g(x))
        class K(B):
            @property
            def p(self): return K
        def g(x): return functools.reduce(lambda a, b: a + b, np.ones(3).mean() + x) if x else K()
        for value in (K, K(), g, K().f, functools.partial(g, 1)):
            copy = cloudpickle.loads(cloudpickle.dumps(value))
            assert digest(copy) == digest(value), value
            print(digest(value))
    """
    found = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", textwrap.dedent(program)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1 and len(found.pop().split()) == 5


def test_objects_that_stand_for_large_graphs_are_taken_apart_once():
    value: Any = np.arange(3.0)
    for _ in range(200):
        value = [value, value]  # 2 ** 200 ways lead to the array
    for _ in range(5000):
        value = (value,)  # deeper than Python calls
    assert len(digest(value)) == 64
