"""References fitted to one data set by optimisation or a pilot."""
