"""PyMC's CategoricalGibbsMetropolis with proposal="proportional" (5.28.5, 6.4.0) divides by the wrong probability.

The ratio of Metropolised Gibbs is (1 - p_old) / (1 - p_new) with p the conditional probabilities. PyMC has set p_old to
zero and renormalised the others before it reads p_new. Of three categories the law that is left is (0.42, 0.34, 0.24),
and of two one state is never left.
"""

import numpy as np
import pymc as pm

for masses in ([0.5, 0.3, 0.2], [0.7, 0.3]):
    with pm.Model() as model:
        pm.Categorical("x", masses)
        step = pm.CategoricalGibbsMetropolis(model.free_RVs, proposal="proportional", rng=1)
    point, counts = {"x": np.array(0)}, np.zeros(len(masses))
    for _ in range(20_000):
        point, _ = step.step(point)
        counts[point["x"]] += 1
    print(f"PyMC {pm.__version__}: exact {masses}, sampled {np.round(counts / counts.sum(), 3)}")
