"""Gaussian distributions given one coordinate, or some."""
