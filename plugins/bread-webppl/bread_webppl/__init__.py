"""WebPPL programs for the verbs: ``bread.check(bread_webppl.Model("model.wppl", {"y": y}, "y"))``.

WebPPL draws and scores in a Node.js process, and its own kernel moves the chains.
"""

from bread_webppl.wrapper import Model

__all__ = ["Model"]
