"""NumPy reference backend: conjugate models with exact answers, the oracle of the core and of other backends.

A model is a frozen dataclass of its real data, the constants of its prior and its kernel; it satisfies the contract as
it is, so that ``bread.check(NormalMean(y))`` works. Beyond the contract it offers ``log_evidence``,
``draw_posterior``, ``condition_rows`` (many data sets in one call) and, for linear Gaussian models with the exact
autoregression, `expected_work`.
"""

from bread.backends.reference.hmc import HMCKernel
from bread.backends.reference.kernels import (
    AutoregressiveKernel,
    CompoundKernel,
    GibbsLabelKernel,
    IndependenceKernel,
    ReferenceKernel,
)
from bread.backends.reference.localised import LocalisedModel
from bread.backends.reference.model import ReferenceModel
from bread.backends.reference.models.beta_binomial import BetaBinomial
from bread.backends.reference.models.closed_form import ExpectedWork, expected_work
from bread.backends.reference.models.faulty import FaultyNormalMean
from bread.backends.reference.models.gaussian import LinearGaussianModel
from bread.backends.reference.models.gaussian_models import HierarchicalNormal, LinearRegression, NormalMean
from bread.backends.reference.models.mixtures import LabelMixture, MarginalMixture
from bread.backends.reference.models.scale import NormalScale
from bread.backends.reference.models.truncated import AbsoluteMean, UniformLocation
from bread.backends.reference.posterior import ReferencePosterior

__all__ = [
    "AbsoluteMean",
    "AutoregressiveKernel",
    "BetaBinomial",
    "CompoundKernel",
    "ExpectedWork",
    "FaultyNormalMean",
    "GibbsLabelKernel",
    "HMCKernel",
    "HierarchicalNormal",
    "IndependenceKernel",
    "LabelMixture",
    "LinearGaussianModel",
    "LinearRegression",
    "LocalisedModel",
    "MarginalMixture",
    "NormalMean",
    "NormalScale",
    "ReferenceKernel",
    "ReferenceModel",
    "ReferencePosterior",
    "UniformLocation",
    "expected_work",
]
