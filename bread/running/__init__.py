"""What a check runs, in which order and where."""
