"""Varying-intercept radon: 919 houses in 85 counties of Minnesota, at given numbers of temperatures.

A run with all defaults (growing T to the target, 20 simulations) costs several times as much.
"""

from __future__ import annotations

from card import arguments, run
from models import radon

if __name__ == "__main__":
    run("radon", radon(), arguments(__doc__), n_temperatures=[64, 256, 512], simulations=10)
