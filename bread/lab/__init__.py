"""Methods of other papers, beside BREAD: ``import bread.lab`` loads them.

`unbiased` and `plot_unbiased` : coupled chains that meet, and means without bias (Jacob et al. 2020).
`path_sampling` : log evidence by thermodynamic integration, with limits.
`data_annealing` and `particles` : bounds by adding the data one block after another, with particle filters.
"""

from bread.lab import particles
from bread.reading.plots.unbiased_plot import plot_unbiased
from bread.verbs.data_annealing import data_annealing
from bread.verbs.path_sampling import path_sampling
from bread.verbs.unbiased import unbiased

__all__ = ["data_annealing", "particles", "path_sampling", "plot_unbiased", "unbiased"]
