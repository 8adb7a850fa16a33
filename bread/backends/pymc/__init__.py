"""Backend for PyMC models, engine "pymc": PyMC's own step methods on a tempered density."""

from bread.backends.pymc.opened import PyMCModel, open_model

__all__ = ["PyMCModel", "open_model"]
