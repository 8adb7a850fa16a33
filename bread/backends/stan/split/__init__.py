"""A program split into prior and likelihood."""
