"""Expected log weights of the exact Gaussian autoregression in closed form: E[B] without sampling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bread.backends.base import Data, FloatArray
from bread.errors import UnsupportedKernelError
from tests.models.reference.kernels import AutoregressiveKernel
from tests.models.reference.models.gaussian import LinearGaussianModel


@dataclass(frozen=True)
class ExpectedWork:
    """Expected log weights of one forward and one reverse chain, and their difference, in nats.

    Attributes
    ----------
    forward, reverse : float
        E[log_w]; the log evidence (or its mean over data sets) lies between.
    bound : float
        B = reverse - forward, the bound of the Jeffreys divergence.
    jeffreys : float
        KL(q||p) + KL(p||q) of the law q of the last forward state, at most ``bound``. NaN when averaged over
        data sets.
    """

    forward: float
    reverse: float
    bound: float
    jeffreys: float


def expected_work(model: LinearGaussianModel, betas: FloatArray, data: Data | None = None) -> ExpectedWork:
    """Return the expected log weights of annealing with `AutoregressiveKernel`, in closed form.

    All densities of the chain are Gaussian. Its mean is affine in b = H' D^-1 y, m = F b + g, and moves as
    m <- mu_beta + rho (m - mu_beta); its covariance V moves as V <- rho^2 V + (1 - rho^2) C_beta. The expected
    log ratio is that of a quadratic, c + b' m - (m' A m + tr(A V)) / 2, whose expectation over data needs the
    first two moments of b and the first one of c.

    Parameters
    ----------
    model : LinearGaussianModel
        Its kernel must be an `AutoregressiveKernel`.
    betas : ndarray, shape (T,)
        Inverse temperatures from 0 to 1.
    data : mapping, optional
        One data set; None averages over data sets of the model.

    Returns
    -------
    ExpectedWork
        ``bound`` is what the mean gap of many simulations converges to.

    Raises
    ------
    UnsupportedKernelError
        The model has another kernel.

    References
    ----------
    Grosse, Ancha & Roy (2016), equations 8, 11 and 12; Habeck (2017), section 4.
    """
    kernel = model.kernel
    if not isinstance(kernel, AutoregressiveKernel):
        raise UnsupportedKernelError(
            f"expected_work has a closed form for AutoregressiveKernel alone; {type(model).__name__} has {kernel!r}."
        )
    betas = np.asarray(betas, dtype=float)
    moments = _DataMoments.of(model, data)
    steps = np.diff(betas)
    last = len(betas) - 1

    chain = _Chain(model, kernel.rho, model.prior_location, model.prior_covariance)
    forward = 0.0
    for t in range(last):
        forward += float(steps[t]) * chain.expected_ratio(moments)
        chain.move(float(betas[t + 1]))
    end_mean, end_covariance = chain.slope @ moments.mean + chain.offset, chain.covariance

    chain = _Chain(model, 0.0, model.prior_location, model.prior_covariance)
    chain.move(1.0)  # an independent draw at beta = 1: the exact posterior
    exact_mean, exact_covariance = chain.slope @ moments.mean + chain.offset, chain.covariance
    chain.rho = kernel.rho
    reverse = 0.0
    for t in range(last - 1, -1, -1):
        chain.move(float(betas[t + 1]))
        reverse += float(steps[t]) * chain.expected_ratio(moments)

    jeffreys = float("nan") if data is None else _jeffreys(end_mean, end_covariance, exact_mean, exact_covariance)
    return ExpectedWork(forward, reverse, reverse - forward, jeffreys)


@dataclass(frozen=True)
class _DataMoments:
    """Mean and covariance of b and mean of c, over data sets or of one."""

    mean: FloatArray
    covariance: FloatArray
    constant: float

    @classmethod
    def of(cls, model: LinearGaussianModel, data: Data | None) -> _DataMoments:
        if data is not None:
            statistics = model.summarise({"y": np.asarray(data["y"], dtype=float)[None]})
            zero = np.zeros((model.dim, model.dim))
            return cls(statistics["linear"][0], zero, float(statistics["constant"][0]))
        information, scaled = model.information, model.design / model.noise[:, None]
        location = scaled @ model.prior_location
        squares = location @ location + np.trace(scaled @ model.prior_covariance @ scaled.T) + len(model.noise)
        return cls(
            information @ model.prior_location,
            information @ model.prior_covariance @ information + information,
            float(model.log_normaliser - 0.5 * squares),
        )


class _Chain:
    """First two moments of a chain: mean ``slope @ b + offset`` and covariance."""

    def __init__(self, model: LinearGaussianModel, rho: float, mean: FloatArray, covariance: FloatArray) -> None:
        self.model, self.rho = model, rho
        self.slope = np.zeros((model.dim, model.dim))
        self.offset, self.covariance = mean.copy(), covariance.copy()

    def move(self, beta: float) -> None:
        """Apply the kernel at ``beta``."""
        target = np.linalg.inv(self.model.prior_precision + beta * self.model.information)
        linear = self.model.prior_precision @ self.model.prior_location
        self.slope = self.rho * self.slope + (1.0 - self.rho) * beta * target
        self.offset = self.rho * self.offset + (1.0 - self.rho) * target @ linear
        self.covariance = self.rho**2 * self.covariance + (1.0 - self.rho**2) * target

    def expected_ratio(self, moments: _DataMoments) -> float:
        """Return the expected log likelihood at the chain's state."""
        information, slope = self.model.information, self.slope
        mean = slope @ moments.mean + self.offset
        spread = slope @ moments.covariance
        cross = np.trace(spread) + moments.mean @ mean
        square = mean @ information @ mean + np.trace(information @ (spread @ slope.T + self.covariance))
        return float(moments.constant + cross - 0.5 * square)


def _jeffreys(mean: FloatArray, covariance: FloatArray, other_mean: FloatArray, other: FloatArray) -> float:
    """Return the Jeffreys divergence of two Gaussian densities."""
    precision, other_precision = np.linalg.inv(covariance), np.linalg.inv(other)
    shift = mean - other_mean
    traces = np.trace(other_precision @ covariance) + np.trace(precision @ other) - 2.0 * len(mean)
    return float(0.5 * (traces + shift @ (precision + other_precision) @ shift))
