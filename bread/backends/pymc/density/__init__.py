"""The tempered density of a PyMC model, compiled."""
