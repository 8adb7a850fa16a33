"""The whole analysis of a program, from text to simulator."""
