"""Estimates of log evidences, with intervals."""
