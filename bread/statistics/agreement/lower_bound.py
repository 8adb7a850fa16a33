"""How wrong the user's draws are at least: what a classifier tells apart on draws that it has not seen.

Marginals and pairs can be right where the joint distribution is not. A classifier looks at all coordinates at once, and
the share that it takes for the user's, of the user's draws less of certified ones, is below the distance of the two.
"""

from __future__ import annotations

from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betainccinv, betaincinv
from scipy.stats import rankdata
from threadpoolctl import ThreadpoolController

from bread.statistics.agreement.agreement import mean_effective_size
from bread.statistics.agreement.draws import are_constant
from bread.statistics.bounds.bounds import FloatArray

ENDS = (0.125, 0.25, 0.5, 0.75, 1.0)  # of parts: the second chooses a learner, and is not counted
PIECES = 8  # at least, that own draws are cut into: parts begin and end between pieces
FEWEST = 10  # draws of either kind, to learn from
MOST = 4000  # draws of either kind, and twice as many own ones as certified ones: more cost more than they tell
MOST_FEATURES = 300  # products of coordinates, at most of three
SAME = 1e-6  # standard deviations: own draws as near as this in all coordinates are copies
SMALLEST_P = 1e-300


class ToldApart(NamedTuple):
    """Result of `tell_apart`, and all that limit and test need.

    Attributes
    ----------
    own, certified : float
        Share of either that was taken for the user's own; both alike where nothing tells them apart.
    n_own, n_certified : float
        Effective draws behind these shares.
    """

    own: float
    certified: float
    n_own: float
    n_certified: float

    def lower_limit(self, alpha: float) -> float:
        """Return a lower limit of the difference of the two shares, one-sided at level 1 - ``alpha``.

        The difference less the root of the squared distances to either share's Clopper-Pearson limit.

        References
        ----------
        Zou & Donner (2008), "Construction of confidence limits about effect measures", Statistics in Medicine 27.
        """
        k, m = self.own * self.n_own, self.certified * self.n_certified
        low = betaincinv(k, self.n_own - k + 1.0, alpha) if k > 0.0 else 0.0
        high = betainccinv(m + 1.0, self.n_certified - m, alpha) if m < self.n_certified else 1.0
        return float(self.own - self.certified - np.hypot(self.own - low, high - self.certified))

    def p_value(self, error: float) -> float:
        """Return that of "the distance of the two is at most ``error``": the least alpha whose limit is above."""

        def excess(log_alpha: float) -> float:
            return self.lower_limit(float(np.exp(log_alpha))) - error

        least, most = float(np.log(SMALLEST_P)), float(np.log(0.5))
        if excess(most) <= 0.0:
            return 1.0
        return SMALLEST_P if excess(least) > 0.0 else float(np.exp(brentq(excess, least, most)))


def tell_apart(own: FloatArray, certified: FloatArray, *, distinct_share: float = 1.0) -> ToldApart | None:
    """Return how well a classifier tells the user's draws from certified ones.

    Both are cut into parts. Learners are fitted to all parts before one, and the one that was best on these parts, when
    they were new to it, says of each draw of this part whose it is. So what is counted was decided by other draws,
    and the difference of the shares has the mean of r(A) - q(A) over some sets A: at most the total variation
    distance of the distributions r and q, whatever is learnt. (In cross-validation folds teach each other: shares vary
    more than counts do.)

    Parameters
    ----------
    own : ndarray, shape (chain, draw, d)
        The user's. Parts are made of whole chains, or of pieces of chains where these are fewer than `PIECES`.
        Autocorrelations are those of the very thing that is counted. Nothing is learnt from a copy of a draw that is
        asked about.
    certified : ndarray, shape (n, d)
        Independent draws.
    distinct_share : float
        What effective sizes are multiplied by (`bread.statistics.agreement.repeats`).

    Returns
    -------
    ToldApart or None
        None where nothing varies, or too little is left to learn from.
    """
    varies = ~are_constant(own.reshape(-1, own.shape[2]), certified)
    if not varies.any():
        return None
    pieces = _pieces(own[:, :, varies], min(MOST, 2 * len(certified)))
    states = _states(pieces)
    theirs = _rounded_alike(pieces, states, certified[:MOST, varies])
    ends, their_ends = ([round(share * len(values)) for share in ENDS] for values in (pieces, theirs))
    success: dict[str, float] = {}
    shares, sizes = [], []
    for part in range(1, len(ENDS)):
        now, their_now = slice(*ends[part - 1 : part + 1]), slice(*their_ends[part - 1 : part + 1])
        is_new = ~np.isin(states[: now.start], states[now])
        known, their_known = pieces[: now.start][is_new], theirs[: their_now.start]
        if min(len(known), len(their_known)) < FEWEST:
            return None
        asked = np.concatenate([pieces[now].reshape(-1, pieces.shape[2]), theirs[their_now]])
        answers = _answers(known, their_known, asked)
        n_own = len(asked) - (their_now.stop - their_now.start)
        if success:
            is_own = answers[max(success, key=lambda name: success[name])] > 0.0
            hits = is_own[:n_own].reshape(-1, pieces.shape[1], 1).astype(np.float64)
            shares.append((hits.mean(), is_own[n_own:].mean()))
            sizes.append((n_own, float(mean_effective_size(hits)[0]), len(asked) - n_own))
        for name, answer in answers.items():
            ranks = rankdata(answer)  # their means differ by half the draws, at most
            success[name] = success.get(name, 0.0) + float(ranks[:n_own].mean() - ranks[n_own:].mean())
    n_draws, n_effective, n_certified = np.array(sizes).T
    weight = n_draws / n_draws.sum()  # one for both, or right draws would differ where a set is larger in one part
    own_share, their_share = weight @ np.array(shares)
    size = distinct_share / np.sum(weight**2 / n_effective)
    return ToldApart(float(own_share), float(their_share), float(size), float(1.0 / np.sum(weight**2 / n_certified)))


def _answers(own: FloatArray, certified: FloatArray, asked: FloatArray) -> dict[str, FloatArray]:
    """Return by how much each learner takes the draws ``asked`` for the user's, having seen ``own`` and ``certified``.

    Linear for shifts, products for scales and dependence, trees for gaps and combs, neighbours for what has no form.
    """
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, QuantileTransformer

    seen, is_own = np.concatenate([own, certified]), np.arange(len(own) + len(certified)) < len(own)
    d = seen.shape[1]
    learners: dict[str, Any] = {
        f"degree {degree}": make_pipeline(
            PolynomialFeatures(degree, include_bias=False),
            LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        )
        for degree in (1, 2, 3)
        if degree == 1 or comb(d + degree, degree) <= MOST_FEATURES
    }
    learners |= {
        "trees": ExtraTreesClassifier(30, min_samples_leaf=5, max_features=min(d, 10), random_state=0),
        "neighbours": KNeighborsClassifier(min(25, len(seen))),
    }
    with ThreadpoolController().limit(limits=1):
        scale = QuantileTransformer(n_quantiles=min(1000, len(seen)), output_distribution="normal", random_state=0)
        seen, asked = scale.fit_transform(seen), scale.transform(asked)
        return {
            name: learner.fit(seen, is_own).predict_proba(asked)[:, 1] - is_own.mean()
            for name, learner in learners.items()
        }


def _pieces(own: FloatArray, most: int) -> FloatArray:
    """Return pieces of chains (piece, draw, d), at least `PIECES`, of all chains in turn; about ``most`` draws."""
    n_chains, n_draws, d = own.shape
    n_cut = min(-(-PIECES // n_chains), n_draws)
    pieces = own[:, : n_draws // n_cut * n_cut].reshape(n_chains * n_cut, -1, d)
    return pieces[:, :: -(-pieces.shape[0] * pieces.shape[1] // most)]


def _states(pieces: FloatArray) -> NDArray[np.intp]:
    """Return numbers (piece, draw) that are the same for copies; draws of whole numbers alone have none."""
    flat = pieces.reshape(-1, pieces.shape[2])
    columns = flat[:, (flat != np.round(flat)).any(axis=0)]
    if not columns.shape[1]:
        return np.arange(len(flat)).reshape(pieces.shape[:2])
    steps = np.round((columns - columns.mean(axis=0)) / (SAME * columns.std(axis=0)))
    return np.unique(steps, axis=0, return_inverse=True)[1].reshape(pieces.shape[:2])


def _rounded_alike(pieces: FloatArray, states: NDArray[np.intp], certified: FloatArray) -> FloatArray:
    """Return the certified draws at the nearest values of the user's, in coordinates that the user's were rounded in.

    There half of the values come again in other states, and those of certified draws, which are not rounded, do not.
    """
    alike = certified.copy()
    for column in range(certified.shape[1]):
        values = np.unique(pieces[..., column])
        theirs = certified[:, column]
        if 2 * len(values) < len(np.unique(states)) and len(np.unique(theirs)) == len(theirs):
            alike[:, column] = values[np.searchsorted((values[1:] + values[:-1]) / 2.0, theirs)]
    return alike
