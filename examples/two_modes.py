"""Why bread exists: a posterior whose heavy mode no chain finds, while R-hat is content.

A narrow mode with nine tenths of the mass beside a wide one: all chains of pm.sample sit in the wide mode and agree.
B stays large. With two symmetric modes annealing works, and ``posterior=`` shows that pm.sample's draws differ.
"""

from __future__ import annotations

import arviz as az
import pymc as pm
from card import arguments, run
from models import narrow_and_wide, two_symmetric_modes

if __name__ == "__main__":
    options = arguments(__doc__)
    model = narrow_and_wide()
    draws = pm.sample(model=model, chains=4, random_seed=options.seed, progressbar=False)
    print(az.summary(draws).to_string())
    settings = {"simulate_from": "prior", "path": "prior"}
    run("narrow heavy mode", model, options, **settings, kernel="hmc", max_temperatures=256)
    model = two_symmetric_modes()
    draws = pm.sample(model=model, random_seed=options.seed, chains=1, progressbar=False)
    run("two symmetric modes", model, options, **settings, posterior=draws)
