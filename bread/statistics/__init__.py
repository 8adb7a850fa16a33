"""Statistics on arrays: bounds, intervals, tests. NumPy and SciPy alone."""
