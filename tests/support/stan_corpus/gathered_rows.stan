// Residual correlations of two outcomes as brms writes them: set_rescor(TRUE).
data {
  int<lower=1> N;
  vector[N] Y_a;
  vector[N] Y_b;
  vector[N] x;
}
transformed data {
  array[N] vector[2] Y;
  for (n in 1:N) {
    Y[n] = transpose([Y_a[n], Y_b[n]]);
  }
}
parameters {
  real Intercept_a;
  real slope;
  real<lower=0> sigma_a;
  real Intercept_b;
  real<lower=0> sigma_b;
  cholesky_factor_corr[2] Lrescor;
}
model {
  vector[N] mu_a = rep_vector(0.0, N);
  vector[N] mu_b = rep_vector(0.0, N);
  array[N] vector[2] Mu;
  vector[2] sigma = transpose([sigma_a, sigma_b]);
  matrix[2, 2] LSigma = diag_pre_multiply(sigma, Lrescor);
  mu_a += Intercept_a + slope * x;
  mu_b += Intercept_b;
  for (n in 1:N) {
    Mu[n] = transpose([mu_a[n], mu_b[n]]);
  }
  target += multi_normal_cholesky_lpdf(Y | Mu, LSigma); // [likelihood]
  Intercept_a ~ normal(0.3, 1);
  slope ~ normal(0.2, 0.5);
  Intercept_b ~ normal(-0.4, 2);
  sigma_a ~ lognormal(0, 0.3);
  sigma_b ~ lognormal(0.4, 0.2);
  Lrescor ~ lkj_corr_cholesky(1.5);
}
