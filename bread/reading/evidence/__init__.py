"""Log evidences and their tables."""
