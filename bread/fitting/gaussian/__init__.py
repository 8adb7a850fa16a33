"""Gaussian distributions and mixtures of them."""
