"""WebPPL programs for the verbs: ``bread.check(bread.webppl.Model("model.wppl", {"y": y}, "y"))``."""

from bread.backends.webppl.wrapper import Model

__all__ = ["Model"]
