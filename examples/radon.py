"""Varying-intercept radon: 919 houses in 85 counties of Minnesota."""

from __future__ import annotations

from card import arguments, run
from models import radon

if __name__ == "__main__":
    run("radon", radon(), arguments(__doc__))
