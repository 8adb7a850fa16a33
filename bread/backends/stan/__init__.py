"""Backend for Stan programs, engine "stan": Stan's own samplers on the program with a tempered likelihood."""

from bread.backends.stan.building import open_model
from bread.backends.stan.model import StanModel

__all__ = ["StanModel", "open_model"]
