"""What tests may import: public names of bread and tools of tests/support, never another test file.

Access to private attributes is refused by ruff (SLF).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.which_tests import files_that_name

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
PLUGINS = sorted(ROOT.glob("plugins/*"))


def forbidden_imports(source: str) -> Iterator[str]:
    """Return the imports of test files and of private names."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = [part for part in name.split(".") if part]
            own = parts[0] == "tests" or parts[0].startswith("bread") or name.startswith(".")
            private = any(part.startswith("_") and not part.endswith("__") for part in parts)
            if own and (private or any(part.startswith("test_") for part in parts)):
                yield name


def test_tests_import_no_test_file_and_no_private_name() -> None:
    found = {
        str(path.relative_to(ROOT)): names
        for folder in (TESTS, *PLUGINS)
        for path in sorted(folder.rglob("*.py"))
        if (names := list(forbidden_imports(path.read_text(encoding="utf-8"))))
    }
    assert not found


@pytest.mark.parametrize(
    "line",
    [
        "from tests.system.test_check import same",
        "import tests.system.test_check",
        "from . import test_check",
        "from bread import _version",
        "from bread._version import version",
        "from bread_webppl.opened import _info",
        "def f():\n    from bread.paths.schedules import _spread",
    ],
)
def test_what_is_forbidden(line: str) -> None:
    """Negative control."""
    assert list(forbidden_imports(line))


@pytest.mark.parametrize(
    "line", ["from bread import __version__", "from tests.support.funnel import Funnel", "import os"]
)
def test_what_is_allowed(line: str) -> None:
    assert not list(forbidden_imports(line))


def test_what_is_left_out_by_name_is_there() -> None:
    lines = (TESTS / "moderate.txt").read_text(encoding="utf-8").splitlines()
    named = [line for line in lines if not line.startswith("#")]
    assert len(named) == len(set(named)) and named == sorted(named)
    for node in named:
        path, function = node.split("[")[0].split("::")
        assert f"def {function}(" in (TESTS.parent / path).read_text(encoding="utf-8"), node


def test_bread_names_none_of_its_plugins() -> None:
    """A plugin is found by its entry point, whatever it is called."""
    names = [path.name.removeprefix("bread-") for path in PLUGINS]
    texts = {file: file.read_text(encoding="utf-8").lower() for file in (ROOT / "bread").rglob("*.py")}
    assert names and texts
    assert not [(str(file.relative_to(ROOT)), name) for file, text in texts.items() for name in names if name in text]


def test_which_tests_name_a_module() -> None:
    found = {path.name for path in files_that_name("bread.running.path_choice.race")}
    assert "test_race.py" in found and Path(__file__).name not in found
    assert not files_that_name("bread.no_such_module")


def hands_itself_on(source: str) -> list[str]:
    """Return the calls of classes that are given the object that makes them."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1].lstrip("_")[:1].isupper():
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            found += [ast.unparse(node) for one in given if isinstance(one, ast.Name) and one.id == "self"]
    return found


def test_no_phase_hands_itself_to_another() -> None:
    """What another phase is given is what it needs, so that imports show who knows whom."""
    found = {
        str(path): calls
        for path in (ROOT / "bread" / "running").rglob("*.py")
        if (calls := hands_itself_on(path.read_text("utf-8")))
    }
    assert not found
    assert hands_itself_on("class A:\n    def f(self):\n        return B(1, stage=self)")


def tells_families_apart(source: str, families: frozenset[str]) -> list[str]:
    """Return the tests of the class of a reference: by ``isinstance``, by ``type``, by a pattern."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            asked = node.args[1:]
        elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node.left):
            asked = node.comparators
        elif isinstance(node, ast.MatchClass):
            asked = [node.cls]
        else:
            continue
        names = {part for one in asked for part in ast.unparse(one).replace("|", " ").replace(",", " ").split()}
        if families & {name.strip("()").split(".")[-1] for name in names}:
            found.append(ast.unparse(node))
    return found


def names_of_families() -> frozenset[str]:
    """Return the classes of references, and what unions of them are called."""
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "bread").rglob("*.py"))]
    trees = [ast.parse(text) for text in texts if "Reference(" in text or "Reference |" in text]
    names = {
        node.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith("Reference")
    }
    unions = [
        (target.id, {part.id for part in ast.walk(node.value) if isinstance(part, ast.Name)})
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp | ast.Tuple)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    return frozenset(names | {name for name, parts in unions if parts & names})


def test_only_paths_and_fits_tell_families_of_references_apart() -> None:
    """What others want to know of a reference it says itself; backends have a code for each family."""
    families = names_of_families()
    assert {"Reference", "FittedReference", "NestedReference", "UserReference", "AcrossRotations"} < families
    found = {
        str(path.relative_to(ROOT)): tests
        for path in (ROOT / "bread").rglob("*.py")
        if path.relative_to(ROOT).parts[1] not in ("paths", "fitting", "backends")
        if any(name in (text := path.read_text("utf-8")) for name in families)
        and (tests := tells_families_apart(text, families))
    }
    assert not found
    for test in (
        "isinstance(a.b, NestedReference)",
        "isinstance(a, (int, paths.UserReference))",
        "type(a) is A.Reference",
    ):
        assert tells_families_apart(test, families), "control"
    assert tells_families_apart("match a:\n    case MixtureReference():\n        pass", families), "control"
    assert not tells_families_apart("isinstance(a, ReferencePath | str | weakref.ReferenceType)", families)
