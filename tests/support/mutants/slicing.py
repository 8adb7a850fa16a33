"""Slice sampling of one coordinate at a time, stepping out and shrinking (Neal 2003), and what goes wrong in it."""

from __future__ import annotations

from numpy.random import default_rng

from tests.support.mutants.case import Case, Mutant, spread_of


def slice_step(target, defect=None):
    """Return a step that moves one coordinate, chosen at random; at most four widths are stepped out."""
    density, width = target.log_density, 2.0 * spread_of(target)
    centre = target.simulate(1000, default_rng(5)).mean(axis=0)

    def step(x, rng):
        i = rng.integers(target.dim)
        start = density(x)
        level = start - (rng.random() if defect == "level" else rng.standard_exponential())

        def is_inside(value):
            y = x.copy()
            y[i] = value
            return density(y) > level

        step_out = width[i]
        if defect == "width":
            step_out = 0.1 * width[i] + 0.5 * abs(x[i] - centre[i])
        low = x[i] - step_out * (0.0 if defect == "one-sided" else rng.random())
        high = low + step_out
        left = int(rng.integers(4))
        right = 3 - left
        if defect == "one-sided":
            left, right = 0, 3
        while left > 0 and is_inside(low):
            low, left = low - step_out, left - 1
        while right > 0 and is_inside(high):
            high, right = high + step_out, right - 1
        while True:
            value = low + (high - low) * rng.random()
            if is_inside(value):
                break
            if value < x[i]:
                low = value
            else:
                high = value
        y = x.copy()
        y[i] = value
        return y

    return step


def sliced(defect):
    """Return a builder of the kernel with this defect."""
    return lambda target, is_bad: Case(target, slice_step(target, defect if is_bad else None))


SMOOTH = ("log-gamma", "correlated normal", "curved")
MUTANTS = (
    Mutant("slice-level", "slice", "the level is drawn by a uniform number, not by its log", sliced("level"), SMOOTH,
           "law", "slices are too high: the chain climbs"),
    Mutant("slice-one-sided", "slice", "the interval begins at the state", sliced("one-sided"), SMOOTH, "law",
           "a step to the right cannot be undone"),
    Mutant("slice-width", "slice", "the width of the interval depends on the state",
           sliced("width"), ("log-gamma", "mixture", "curved"), "law",
           "wide steps lead back from where narrow ones do not lead"),
)  # fmt: skip
