"""NumPyro models for the verbs: ``bread.check(bread.numpyro.Model(function, (x, y)))``."""

from bread.backends.numpyro.wrapper import Model

__all__ = ["Model"]
