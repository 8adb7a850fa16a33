"""Coupled Markov chains that meet: bounds of how far plain MCMC is from its target, and unbiased estimates."""
