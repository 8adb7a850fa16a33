"""Whether two samples agree."""
