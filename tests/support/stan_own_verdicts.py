"""What becomes of a program made by rule: refused, and by what; or simulated, rightly or not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import default_rng
from scipy import stats

from tests.support.stan_corpus_table import analyse_text
from tests.support.stan_interpreter import Interpreter, RejectedError
from tests.support.stan_mutants import drawn as read_draw
from tests.support.stan_mutants import interpreter, is_constant
from tests.support.stan_own_outcomes import Case

LEVEL = 1e-6  # of each rank test: one of a thousand right programs is called wrong with a chance of 1e-3
MOST_TIMES = 20  # of draws that are rejected


@dataclass(frozen=True)
class Verdict:
    """The end of one program.

    Attributes
    ----------
    end : str
        "refused by the analysis", "refused by the simulator" (it finds a draw that is not its density's), "refused by
        the comparison" (with the program's density), "no draws", "not interpreted", or "simulated".
    why : str
    p_value : float
        That ranks of theta in its own posterior are uniform; 1 unless it is simulated.
    n_redrawn : int
    """

    end: str
    why: str = ""
    p_value: float = 1.0
    n_redrawn: int = 0

    @property
    def is_wrong(self) -> bool:
        """Whether a wrong simulator was accepted."""
        return self.p_value < LEVEL


def verdict(case: Case, n: int) -> Verdict:
    """Return what becomes of a program, by the ranks of ``n`` joint draws if it is simulated.

    Nothing is compiled: an interpreter runs the simulator, and the program with densities by SciPy.
    """
    program = analyse_text(case.text, observed=list(case.observed))
    refusal = program.split_refusal or program.simulator_refusal
    if refusal is not None:
        return Verdict("refused by the analysis", str(refusal))
    try:
        return _simulated(case, program, interpreter(program, case.data), n)
    except NotImplementedError as error:
        return Verdict("not interpreted", str(error))


def _simulated(case: Case, program, run: Interpreter, n: int) -> Verdict:
    rng = default_rng(20161129)
    draws, densities, n_redrawn = [], [], 0
    while len(draws) < n:
        try:
            draw = read_draw(program, run.simulate(rng))
            log_prior, log_likelihood = run.log_density(draw.values)
        except (RejectedError, ValueError, IndexError) as error:
            if "bread:" in str(error):
                return Verdict("refused by the simulator", str(error))
            n_redrawn += 1
            if n_redrawn > MOST_TIMES * n:
                return Verdict("no draws", str(error))
            continue
        if not np.isfinite(log_likelihood):
            return Verdict("refused by the comparison", "density zero")
        draws.append(draw)
        densities.append((log_prior, log_likelihood))
    differences = np.array(densities) - np.array([draw.own for draw in draws])
    if not is_constant(differences, draws):
        return Verdict("refused by the comparison", f"{differences[:3].tolist()}")
    data = [case.data | {name: draw.values[name] for name in program.observed} for draw in draws]
    ranks = [case.rank(draw.values["theta"], one) for draw, one in zip(draws, data, strict=True)]
    return Verdict("simulated", p_value=float(stats.kstest(ranks, "uniform").pvalue), n_redrawn=n_redrawn)
