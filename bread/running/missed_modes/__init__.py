"""Looking for modes that no draw is in."""
