"""PyMC's step methods, frozen, and the chains that they move."""
