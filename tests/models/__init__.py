"""Models whose exact answers are known: NumPy models with conjugate priors, and models of finitely many states."""
