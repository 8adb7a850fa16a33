"""Twenty-one shapes of Stan programs as people publish them, each small and with data of its own making."""

from __future__ import annotations

from typing import Any

import numpy as np

_RNG = np.random.default_rng(7)
_X = _RNG.normal(size=24)
_GROUP = np.repeat(np.arange(1, 7), 4)
_SCHOOLS = {"J": 8, "y": [28.0, 8, -3, 7, -1, 1, 18, 12], "sigma": [15.0, 10, 16, 11, 9, 11, 10, 18]}
_LINE = {"N": 24, "x": _X, "y": 1 + 0.5 * _X + 0.4 * _RNG.normal(size=24)}
_COUNTS = {"N": 24, "x": _X, "y": _RNG.poisson(np.exp(0.5 + 0.4 * _X))}
_GROUPS = {**_LINE, "J": 6, "g": _GROUP}
_SERIES = {"T": 30, "y": np.cumsum(_RNG.normal(size=30)) * 0.3}
_RING = {"N": 10, "a": np.arange(1, 11), "b": np.roll(np.arange(1, 11), -1), "y": _RNG.poisson(3, 10)}

Program = tuple[str, dict[str, Any], str]

PROGRAMS: dict[str, Program] = {
    "regression, flat priors": (
        """data { int N; vector[N] x; vector[N] y; }
        parameters { real a; real b; real<lower=0> s; }
        model { y ~ normal(a + b * x, s); }""",
        _LINE,
        "y",
    ),
    "eight schools, non-centred, flat": (
        """data { int J; vector[J] y; vector[J] sigma; }
        parameters { real mu; real<lower=0> tau; vector[J] z; }
        transformed parameters { vector[J] theta = mu + tau * z; }
        model { z ~ std_normal(); y ~ normal(theta, sigma); }""",
        _SCHOOLS,
        "y",
    ),
    "eight schools, priors": (
        """data { int J; vector[J] y; vector[J] sigma; }
        parameters { real mu; real<lower=0> tau; vector[J] z; }
        transformed parameters { vector[J] theta = mu + tau * z; }
        model { mu ~ normal(0, 5); tau ~ cauchy(0, 5); z ~ std_normal(); y ~ normal(theta, sigma); }""",
        _SCHOOLS,
        "y",
    ),
    "varying intercepts, centred": (
        """data { int N; int J; array[N] int g; vector[N] x; vector[N] y; }
        parameters { real m; real<lower=0> t; vector[J] a; real b; real<lower=0> s; }
        model { m ~ normal(0, 1); t ~ exponential(1); a ~ normal(m, t); b ~ normal(0, 1); s ~ exponential(1);
          y ~ normal(a[g] + b * x, s); }""",
        _GROUPS,
        "y",
    ),
    "varying slopes, LKJ": (
        """data { int N; int J; array[N] int g; vector[N] x; vector[N] y; }
        parameters { vector[2] m; vector<lower=0>[2] t; cholesky_factor_corr[2] L; matrix[2, J] z; real<lower=0> s; }
        transformed parameters { matrix[2, J] e = diag_pre_multiply(t, L) * z; }
        model { m ~ normal(0, 1); t ~ exponential(1); L ~ lkj_corr_cholesky(2); to_vector(z) ~ std_normal();
          s ~ exponential(1);
          for (n in 1:N) y[n] ~ normal(m[1] + e[1, g[n]] + (m[2] + e[2, g[n]]) * x[n], s); }""",
        _GROUPS,
        "y",
    ),
    "Poisson, over-dispersed": (
        """data { int N; vector[N] x; array[N] int y; }
        parameters { real a; real b; real<lower=0> phi; }
        model { a ~ normal(0, 2); b ~ normal(0, 1); phi ~ gamma(2, 0.5); y ~ neg_binomial_2_log(a + b * x, phi); }""",
        _COUNTS,
        "y",
    ),
    "zero-inflated Poisson": (
        """data { int N; array[N] int y; }
        parameters { real<lower=0, upper=1> p; real<lower=0> l; }
        model { l ~ gamma(2, 1);
          for (n in 1:N) {
            if (y[n] == 0) target += log_sum_exp(bernoulli_lpmf(1 | p), bernoulli_lpmf(0 | p) + poisson_lpmf(0 | l));
            else target += bernoulli_lpmf(0 | p) + poisson_lpmf(y[n] | l);
          } }""",
        {"N": 24, "y": _RNG.poisson(2, 24) * (_RNG.random(24) < 0.7)},
        "y",
    ),
    "two-component mixture": (
        """data { int N; vector[N] y; }
        parameters { ordered[2] m; vector<lower=0>[2] s; real<lower=0, upper=1> p; }
        model { m ~ normal(0, 3); s ~ exponential(1); p ~ beta(2, 2);
          for (n in 1:N) target += log_mix(p, normal_lpdf(y[n] | m[1], s[1]), normal_lpdf(y[n] | m[2], s[2])); }""",
        {"N": 24, "y": np.r_[_RNG.normal(-2, 1, 12), _RNG.normal(2, 1, 12)]},
        "y",
    ),
    "two-parameter items": (
        """data { int I; int J; int N; array[N] int ii; array[N] int jj; array[N] int y; }
        parameters { vector<lower=0>[I] a; vector[I] b; vector[J] theta; }
        model { a ~ lognormal(0, 0.5); b ~ normal(0, 1); theta ~ std_normal();
          y ~ bernoulli_logit(a[ii] .* (theta[jj] - b[ii])); }""",
        {
            "I": 4,
            "J": 15,
            "N": 60,
            "ii": np.tile(np.arange(1, 5), 15),
            "jj": np.repeat(np.arange(1, 16), 4),
            "y": (_RNG.random(60) < 0.6).astype(int),
        },
        "y",
    ),
    "ordinal, induced Dirichlet by hand": (
        """data { int N; int K; vector[N] x; array[N] int y; }
        parameters { real b; ordered[K - 1] c; }
        model { b ~ normal(0, 1); c ~ normal(0, 2); y ~ ordered_logistic(b * x, c); }""",
        {"N": 24, "K": 3, "x": _X, "y": 1 + np.digitize(_X, [-0.5, 0.5])},
        "y",
    ),
    "survival, censored by _lccdf": (
        """data { int N; int M; vector[N] t; vector[M] c; }
        parameters { real<lower=0> a; real<lower=0> s; }
        model { a ~ gamma(4, 3); s ~ normal(0, 2); t ~ weibull(a, s); target += weibull_lccdf(c | a, s); }""",
        {"N": 16, "M": 5, "t": _RNG.weibull(1.5, 16), "c": np.full(5, 1.5)},
        "t",
    ),
    "missing outcomes as parameters": (
        """data { int N; int M; vector[N] y; }
        parameters { real m; real<lower=0> s; vector[M] y_mis; }
        model { m ~ normal(0, 2); s ~ exponential(1); y ~ normal(m, s); y_mis ~ normal(m, s); }""",
        {"N": 20, "M": 3, "y": _RNG.normal(1, 1, 20)},
        "y",
    ),
    "Gaussian process": (
        """data { int N; array[N] real x; vector[N] y; }
        parameters { real<lower=0> rho; real<lower=0> alpha; real<lower=0> s; }
        model { rho ~ inv_gamma(5, 5); alpha ~ std_normal(); s ~ std_normal();
          y ~ multi_normal_cholesky(rep_vector(0, N),
            cholesky_decompose(add_diag(gp_exp_quad_cov(x, alpha, rho), square(s) + 1e-6))); }""",
        {"N": 20, "x": np.linspace(-2, 2, 20), "y": np.sin(np.linspace(-2, 2, 20)) + 0.2 * _RNG.normal(size=20)},
        "y",
    ),
    "autoregression, flat priors": (
        """data { int T; vector[T] y; }
        parameters { real a; real<lower=-1, upper=1> b; real<lower=0> s; }
        model { y[2:T] ~ normal(a + b * y[1:(T - 1)], s); }""",
        _SERIES,
        "y",
    ),
    "local level": (
        """data { int T; vector[T] y; }
        parameters { vector[T] z; real<lower=0> q; real<lower=0> s; }
        transformed parameters { vector[T] l; l[1] = z[1]; for (t in 2:T) l[t] = l[t - 1] + q * z[t]; }
        model { z ~ std_normal(); q ~ normal(0, 1); s ~ normal(0, 1); y ~ normal(l, s); }""",
        _SERIES,
        "y",
    ),
    "stochastic volatility": (
        """data { int T; vector[T] y; }
        parameters { real mu; real<lower=-1, upper=1> phi; real<lower=0> q; vector[T] z; }
        transformed parameters { vector[T] h = z * q; h[1] /= sqrt(1 - phi * phi); h += mu;
          for (t in 2:T) h[t] += phi * (h[t - 1] - mu); }
        model { phi ~ uniform(-1, 1); q ~ cauchy(0, 5); mu ~ cauchy(0, 10); z ~ std_normal();
          y ~ normal(0, exp(h / 2)); }""",
        {"T": 30, "y": _RNG.standard_t(5, 30)},
        "y",
    ),
    "ICAR and Poisson": (
        """data { int N; array[N] int a; array[N] int b; array[N] int y; }
        parameters { real m; real<lower=0> s; vector[N] phi; }
        model { m ~ normal(0, 2); s ~ std_normal(); target += -0.5 * dot_self(phi[a] - phi[b]);
          sum(phi) ~ normal(0, 0.001 * N); y ~ poisson_log(m + s * phi); }""",
        _RING,
        "y",
    ),
    "hidden Markov, forward algorithm": (
        """data { int T; vector[T] y; }
        parameters { simplex[2] p1; simplex[2] p2; ordered[2] m; }
        model { m ~ normal(0, 3);
          { matrix[2, T] lp; for (t in 1:T) for (k in 1:2) lp[k, t] = normal_lpdf(y[t] | m[k], 1);
            matrix[2, 2] P; P[1] = p1'; P[2] = p2'; target += hmm_marginal(lp, P, rep_vector(0.5, 2)); } }""",
        {"T": 30, "y": np.r_[_RNG.normal(-2, 1, 15), _RNG.normal(2, 1, 15)]},
        "y",
    ),
    "horseshoe": (
        """data { int N; int K; matrix[N, K] X; vector[N] y; }
        parameters { vector[K] z; vector<lower=0>[K] l; real<lower=0> t; real<lower=0> s; }
        transformed parameters { vector[K] b = z .* l * t; }
        model { z ~ std_normal(); l ~ cauchy(0, 1); t ~ cauchy(0, 1); s ~ exponential(1); y ~ normal(X * b, s); }""",
        {"N": 24, "K": 4, "X": _RNG.normal(size=(24, 4)), "y": _LINE["y"]},
        "y",
    ),
    "predator and prey by ODE": (
        """functions { vector f(real t, vector z, real a, real b) { return [a * z[1] - b * z[1] * z[2],
            -0.5 * z[2] + 0.5 * z[1] * z[2]]'; } }
        data { int T; array[T] real t; array[T] vector[2] y; }
        parameters { real<lower=0> a; real<lower=0> b; real<lower=0> s; }
        model { a ~ lognormal(0, 0.5); b ~ lognormal(0, 0.5); s ~ exponential(2);
          array[T] vector[2] z = ode_rk45(f, [1.0, 1.5]', 0.0, t, a, b);
          for (n in 1:T) y[n] ~ lognormal(log(z[n]), s); }""",
        {"T": 8, "t": np.arange(1.0, 9), "y": np.exp(0.2 * _RNG.normal(size=(8, 2)))},
        "y",
    ),
    "brms, default flat b": (
        """// generated with brms 2.22.0
        data { int<lower=1> N; vector[N] Y; int<lower=1> K; matrix[N, K] X; int<lower=1> Kc; int prior_only; }
        transformed data { matrix[N, Kc] Xc; vector[Kc] means_X;
          for (i in 2:K) { means_X[i - 1] = mean(X[, i]); Xc[, i - 1] = X[, i] - means_X[i - 1]; } }
        parameters { vector[Kc] b; real Intercept; real<lower=0> sigma; }
        transformed parameters { real lprior = 0; lprior += student_t_lpdf(Intercept | 3, 0, 2.5);
          lprior += student_t_lpdf(sigma | 3, 0, 2.5) - 1 * student_t_lccdf(0 | 3, 0, 2.5); }
        model { if (!prior_only) { target += normal_id_glm_lpdf(Y | Xc, Intercept, b, sigma); } target += lprior; }
        generated quantities { real b_Intercept = Intercept - dot_product(means_X, b); }""",
        {"N": 24, "Y": _LINE["y"], "K": 2, "X": np.column_stack([np.ones(24), _X]), "Kc": 1, "prior_only": 0},
        "Y",
    ),
}
