"""Reports: the arrays of a check as ArviZ's data container."""
