"""Tests of samplers, simulators and densities: what `bread.debug` runs."""
