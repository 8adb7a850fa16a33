"""Differences between samplers, with intervals."""
