"""Exact joint draws of a PyMC model."""
