"""Pure statistics of annealed log weights: NumPy and SciPy on arrays, nothing of a model or a report."""
