"""What users call: one module a verb."""
