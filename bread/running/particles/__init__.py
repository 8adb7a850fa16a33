"""Filters that anneal by adding data."""
