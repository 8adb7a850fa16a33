"""Twenty-seven shapes of PyMC models that people ask about, each small and with data of its own making."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

Builder = Callable[[np.random.Generator], Any]


def media_mix(rng: np.random.Generator) -> Any:
    """Return a model: saturation by a Hill curve of three channels, with geometric carry-over."""
    spend = rng.gamma(2.0, 1.0, (40, 3))
    sales = 1 + spend[:, 0] / (1 + spend[:, 0]) + 0.2 * rng.normal(size=40)
    lags = np.array([[max(t - s, -1) for s in range(4)] for t in range(40)])
    padded = np.vstack([spend, np.zeros(3)])
    with pm.Model() as model:
        keep = pm.Beta("keep", 2, 2, shape=3)
        half = pm.Gamma("half", 3, 2, shape=3)
        effect = pm.HalfNormal("effect", 1, shape=3)
        carried = sum(keep**s * padded[lags[:, s]] for s in range(4))
        level = pm.Normal("level", 0, 2)
        mean = level + (effect * carried / (carried + half)).sum(axis=1)
        pm.Normal(
            "sales",
            mean,
            pm.HalfNormal("noise", 1),
            observed=sales,
        )
    return model


def two_parameter_items(rng: np.random.Generator) -> Any:
    """Return a model: two-parameter logistic item response model."""
    answers = rng.random((25, 6)) < 0.6
    with pm.Model() as model:
        ability = pm.Normal("ability", 0, 1, shape=25)
        slope = pm.LogNormal("slope", 0, 0.5, shape=6)
        difficulty = pm.Normal("difficulty", 0, 1.5, shape=6)
        pm.Bernoulli("answer", logit_p=slope * (ability[:, None] - difficulty), observed=answers.astype(int))
    return model


def cognitive_diagnosis(rng: np.random.Generator) -> Any:
    """Return a model: items that need skills by a Q-matrix; skills are continuous."""
    needs = np.array([[1, 0], [0, 1], [1, 1], [1, 0], [0, 1]])
    answers = rng.random((20, 5)) < 0.5
    with pm.Model() as model:
        skill = pm.Normal("skill", 0, 1, shape=(20, 2))
        load = pm.HalfNormal("load", 1, shape=(5, 2))
        easy = pm.Normal("easy", 0, 1, shape=5)
        pm.Bernoulli("answer", logit_p=easy + skill @ (load * needs).T, observed=answers.astype(int))
    return model


def ordinal(rng: np.random.Generator) -> Any:
    """Return a model: ordered probit whose cut points come from a Dirichlet."""
    x = rng.normal(size=50)
    grade = np.digitize(x + rng.normal(size=50), [-1.0, 0.0, 1.0])
    with pm.Model() as model:
        share = pm.Dirichlet("share", np.ones(4))
        cuts = pm.Deterministic("cuts", pt.sqrt(2.0) * pt.erfinv(2 * pt.cumsum(share)[:-1] - 1))
        slope = pm.Normal("slope", 0, 1)
        pm.OrderedProbit("grade", eta=slope * x, cutpoints=cuts, observed=grade)
    return model


def survival_by_potential(rng: np.random.Generator) -> Any:
    """Return a model: Weibull survival; those still alive enter by a Potential."""
    time, alive = rng.weibull(1.5, 40), rng.random(40) < 0.3
    with pm.Model() as model:
        shape, scale = pm.Gamma("shape", 4, 3), pm.HalfNormal("scale", 2)
        pm.Weibull("dead", shape, scale, observed=time[~alive])
        pm.Potential("alive", -((time[alive] / scale) ** shape).sum())
    return model


def survival_censored(rng: np.random.Generator) -> Any:
    """Return a model: the same by pm.Censored."""
    time = np.minimum(rng.weibull(1.5, 40), 1.4)
    with pm.Model() as model:
        shape, scale = pm.Gamma("shape", 4, 3), pm.HalfNormal("scale", 2)
        pm.Censored("time", pm.Weibull.dist(shape, scale), lower=None, upper=1.4, observed=time)
    return model


def correlated_slopes(rng: np.random.Generator) -> Any:
    """Return a model: intercepts and slopes of groups with an LKJ prior, non-centred."""
    group, x = np.repeat(np.arange(8), 6), rng.normal(size=48)
    with pm.Model() as model:
        factor, _, _ = pm.LKJCholeskyCov("factor", n=2, eta=2, sd_dist=pm.Exponential.dist(1.0, shape=2))
        z = pm.Normal("z", 0, 1, shape=(8, 2))
        mean = pm.Normal("mean", 0, 1, shape=2)
        effect = pm.Deterministic("effect", mean + z @ factor.T)
        noise = pm.HalfNormal("noise", 1)
        pm.Normal("y", effect[group, 0] + effect[group, 1] * x, noise, observed=0.5 * x + rng.normal(size=48))
    return model


def gaps(rng: np.random.Generator) -> Any:
    """Return a model: rows of a multivariate normal with values that are missing."""
    y = rng.normal(size=(15, 2)) + 1.0
    y[3, 1] = y[7, 0] = np.nan
    with pm.Model() as model:
        mean = pm.Normal("mean", 0, 2, shape=2)
        factor, _, _ = pm.LKJCholeskyCov("factor", n=2, eta=2, sd_dist=pm.Exponential.dist(1.0, shape=2))
        pm.MvNormal("y", mean, chol=factor, observed=np.ma.masked_invalid(y))
    return model


def missing_covariate(rng: np.random.Generator) -> Any:
    """Return a model: a predictor with gaps, which has a law of its own."""
    x = rng.normal(size=30)
    y = 1 + 2 * x + rng.normal(size=30)
    x[[2, 9, 20]] = np.nan
    with pm.Model() as model:
        centre, spread = pm.Normal("centre", 0, 1), pm.HalfNormal("spread", 2)
        full = pm.Normal("x", centre, spread, observed=np.ma.masked_invalid(x))
        pm.Normal("y", pm.Normal("a", 0, 2) + pm.Normal("b", 0, 2) * full, pm.HalfNormal("noise", 2), observed=y)
    return model


def stochastic_volatility(rng: np.random.Generator) -> Any:
    """Return a model: Student t returns whose log volatility walks."""
    with pm.Model() as model:
        step = pm.Exponential("step", 10)
        level = pm.GaussianRandomWalk("level", sigma=step, init_dist=pm.Normal.dist(0, 1), shape=60)
        tails = pm.Exponential("tails", 0.1)
        pm.StudentT("returns", nu=2 + tails, lam=pt.exp(-2 * level), observed=rng.standard_t(5, 60))
    return model


def beta_hierarchy(rng: np.random.Generator) -> Any:
    """Return a model: shares of groups from a beta law whose concentration is learned."""
    tries = rng.integers(10, 40, 12)
    with pm.Model() as model:
        centre, tight = pm.Beta("centre", 2, 2), pm.Pareto("tight", 1.5, 1.0)
        share = pm.Beta("share", centre * tight, (1 - centre) * tight, shape=12)
        pm.Binomial("hits", tries, share, observed=rng.binomial(tries, 0.3))
    return model


def dirichlet_hierarchy(rng: np.random.Generator) -> Any:
    """Return a model: counts of groups with Dirichlet shares whose concentration is learned."""
    with pm.Model() as model:
        tight = pm.Gamma("tight", 2, 0.2)
        centre = pm.Dirichlet("centre", np.ones(3))
        share = pm.Dirichlet("share", tight * centre, shape=(8, 3))
        pm.Multinomial("count", 20, share, observed=rng.multinomial(20, [0.5, 0.3, 0.2], 8))
    return model


def zero_sum(rng: np.random.Generator) -> Any:
    """Return a model: effects that sum to zero."""
    group = np.repeat(np.arange(6), 5)
    with pm.Model() as model:
        effect = pm.ZeroSumNormal("effect", sigma=pm.HalfNormal("spread", 1), shape=6)
        pm.Normal("y", pm.Normal("mean", 0, 2) + effect[group], pm.HalfNormal("noise", 1), observed=rng.normal(size=30))
    return model


def icar_by_potential(rng: np.random.Generator) -> Any:
    """Return a model: counts of areas on a ring with an intrinsic autoregression written as a Potential."""
    left, right = np.arange(12), np.roll(np.arange(12), -1)
    with pm.Model() as model:
        phi = pm.Flat("phi", shape=12)
        spread = pm.HalfNormal("spread", 1)
        pm.Potential("neighbours", -0.5 * ((phi[left] - phi[right]) ** 2).sum())
        pm.Potential("centred", pm.logp(pm.Normal.dist(0, 0.12), phi.sum()))
        pm.Poisson("count", pt.exp(pm.Normal("level", 1, 1) + spread * phi), observed=rng.poisson(3, 12))
    return model


def car(rng: np.random.Generator) -> Any:
    """Return a model: counts of areas on a ring with pm.CAR."""
    ring = np.roll(np.eye(12), 1, axis=1) + np.roll(np.eye(12), -1, axis=1)
    with pm.Model() as model:
        alpha, tau = pm.Beta("alpha", 3, 1), pm.Gamma("tau", 3, 1)
        phi = pm.CAR("phi", mu=np.zeros(12), tau=tau, alpha=alpha, W=ring)
        pm.Poisson("count", pt.exp(pm.Normal("level", 1, 1) + phi), observed=rng.poisson(3, 12))
    return model


def ode_by_wrapped_function(rng: np.random.Generator) -> Any:
    """Return a model: logistic growth solved by SciPy behind pm's as_op: no gradient."""
    from pytensor.compile.ops import wrap_py
    from scipy.integrate import solve_ivp

    times = np.linspace(0.5, 6, 12)

    @wrap_py(itypes=[pt.dscalar, pt.dscalar], otypes=[pt.dvector])
    def solve(rate: Any, limit: Any) -> Any:
        found = solve_ivp(lambda _, n: rate * n * (1 - n / limit), (0, 6), [0.5], t_eval=times, rtol=1e-6)
        return found.y[0] if found.success else np.full(12, np.nan)

    truth = 5 / (1 + 9 * np.exp(-times))
    with pm.Model() as model:
        rate, limit = pm.LogNormal("rate", 0, 0.5), pm.LogNormal("limit", 1.5, 0.5)
        pm.Normal("size", solve(rate, limit), pm.HalfNormal("noise", 0.5), observed=truth + 0.3 * rng.normal(size=12))
    return model


def epidemic_by_scan(rng: np.random.Generator) -> Any:
    """Return a model: susceptible, infected, recovered, stepped by a scan."""
    with pm.Model() as model:
        contact, recovery = pm.LogNormal("contact", -0.7, 0.5), pm.LogNormal("recovery", -1.6, 0.5)

        def step(s: Any, i: Any, contact: Any, recovery: Any) -> Any:
            new = contact * s * i
            return s - new, i + new - recovery * i

        (_, infected), _ = pytensor.scan(
            step, outputs_info=[pt.constant(0.98), pt.constant(0.02)], non_sequences=[contact, recovery], n_steps=20
        )
        pm.NegativeBinomial("cases", 1 + 100 * infected, pm.Exponential("spread", 0.1), observed=rng.poisson(20, 20))
    return model


def mixture_on_a_trend(rng: np.random.Generator) -> Any:
    """Return a model: outliers about a line as a mixture."""
    x = np.linspace(-1, 1, 40)
    y = 1 + x + 0.2 * rng.normal(size=40)
    y[::8] += 3
    with pm.Model() as model:
        mean = pm.Normal("a", 0, 2) + pm.Normal("b", 0, 2) * x
        share, noise = pm.Beta("share", 1, 4), pm.HalfNormal("noise", 1)
        parts = [pm.Normal.dist(mean, noise), pm.Normal.dist(mean, noise + pm.HalfNormal("wide", 4))]
        pm.Mixture("y", w=pt.stack([1 - share, share]), comp_dists=parts, observed=y)
    return model


def dirichlet_multinomial(rng: np.random.Generator) -> Any:
    """Return a model: counts with more spread than multinomial ones."""
    with pm.Model() as model:
        centre, tight = pm.Dirichlet("centre", np.ones(4)), pm.LogNormal("tight", 1, 1)
        pm.DirichletMultinomial("count", 30, centre * tight, observed=rng.multinomial(30, [0.4, 0.3, 0.2, 0.1], 10))
    return model


def switch_point(rng: np.random.Generator) -> Any:
    """Return a model: disasters whose rate changes in a year that is discrete."""
    with pm.Model() as model:
        year = pm.DiscreteUniform("year", 0, 39)
        early, late = pm.Exponential("early", 1), pm.Exponential("late", 1)
        rate = pt.switch(year >= np.arange(40), early, late)
        pm.Poisson("count", rate, observed=np.r_[rng.poisson(3, 22), rng.poisson(1, 18)])
    return model


def purchases_by_potential(rng: np.random.Generator) -> Any:
    """Return a model: customers that buy and leave (beta-geometric), the likelihood as a Potential."""
    n = rng.poisson(3, 40)
    last, age = rng.uniform(5, 15, 40) * (n > 0), np.full(40, 20.0)
    with pm.Model() as model:
        r, alpha = pm.HalfNormal("r", 2), pm.HalfNormal("alpha", 10)
        a, b = pm.HalfNormal("a", 2), pm.HalfNormal("b", 5)
        common = pt.gammaln(r + n) - pt.gammaln(r) + r * pt.log(alpha) + pt.gammaln(a + b) + pt.gammaln(b + n)
        common -= pt.gammaln(b) + pt.gammaln(a + b + n)
        here = -(r + n) * pt.log(alpha + age)
        gone = pt.log(a) - pt.log(b + pt.maximum(n, 1) - 1) - (r + n) * pt.log(alpha + last)
        pm.Potential("purchases", (common + pt.logaddexp(here, pt.switch(n > 0, gone, -np.inf))).sum())
    return model


def bambi_groups(rng: np.random.Generator) -> Any:
    """Return a model: Bambi's group effects."""
    import bambi
    import pandas as pd

    table = pd.DataFrame({"x": rng.normal(size=48), "group": np.repeat(list("abcdefgh"), 6)})
    table["y"] = 1 + table["x"] + rng.normal(size=48)
    return bambi.Model("y ~ x + (1 | group)", table)


def splines_and_hurdle(rng: np.random.Generator) -> Any:
    """Return a model: a smooth rate by a basis, and a hurdle of zeros."""
    x = np.linspace(0, 1, 50)
    basis = np.exp(-0.5 * ((x[:, None] - np.linspace(0, 1, 6)) / 0.15) ** 2)
    count = rng.poisson(2, 50) * (rng.random(50) < 0.7)
    with pm.Model() as model:
        spread = pm.HalfNormal("spread", 1)
        weight = pm.Normal("weight", 0, 1, shape=6)
        pm.HurdlePoisson("count", pm.Beta("some", 2, 2), pt.exp(0.5 + spread * (basis @ weight)), observed=count)
    return model


def hidden_markov(rng: np.random.Generator) -> Any:
    """Return a model: two states marginalised by the forward algorithm, as a Potential."""
    y = np.r_[rng.normal(0, 1, 15), rng.normal(3, 1, 15)]
    with pm.Model() as model:
        stay = pm.Beta("stay", 8, 2, shape=2)
        mean = pm.Normal("mean", [0, 3], 1, shape=2)
        move = pt.log(pt.stack([pt.stack([stay[0], 1 - stay[0]]), pt.stack([1 - stay[1], stay[1]])]))
        log_p = -0.5 * (y[:, None] - mean) ** 2
        forward = log_p[0] - np.log(2)
        for t in range(1, 30):
            forward = pt.logsumexp(forward[:, None] + move, axis=0) + log_p[t]
        pm.Potential("y", pt.logsumexp(forward))
    return model


def state_space(rng: np.random.Generator) -> Any:
    """Return a model: a local level by pymc-extras."""
    from pymc_extras.statespace import structural

    level = structural.LevelTrendComponent(order=1, innovations_order=1) + structural.MeasurementError(name="noise")
    built = level.build(verbose=False)
    with pm.Model(coords=built.coords) as model:
        for name in built.param_names:
            shape = built.param_info[name]["shape"] if name in built.param_info else ()
            if name == "P0":
                pm.Deterministic("P0", pt.eye(1))
            elif name.startswith("sigma"):
                pm.HalfNormal(name, 1, shape=shape)
            else:
                pm.Normal(name, 0, 1, shape=shape)
        built.build_statespace_graph(rng.normal(size=(40, 1)).cumsum(axis=0))
    return model


def trees(rng: np.random.Generator) -> Any:
    """Return a model: additive regression trees by pymc-bart."""
    import pymc_bart

    x = rng.normal(size=(40, 2))
    with pm.Model() as model:
        mean = pymc_bart.BART("mean", x, x[:, 0], m=10)
        pm.Normal("y", mean, pm.HalfNormal("noise", 1), observed=x[:, 0] + 0.3 * rng.normal(size=40))
    return model


def minibatch(rng: np.random.Generator) -> Any:
    """Return a model: a regression on minibatches, as for variational inference."""
    x = rng.normal(size=200)
    xs, ys = pm.Minibatch(x, 1 + 2 * x + rng.normal(size=200), batch_size=20)
    with pm.Model() as model:
        mean = pm.Normal("a", 0, 2) + pm.Normal("b", 0, 2) * xs
        pm.Normal("y", mean, pm.HalfNormal("noise", 1), observed=ys, total_size=200)
    return model


MODELS: dict[str, Builder] = {
    "media mix with saturation": media_mix,
    "two-parameter items": two_parameter_items,
    "items by a Q-matrix": cognitive_diagnosis,
    "ordinal, Dirichlet cut points": ordinal,
    "survival, censored by Potential": survival_by_potential,
    "survival, pm.Censored": survival_censored,
    "LKJ slopes": correlated_slopes,
    "MvNormal with gaps": gaps,
    "missing covariate": missing_covariate,
    "stochastic volatility": stochastic_volatility,
    "Beta hierarchy": beta_hierarchy,
    "Dirichlet hierarchy": dirichlet_hierarchy,
    "ZeroSumNormal": zero_sum,
    "ICAR by Potential": icar_by_potential,
    "CAR": car,
    "ODE by a wrapped function": ode_by_wrapped_function,
    "SIR by scan": epidemic_by_scan,
    "mixture on a trend": mixture_on_a_trend,
    "Dirichlet-multinomial": dirichlet_multinomial,
    "switch point": switch_point,
    "BG/NBD by Potential": purchases_by_potential,
    "Bambi group effects": bambi_groups,
    "splines and hurdle": splines_and_hurdle,
    "HMM by marginalisation": hidden_markov,
    "state space (pymc-extras)": state_space,
    "BART": trees,
    "minibatch": minibatch,
}
