"""Backend for Stan programs, engine "stan": Stan's own samplers on the program with a tempered likelihood."""

from bread.backends.stan.model import StanModel
from bread.backends.stan.native.kernels import StanKernel
from bread.backends.stan.open import open_model

__all__ = ["StanKernel", "StanModel", "open_model"]
