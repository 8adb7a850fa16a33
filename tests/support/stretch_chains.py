"""Many ensembles at once under the stretch move, as a sample of the battery: right, or one half against itself."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from bread.debugging.sample import N_FRESH, N_SPACED
from bread.debugging.subject import Draws


def moved(target, walkers, n_steps, rng, is_bad):
    """Return ensembles after every tenth part of ``n_steps`` steps, shape (n, 10, n_walkers * d).

    As in `tests.support.mutants.ensembles`: one half, chosen at random, moves along lines through the other, or the
    second half along lines through itself.
    """
    x = walkers.copy()
    n, n_walkers, d = x.shape
    half = n_walkers // 2
    rows, kept = np.arange(n)[:, None], []
    for step in range(n_steps):
        first = rng.random(n)[:, None] < 0.5
        mine = np.where(first, np.arange(half), np.arange(half, n_walkers))
        others = np.where(first, np.arange(half, n_walkers), np.arange(half))
        partner = others[rows, rng.integers(half, size=(n, half))]
        if is_bad:
            partner = np.where(first, partner, mine[:, ::-1])
        own, through = x[rows, mine], x[rows, partner]
        z = 0.5 * (1.0 + rng.random((n, half))) ** 2
        proposal = through + z[..., None] * (own - through)
        ratio = (d - 1) * np.log(z) + target.log_density(proposal) - target.log_density(own)
        x[rows, mine] = np.where((np.log(rng.random((n, half))) < ratio)[..., None], proposal, own)
        if (step + 1) % (n_steps // N_SPACED) == 0:
            kept.append(x.reshape(n, -1).copy())
    return np.stack(kept, axis=1)


def sample_of(target, *, is_bad, n, seed, n_walkers=4, n_steps=100):
    """Return what `bread.debugging.ensemble_tests.run_pairs_of_walkers` reads of a sample."""
    rng = np.random.default_rng(seed)

    def draws(size):
        return target.simulate(size * n_walkers, rng).reshape(size, n_walkers, target.dim)

    start = draws(n)
    density = np.zeros((n, 1))
    first, second = (moved(target, start, n_steps, rng, is_bad) for _ in range(2))
    columns = np.zeros((n, N_SPACED, 1))
    return SimpleNamespace(
        subject=SimpleNamespace(n_walkers=n_walkers),
        pilot=Draws(draws(400).reshape(400, -1)),
        table=np.concatenate([start.reshape(n, -1), density], axis=1),
        first=np.concatenate([first, columns], axis=2),
        second=np.concatenate([second, columns], axis=2),
        fresh=np.concatenate([draws(n * N_FRESH).reshape(n, N_FRESH, -1), np.zeros((n, N_FRESH, 1))], axis=2),
        spaced=np.arange(N_SPACED),
        keep=tuple(n_steps // N_SPACED * (k + 1) for k in range(N_SPACED)),
        sound_rows=lambda: np.ones(n, dtype=bool),
    )
