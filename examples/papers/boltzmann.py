"""Restricted Boltzmann machines, annealed as the full model and as the marginal model of the hidden units.

log f(v, h) = a v + b h + v W h over units of 0 and 1; the full model is raised to beta as a whole, the marginal one
after the sum over visible units. The paths begin at uniform states, at beta = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numba
import numpy as np
from scipy.ndimage import zoom
from scipy.special import expit, logsumexp
from sklearn.datasets import load_digits

MOST_LISTED = 16  # hidden units of a machine whose states are listed
CHUNK = 4  # factors between two logarithms: each is below exp(170)


@dataclass(frozen=True)
class Machine:
    """A machine: biases ``a`` of visible and ``b`` of hidden units, couplings ``w`` (visible, hidden)."""

    a: np.ndarray
    b: np.ndarray
    w: np.ndarray

    def marginal(self, h):
        """Return the log of the sum of f over the visible units, of each row of hidden units."""
        return h @ self.b + np.logaddexp(0.0, self.a + h @ self.w.T).sum(axis=1)

    def states(self):
        """Return every state of the hidden units; of a small machine."""
        n = len(self.b)
        if n > MOST_LISTED:
            raise ValueError(f"States of at most {MOST_LISTED} hidden units are listed; this machine has {n}.")
        return ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(float)

    def exact_log_z(self):
        """Return log Z at beta = 1 by a sum over the states of the hidden units, nats."""
        return float(logsumexp(self.marginal(self.states())))

    def exact_hidden(self, rng, n):
        """Draw hidden units from their marginal law, exactly."""
        log_f = self.marginal(self.states())
        return self.states()[rng.choice(len(log_f), n, p=np.exp(log_f - logsumexp(log_f)))]

    def hidden(self, rng, v, beta=1.0):
        """Draw hidden units given visible ones."""
        return _bernoulli(rng, beta * (self.b + v @ self.w))

    def visible(self, rng, h, beta=1.0):
        """Draw visible units given hidden ones."""
        return _bernoulli(rng, beta * (self.a + h @ self.w.T))


def random_machine(rng, n_visible, n_hidden):
    """Return a machine of random biases and couplings."""
    return Machine(
        rng.normal(0.0, 0.5, n_visible), rng.normal(0.0, 0.5, n_hidden), rng.normal(0.0, 0.8, (n_visible, n_hidden))
    )


def digits(side):
    """Return scikit-learn's 1797 handwritten digits (8 x 8) as black and white images of side x side pixels."""
    images = load_digits().images / 16.0
    return (zoom(images, (1, side / 8, side / 8), order=1) > 0.5).reshape(len(images), -1).astype(float)


def trained(images, n_hidden, rng, *, n_epochs, n_steps=25, rate=0.05, size=100):
    """Return a machine trained on images by contrastive divergence, ``n_steps`` Gibbs sweeps an update (Hinton)."""
    share = np.clip(images.mean(axis=0), 0.01, 0.99)
    machine = Machine(np.log(share / (1 - share)), np.zeros(n_hidden), rng.normal(0.0, 0.01, (len(share), n_hidden)))
    for _ in range(n_epochs):
        for batch in np.array_split(rng.permutation(len(images)), len(images) // size):
            v = seen = images[batch]
            for _ in range(n_steps):
                v = machine.visible(rng, machine.hidden(rng, v))
            up, down = expit(machine.b + seen @ machine.w), expit(machine.b + v @ machine.w)
            machine = Machine(
                machine.a + rate * (seen - v).mean(axis=0),
                machine.b + rate * (up - down).mean(axis=0),
                machine.w + rate * (seen.T @ up - v.T @ down) / len(batch),
            )
    return machine


def anneal_full(machine, rng, betas, n_updates, n, start):
    """Return log weights of the full model; reverse chains, from ``start`` (n, hidden), take the two steps in turn.

    At each inverse temperature ``n_updates`` Gibbs sweeps: hidden, then visible units, and the other way in reverse.
    """
    a, b, w = machine.a, machine.b, machine.w
    constant = (len(a) + len(b)) * np.log(2)
    v, h = (rng.integers(0, 2, (n, size)).astype(float) for size in (len(a), len(b)))
    forward, reverse = np.zeros(n), np.zeros(n)
    to_hidden = b + v @ w  # of the present v
    for low, high in pairwise(betas):
        forward += (high - low) * (v @ a + (h * to_hidden).sum(axis=1))
        for _ in range(n_updates):
            h = _bernoulli(rng, high * to_hidden)
            v = machine.visible(rng, h, high)
            to_hidden = b + v @ w
    h = start
    v = machine.visible(rng, h)
    for low, high in zip(betas[-2::-1], betas[:0:-1], strict=True):
        for _ in range(n_updates):
            v = machine.visible(rng, h, high)
            to_hidden = b + v @ w
            h = _bernoulli(rng, high * to_hidden)
        reverse += (high - low) * (v @ a + (h * to_hidden).sum(axis=1))
    return forward + constant, reverse + constant


def anneal_marginal(machine, rng, betas, n_updates, n, start):
    """Return log weights of the marginal model: ``n_updates`` Metropolis flips of random hidden units a temperature."""
    constant = len(machine.b) * np.log(2)  # log Z at beta = 0, where the marginal model is uniform over hidden states
    rising, falling = np.exp(machine.w.T), np.exp(-machine.w.T)  # (hidden, visible)
    first = rng.integers(0, 2, (n, len(machine.b))).astype(float)
    return tuple(
        np.array(
            [
                _flips(machine.a, machine.b, machine.w, rising, falling, betas, n_updates, h.copy(), rng, is_reverse)
                for h in states
            ]
        )
        + constant
        for states, is_reverse in ((first, False), (start, True))
    )


def reverse_start(machine, rng, images, n, n_steps=100):
    """Return hidden units that begin reverse chains, as in the paper: Gibbs sweeps at beta = 1 from random images."""
    h = machine.hidden(rng, images[rng.integers(0, len(images), n)])
    for _ in range(n_steps):
        h = machine.hidden(rng, machine.visible(rng, h))
    return h


def _bernoulli(rng, logits):
    return (rng.random(logits.shape) < expit(logits)).astype(float)


@numba.njit(cache=True, fastmath=True)
def _log_product(odds, factor):
    """Return the sum of log(1 + odds * factor), a logarithm for every few factors."""
    total = 0.0
    for low in range(0, len(odds), CHUNK):
        product = 1.0
        for i in range(low, min(low + CHUNK, len(odds))):
            product *= 1.0 + odds[i] * factor[i]
        total += np.log(product)
    return total


@numba.njit(cache=True)
def _flips(a, b, w, rising, falling, betas, n_updates, h, rng, is_reverse):
    """Return the log weight of one chain of hidden units. Odds of visible units are carried along, and made anew."""
    same = np.ones(len(a))
    log_weight, last = 0.0, len(betas) - 1
    for step in range(last):
        k = last - step if is_reverse else step + 1
        odds = np.exp(a + w @ h)
        value = np.dot(b, h) + _log_product(odds, same)
        if not is_reverse:
            log_weight += (betas[k] - betas[k - 1]) * value
        for _ in range(n_updates):
            j = int(rng.random() * len(b))
            factor, sign = (falling[j], -1.0) if h[j] > 0.5 else (rising[j], 1.0)
            proposed = np.dot(b, h) + sign * b[j] + _log_product(odds, factor)
            if np.log(rng.random()) < betas[k] * (proposed - value):
                h[j] += sign
                odds *= factor
                value = proposed
        if is_reverse:
            log_weight += (betas[k] - betas[k - 1]) * value
    return log_weight
