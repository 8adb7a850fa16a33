"""Couplings of normal proposals: two draws, each with its own law, that are one point as often as can be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def reflection_maximal(
    difference: FloatArray, noise: FloatArray, uniform: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the noise of the second of two standard normal proposals, and whether both propose one point.

    The first proposes x + noise, the second y + other. They are one point with the largest probability that the two
    laws allow; elsewhere the second's noise is the first's, reflected at the plane midway between x and y, which
    brings distant chains together.

    Parameters
    ----------
    difference : ndarray, shape (n, d)
        x - y, in units of the proposal's standard deviation.
    noise : ndarray, shape (n, d)
        Standard normal.
    uniform : ndarray, shape (n,)
        Uniform on (0, 1), independent of ``noise``.

    Returns
    -------
    other : ndarray, shape (n, d)
        Standard normal too: given nothing but x and y.
    is_one : ndarray of bool, shape (n,)
        Whether x + noise and y + other are one point (up to rounding: copy the one to the other).

    References
    ----------
    Jacob, O'Leary & Atchade (2020), "Unbiased Markov chain Monte Carlo methods with couplings", JRSS B 82, 543-600,
    section 4.1; Bou-Rabee, Eberle & Zimmer (2020), "Coupling and convergence for Hamiltonian Monte Carlo", Annals of
    Applied Probability 30, 1209-1250.
    """
    length = np.sqrt(np.sum(difference**2, axis=1))
    unit = difference / np.where(length > 0.0, length, 1.0)[:, None]
    along = np.sum(unit * noise, axis=1)
    # log phi(noise + difference) - log phi(noise); the parts across the difference cancel
    is_one = np.log(uniform) < -0.5 * length * (2.0 * along + length)
    reflected = noise - 2.0 * along[:, None] * unit
    return np.where(is_one[:, None], noise + difference, reflected), is_one


def steps_apart(difference: FloatArray, spread: FloatArray) -> FloatArray:
    """Return ``difference`` in units of the proposal's ``spread``, shape (d,); 0 at coordinates that are held."""
    return np.asarray(np.divide(difference, spread, out=np.zeros(difference.shape), where=spread > 0.0))
