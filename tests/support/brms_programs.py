"""A program of the shape that brms 2.22 writes for ``y ~ x + (1 | group)``, with a prior on b or, by default, none."""

from __future__ import annotations

from typing import Any

import numpy as np

PRIOR_ON_B = "  lprior += normal_lpdf(b | 0, 1);\n"
PROGRAM = f"""// generated with brms 2.22.0
functions {{
}}
data {{
  int<lower=1> N;  // total number of observations
  vector[N] Y;  // response variable
  int<lower=1> K;  // number of population-level effects
  matrix[N, K] X;  // population-level design matrix
  int<lower=1> Kc;  // number of population-level effects after centering
  // data for group-level effects of ID 1
  int<lower=1> N_1;  // number of grouping levels
  int<lower=1> M_1;  // number of coefficients per level
  array[N] int<lower=1> J_1;  // grouping indicator per observation
  // group-level predictor values
  vector[N] Z_1_1;
  int prior_only;  // should the likelihood be ignored?
}}
transformed data {{
  matrix[N, Kc] Xc;  // centered version of X without an intercept
  vector[Kc] means_X;  // column means of X before centering
  for (i in 2:K) {{
    means_X[i - 1] = mean(X[, i]);
    Xc[, i - 1] = X[, i] - means_X[i - 1];
  }}
}}
parameters {{
  vector[Kc] b;  // regression coefficients
  real Intercept;  // temporary intercept for centered predictors
  real<lower=0> sigma;  // dispersion parameter
  vector<lower=0>[M_1] sd_1;  // group-level standard deviations
  array[M_1] vector[N_1] z_1;  // standardized group-level effects
}}
transformed parameters {{
  vector[N_1] r_1_1;  // actual group-level effects
  // prior contributions to the log posterior
  real lprior = 0;
  r_1_1 = (sd_1[1] * (z_1[1]));
{PRIOR_ON_B}  lprior += student_t_lpdf(Intercept | 3, 0.9, 2.5);
  lprior += student_t_lpdf(sigma | 3, 0, 2.5)
    - 1 * student_t_lccdf(0 | 3, 0, 2.5);
  lprior += student_t_lpdf(sd_1 | 3, 0, 2.5)
    - 1 * student_t_lccdf(0 | 3, 0, 2.5);
}}
model {{
  // likelihood including constants
  if (!prior_only) {{
    // initialize linear predictor term
    vector[N] mu = rep_vector(0.0, N);
    mu += Intercept;
    for (n in 1:N) {{
      // add more terms to the linear predictor
      mu[n] += r_1_1[J_1[n]] * Z_1_1[n];
    }}
    target += normal_id_glm_lpdf(Y | Xc, mu, b, sigma);
  }}
  // priors including constants
  target += lprior;
  target += std_normal_lpdf(z_1[1]);
}}
generated quantities {{
  // actual population-level intercept
  real b_Intercept = Intercept - dot_product(means_X, b);
}}
"""


def data() -> dict[str, Any]:
    """Return what ``standata()`` gives: 24 observations in 6 groups."""
    rng = np.random.default_rng(13)
    x, group = rng.normal(1.0, 1.0, 24), np.repeat(np.arange(6), 4)
    return {
        "N": 24, "Y": 0.5 + 0.8 * x + rng.normal(size=6)[group] + 0.4 * rng.normal(size=24), "K": 2,
        "X": np.column_stack([np.ones(24), x]), "Kc": 1, "N_1": 6, "M_1": 1, "J_1": group + 1, "Z_1_1": np.ones(24),
        "prior_only": 0,
    }  # fmt: skip
