"""Pure functions of arrays: tests, bounds and intervals. They know NumPy and SciPy alone."""
