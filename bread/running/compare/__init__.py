"""Comparing two ways to sample one posterior."""
