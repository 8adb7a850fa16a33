"""Which reference is fitted, and how it is found on other data."""
