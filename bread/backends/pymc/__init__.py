"""PyMC backend."""
