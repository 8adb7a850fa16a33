"""References of densities that rotations leave alone."""
