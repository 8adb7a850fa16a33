"""Chains of PyMC models many at a time, on JAX: PyMC's own conversion of the densities, BlackJAX's kernels, frozen."""
