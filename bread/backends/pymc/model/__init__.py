"""A PyMC model read, and refused where it cannot be exact."""
