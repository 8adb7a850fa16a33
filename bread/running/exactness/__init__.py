"""Tests of the kernel and the model on exact draws, before anything is annealed."""
