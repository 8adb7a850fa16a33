"""Bounds on divergences, and their limits."""
