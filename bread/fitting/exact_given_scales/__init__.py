"""Exact Gaussian distributions given scales."""
