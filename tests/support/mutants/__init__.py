"""Planted bugs: small, realistic defects, each beside the same code without it.

`MUTANTS` has them all by name. Those of the family "tempering" build a reference model, whose kernel the
battery moves and anneals; the others a `Case` of a target and a kernel.
"""

from tests.support.mutants import (
    adaptation,
    densities,
    ensembles,
    gibbs,
    hmc,
    metropolis,
    nuts,
    particles,
    replicas,
    simulators,
    slicing,
    tempering,
)
from tests.support.mutants.case import Case, Mutant

MODULES = (
    simulators, densities, tempering, metropolis, gibbs, slicing, hmc, nuts, ensembles, replicas, particles,
    adaptation,
)  # fmt: skip
MUTANTS: dict[str, Mutant] = {mutant.name: mutant for module in MODULES for mutant in module.MUTANTS}

__all__ = ["MUTANTS", "Case", "Mutant"]
