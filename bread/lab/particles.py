"""Particle filters over the observations of one data set: the parts of `bread.lab.data_annealing`, on their own.

`bread.lab.data_annealing` simulates data sets, tests the exact draws behind them and reports limits of the log
evidence. With these parts the same filters run on data, a draw and kernels of your own, as in
`examples/papers/bdmc_testbed.py`.
"""

from bread.running.particles.block_kernels import block_ends, tuned_targets
from bread.running.particles.particles import Estimates, Filter, Targets, conditional, forward, harmonic

__all__ = ["Estimates", "Filter", "Targets", "block_ends", "conditional", "forward", "harmonic", "tuned_targets"]
