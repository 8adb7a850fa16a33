"""Metropolis kernels, random walks above all, and what goes wrong in them."""

from __future__ import annotations

import numpy as np

from tests.support.mutants.case import Case, Mutant, spread_of


def accepts(ratio, rng):
    """Metropolis' test; a ratio that is not a number is a rejection."""
    return np.log(rng.random()) < ratio


def random_walk(target, *, scale=1.0, propose=None, accept=accepts, log_density=None):
    """All coordinates at once; ``propose(x, rng)`` returns a state and the log of its correction."""
    density = log_density or target.log_density
    spread = scale * spread_of(target)

    def normal(x, rng):
        return x + spread * rng.standard_normal(len(x)), 0.0

    draw = propose or normal

    def step(x, rng):
        y, correction = draw(x, rng)
        return y if accept(float(density(y)) - float(density(x)) + correction, rng) else x

    return step


def blockwise(target, *, is_bad=None, scale=1.5):
    """One coordinate at a time, in random order of choice; ``is_bad`` names the defect."""
    density, spread = target.log_density, scale * spread_of(target)

    def step(x, rng):
        for _ in range(2):
            i = rng.integers(target.dim)
            y = x.copy()
            y[i] += spread[i] * rng.standard_normal()
            ratio = float(density(y)) - float(density(x))
            if is_bad == "inverted" and i == 1:
                ratio = -ratio
            if accepts(ratio, rng):
                if is_bad == "unused" and i == 1:
                    continue
                x = y
        return x

    return step


def ratio_inverted(target, is_bad):
    return Case(target, blockwise(target, is_bad="inverted" if is_bad else None))


def proposal_unused(target, is_bad):
    return Case(target, blockwise(target, is_bad="unused" if is_bad else None))


def asymmetric_proposal(target, is_bad):
    """x times a log-normal factor, on each coordinate's distance from its lower end: the factor is the correction."""
    lower = np.array(target.lower)

    def propose(x, rng):
        noise = 0.5 * rng.standard_normal(target.dim)
        return lower + (x - lower) * np.exp(noise), 0.0 if is_bad else noise.sum()

    return Case(target, random_walk(target, propose=propose))


def state_dependent_scale(target, is_bad):
    """Steps grow with the distance from the centre; the correction is the ratio of the two normal densities."""
    centre, spread = np.median(target.simulate(4000, np.random.default_rng(1)), axis=0), spread_of(target)

    def width(x):
        return 0.3 + np.abs((x - centre) / spread).max()

    def propose(x, rng):
        noise = rng.standard_normal(target.dim)
        y = x + width(x) * spread * noise
        if is_bad:
            return y, 0.0
        back, size = width(x) / width(y), float(noise @ noise)
        return y, target.dim * np.log(back) - 0.5 * size * (back**2 - 1.0)

    return Case(target, random_walk(target, propose=propose))


def redraw_at_walls(target, is_bad):
    """A proposal beyond a wall is drawn again, in place of rejected: states near a wall are proposed too often."""
    spread, density = spread_of(target), target.log_density

    def propose(x, rng):
        y = x + spread * rng.standard_normal(target.dim)
        while is_bad and density(y) == -np.inf:
            y = x + spread * rng.standard_normal(target.dim)
        return y, 0.0

    return Case(target, random_walk(target, propose=propose))


def clip_at_walls(target, is_bad):
    """A proposal beyond a wall is put just inside of it."""
    spread, low, high = spread_of(target), np.array(target.lower) + 1e-9, np.array(target.upper) - 1e-9

    def propose(x, rng):
        y = x + spread * rng.standard_normal(target.dim)
        return np.clip(y, low, high) if is_bad else y, 0.0

    return Case(target, random_walk(target, propose=propose))


def nan_accepted(target, is_bad):
    """The density is not a number beyond the walls, and the test is written as "unless it is larger"."""

    def with_nan(x):
        value = target.log_density(x)
        return np.nan if value == -np.inf else value

    def accept(ratio, rng):
        log_uniform = np.log(rng.random())
        return not log_uniform >= ratio if is_bad else log_uniform < ratio

    return Case(target, random_walk(target, log_density=with_nan, accept=accept))


def infinite_accepted(target, is_bad):
    """What is not finite counts as a ratio of one."""

    def accept(ratio, rng):
        return accepts(0.0 if is_bad and not np.isfinite(ratio) else ratio, rng)

    return Case(target, random_walk(target, scale=0.5, accept=accept))


def always_accepted(target, is_bad):
    return Case(target, random_walk(target, accept=(lambda ratio, rng: True) if is_bad else accepts))


def half_ratio(target, is_bad):
    """The square root of the ratio, as where a factor 1/2 is taken twice."""
    return Case(target, random_walk(target, accept=lambda ratio, rng: accepts(0.5 * ratio if is_bad else ratio, rng)))


def uniform_in_place_of_its_log(target, is_bad):
    """The uniform number is compared with the log ratio: uphill moves of less than a nat are often refused."""

    def accept(ratio, rng):
        u = rng.random()
        return (u if is_bad else np.log(u)) < ratio

    return Case(target, random_walk(target, accept=accept))


class Carrying:
    """A random walk that keeps the log density of its state from one step to the next."""

    def __init__(self, target, is_bad, scale=1.0):
        self._density, self._spread, self._is_bad = target.log_density, scale * spread_of(target), is_bad

    def start(self, position, rng):
        return np.array(position), self._density(position)

    def position(self, carry):
        return carry[0]

    def log_density(self, carry):
        return carry[1]

    def step(self, carry, rng):
        x, value = carry
        y = x + self._spread * rng.standard_normal(len(x))
        new = self._density(y)
        if not accepts(float(new) - float(value), rng):
            return carry
        return y, value if self._is_bad else new


def density_kept(target, is_bad):
    return Case(target, Carrying(target, is_bad))


def reflected_step(target, is_bad):
    """A step of one up or down; at an end of the support there is one way only, which needs a correction."""
    low, high, density = target.lower, target.upper, target.log_density

    def step(x, rng):
        i = rng.integers(target.dim)
        y = x.copy()
        ways = 2.0 if low[i] < x[i] < high[i] else 1.0
        y[i] += 1.0 if x[i] == low[i] or (ways == 2.0 and rng.random() < 0.5) else -1.0
        ways_back = 2.0 if low[i] < y[i] < high[i] else 1.0
        correction = 0.0 if is_bad else np.log(ways / ways_back)
        return y if accepts(float(density(y)) - float(density(x)) + correction, rng) else x

    return Case(target, step)


def bounds_of_the_wrong_vector(target, is_bad):
    """Proposals are refused outside of the bounds: those of the first coordinate, for all."""
    low, high, density = np.array(target.lower), np.array(target.upper), target.log_density
    spread = spread_of(target)

    def step(x, rng):
        i = rng.integers(target.dim)
        j = 0 if is_bad else i
        y = x.copy()
        y[i] += spread[i] * rng.standard_normal()
        if not low[j] < y[i] < high[j]:
            return x
        return y if accepts(float(density(y)) - float(density(x)), rng) else x

    return Case(target, step)


def order_not_reversed(target, is_bad):
    """A sweep that is to be reversible goes there and back; without the way back it is invariant only."""
    density, spread = target.log_density, 2.0 * spread_of(target)
    order = list(range(target.dim))
    sweep = order if is_bad else order + order[::-1]

    def step(x, rng):
        for i in sweep:
            y = x.copy()
            y[i] += spread[i] * rng.standard_normal()
            if accepts(float(density(y)) - float(density(x)), rng):
                x = y
        return x

    return Case(target, step)


def shared_seed(target, is_bad):
    """Each chain makes its random numbers from the same seed of its own, not from what it is given."""

    class Seeded:
        def __init__(self):
            self._step = random_walk(target)

        def start(self, position, rng):
            return np.array(position), np.random.default_rng(7) if is_bad else None

        def position(self, carry):
            return carry[0]

        def step(self, carry, rng):
            x, own = carry
            return self._step(x, own or rng), own

    return Case(target, Seeded())


def one_stream_for_both(target, is_bad):
    """Proposal and acceptance share a uniform number, as two streams of the same seed would."""
    width, density = 3.0 * spread_of(target), target.log_density

    def step(x, rng):
        u = rng.random(target.dim)
        y = x + width * (u - 0.5)
        return y if np.log(u[0] if is_bad else rng.random()) < float(density(y)) - float(density(x)) else x

    return Case(target, step)


def sign_flip(target, is_bad):
    """A move to -x that is never refused: right where the target is symmetric around 0."""
    walk = random_walk(target)

    def step(x, rng):
        if rng.random() < 0.2:
            return -x if is_bad or accepts(target.log_density(-x) - target.log_density(x), rng) else x
        return walk(x, rng)

    return Case(target, step)


BOUNDED, SMOOTH = ("bounded",), ("log-gamma", "curved", "correlated normal")
MUTANTS = (
    Mutant("ratio-inverted", "metropolis", "the ratio of one block is inverted", ratio_inverted, SMOOTH, "law",
           "the block drifts to where the density is small"),
    Mutant("proposal-unused", "metropolis", "a proposal of one block is accepted, counted and not used",
           proposal_unused, SMOOTH, "motion", "the identity leaves all distributions alone; the coordinate stays"),
    Mutant("asymmetric-proposal", "metropolis", "a multiplicative proposal without its correction",
           asymmetric_proposal, BOUNDED, "law", "large values are proposed too seldom in return"),
    Mutant("state-dependent-scale", "metropolis", "the width of the proposal depends on the state, uncorrected",
           state_dependent_scale, ("log-gamma", "correlated normal", "funnel"), "law",
           "wide states are left more easily than they are found"),
    Mutant("redraw-at-walls", "metropolis", "proposals beyond a wall are drawn again", redraw_at_walls,
           ("bounded", "simplex"), "law", "states near a wall are left too often; invisible without mass there"),
    Mutant("clip-at-walls", "metropolis", "proposals beyond a wall are moved to it", clip_at_walls, BOUNDED, "law",
           "an atom grows at the wall"),
    Mutant("nan-accepted", "metropolis", "a density that is not a number is accepted", nan_accepted,
           ("bounded", "simplex"), "law", "the chain leaves the support for good"),
    Mutant("infinite-accepted", "metropolis", "a density of -inf is accepted", infinite_accepted,
           ("bounded", "simplex"), "law", "the chain leaves the support"),
    Mutant("always-accepted", "metropolis", "every proposal is accepted", always_accepted, SMOOTH, "law",
           "a random walk has no law"),
    Mutant("half-ratio", "metropolis", "the log ratio is halved", half_ratio, SMOOTH, "law",
           "the law of the square root of the density is left invariant"),
    Mutant("uniform-not-logged", "metropolis", "u is compared with the log ratio", uniform_in_place_of_its_log, SMOOTH,
           "law", "downhill moves are never accepted"),
    Mutant("density-kept", "metropolis", "the log density kept is not renewed after acceptance", density_kept, SMOOTH,
           "law", "every ratio is against the start; the cache is wrong too"),
    Mutant("reflected-step", "metropolis", "one way only at the ends of the support, uncorrected", reflected_step,
           ("offset",), "law", "the ends get too little mass; with two values nothing is wrong"),
    Mutant("one-stream", "randomness", "proposal and acceptance share their random numbers", one_stream_for_both,
           SMOOTH, "law", "whether a step is accepted depends on its direction"),
    Mutant("shared-seed", "randomness", "every chain has the same seed of its own", shared_seed, SMOOTH, "streams",
           "each chain alone is right; two chains move by the same amounts"),
    Mutant("order-not-reversed", "compound", "a sweep there without the way back", order_not_reversed,
           ("correlated normal", "curved"), "reversibility", "each part is reversible, their product is not"),
    Mutant("wrong-bounds", "compound", "the bounds of the first coordinate are used for all",
           bounds_of_the_wrong_vector, BOUNDED, "law", "coordinates enter the first one's bounds and do not leave"),
    Mutant("sign-flip", "tests", "a move to -x without a test: seen on no symmetric target", sign_flip,
           ("correlated normal", "log-gamma"), "law", "invariant where the target is symmetric around zero"),
)  # fmt: skip
