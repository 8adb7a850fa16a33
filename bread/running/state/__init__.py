"""What a check is asked and what it has found."""
