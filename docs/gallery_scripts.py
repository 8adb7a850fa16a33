"""Sphinx extension: every page of the gallery is also a script, made of its cells, and links to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from myst_nb.core.read import read_myst_markdown_notebook

_FOLDER = "gallery"
_SCRIPTS = "scripts"
_SHOW = "from matplotlib import pyplot\n\npyplot.show()"


def setup(app: Any) -> dict[str, bool]:
    """Write the scripts before pages are read, and link to them as they are."""
    app.connect("config-inited", lambda app, config: _write(Path(app.srcdir) / _FOLDER))
    app.connect("source-read", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write(folder: Path) -> None:
    (folder / _SCRIPTS).mkdir(exist_ok=True)
    for page in folder.glob("*.md"):
        cells = read_myst_markdown_notebook(page.read_text(encoding="utf-8")).cells
        if any(cell.cell_type == "code" for cell in cells):
            script = "\n\n".join(["# %%\n" + _as_code(cell) for cell in cells] + [_SHOW])
            (folder / _SCRIPTS / f"{page.stem}.py").write_text(f"{script}\n", encoding="utf-8")


def _as_code(cell: Any) -> str:
    text = str(cell.source).strip()
    return text if cell.cell_type == "code" else "\n".join(f"# {line}".rstrip() for line in text.splitlines())


def _link(app: Any, name: str, source: list[str]) -> None:
    page = name.removeprefix(f"{_FOLDER}/")
    if (Path(app.srcdir) / _FOLDER / _SCRIPTS / f"{page}.py").is_file() and name != page:
        source[0] += f"\n{{download}}`This page as a script <{_SCRIPTS}/{page}.py>`\n"
