"""Backend for PyMC models, engine "pymc": PyMC's own step methods on a tempered density."""

from bread.arviz_import import require_containers

require_containers()  # before PyMC imports ArviZ: several workers may do so at the same moment

from bread.backends.pymc.opened import PyMCModel, open_model  # noqa: E402

__all__ = ["PyMCModel", "open_model"]
