"""Repairs of PyTensor's C code."""
