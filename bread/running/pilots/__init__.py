"""Kernels and references fitted before chains are annealed."""
