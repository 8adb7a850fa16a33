"""Conjugate models in NumPy with exact answers: the oracle of the core and of the backends.

A model is a frozen dataclass of its real data, the constants of its prior and its kernel; it satisfies the contract as
it is, so that ``bread.check(NormalMean(y))`` works. Beyond the contract it offers ``log_evidence``,
``draw_posterior``, ``condition_rows`` (many data sets in one call) and, for linear Gaussian models with the exact
autoregression, `expected_work`.
"""

from tests.models.reference.hmc import HMCKernel
from tests.models.reference.kernels import (
    AutoregressiveKernel,
    CompoundKernel,
    GibbsLabelKernel,
    IndependenceKernel,
    ReferenceKernel,
)
from tests.models.reference.localised import LocalisedModel
from tests.models.reference.model import ReferenceModel
from tests.models.reference.models.beta_binomial import BetaBinomial
from tests.models.reference.models.closed_form import ExpectedWork, expected_work
from tests.models.reference.models.faulty import FaultyNormalMean
from tests.models.reference.models.gaussian import LinearGaussianModel
from tests.models.reference.models.gaussian_models import HierarchicalNormal, LinearRegression, NormalMean
from tests.models.reference.models.mixtures import LabelMixture, MarginalMixture
from tests.models.reference.models.scale import NormalScale
from tests.models.reference.models.truncated import AbsoluteMean, UniformLocation
from tests.models.reference.posterior import ReferencePosterior

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
