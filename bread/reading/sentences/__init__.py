"""Sentences of verdicts."""
