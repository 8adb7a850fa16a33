"""Settings of the documentation: `make docs` builds it, runs every code block, and takes warnings for errors."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version as version_of
from pathlib import Path

project = "bread"
author = "The bread developers"
copyright = author
version = release = version_of("bread-mcmc")

sys.path.insert(0, str(Path(__file__).resolve().parent))
extensions = [
    "gallery_scripts",
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build", "images", "jupyter_execute"]
templates_path = ["_templates"]
nitpicky = False
suppress_warnings = ["myst-nb.lexer"]  # pages whose code is not run have no language

html_theme = "pydata_sphinx_theme"
html_title = "bread"
html_static_path = ["_static"]
html_css_files = ["bread.css"]
html_show_sourcelink = False
html_sidebars = {"*": []}  # pages of no section have no navigation of one, and more room for tables
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3

# A block that raises ends the build. One process a page; a page that did not change is taken from the cache.
nb_execution_mode = os.environ.get("BREAD_DOCS_EXECUTION", "cache")
nb_execution_timeout = 3600  # seconds of one block, on a machine that does other things as well
nb_execution_raise_on_error = "BREAD_DOCS_ALL" not in os.environ  # or see every page that fails
nb_execution_show_tb = True
nb_merge_streams = True
os.environ.setdefault("BREAD_PRECOMPILE", "1")
# What is about the machine that builds, not about the page.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("PYTHONWARNINGS", "ignore:IProgress not found,ignore:PyTensor could not link")

# WebPPL runs in Node.js, which pip does not bring; `make docs` asks npm for the package. Without either the page says
# that its code was not run (`only` directives read the tag), and so does the build.
os.environ.setdefault("NODE_PATH", str(Path(__file__).resolve().parent.parent / ".webppl" / "node_modules"))
try:
    subprocess.run(["node", "-e", "require.resolve('webppl')"], check=True, capture_output=True, timeout=60)
    tags.add("webppl")  # noqa: F821  Sphinx gives it to this file
except (OSError, subprocess.SubprocessError):
    nb_execution_excludepatterns = ["how_to/webppl.md"]
    print("Node.js or the npm package webppl is missing: the code of how_to/webppl.md is not run.", flush=True)

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
