"""Tests of the real data against simulated data."""
