"""The phases of a check."""
