"""The reference models themselves."""
