"""Paths of annealing: kinds of path, schedules, and the references that a path may have as its base."""
