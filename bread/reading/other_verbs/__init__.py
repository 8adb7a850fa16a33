"""Verdicts of the other verbs."""
