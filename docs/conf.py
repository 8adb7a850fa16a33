"""Settings of the documentation: `make docs` builds it, runs every code block, and takes warnings for errors."""

from __future__ import annotations

import os
from importlib.metadata import version as version_of

project = "bread"
author = "The bread developers"
copyright = author
version = release = version_of("bread-mcmc")

extensions = [
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
nb_execution_timeout = 900
nb_execution_raise_on_error = "BREAD_DOCS_ALL" not in os.environ  # or see every page that fails
nb_execution_show_tb = True
nb_merge_streams = True
os.environ.setdefault("BREAD_PRECOMPILE", "1")
# What is about the machine that builds, not about the page.
os.environ.setdefault("PYTHONWARNINGS", "ignore:IProgress not found,ignore:PyTensor could not link")

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
