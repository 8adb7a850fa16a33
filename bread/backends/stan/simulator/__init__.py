"""The simulator that is derived from a program."""
