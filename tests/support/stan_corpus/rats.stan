data {
  int<lower=0> N;
  int<lower=0> T;
  array[T] real x;
  array[N, T] real y;
  real xbar;
}
parameters {
  array[N] real alpha;
  array[N] real beta;
  real mu_alpha;
  real mu_beta;
  real<lower=0> sigmasq_y;
  real<lower=0> sigmasq_alpha;
  real<lower=0> sigmasq_beta;
}
transformed parameters {
  real<lower=0> sigma_y = sqrt(sigmasq_y);
  real<lower=0> sigma_alpha = sqrt(sigmasq_alpha);
  real<lower=0> sigma_beta = sqrt(sigmasq_beta);
}
model {
  mu_alpha ~ normal(0, 10);
  mu_beta ~ normal(0, 10);
  sigmasq_y ~ inv_gamma(2, 2);
  sigmasq_alpha ~ inv_gamma(2, 2);
  sigmasq_beta ~ inv_gamma(2, 2);
  alpha ~ normal(mu_alpha, sigma_alpha); // vectorised
  beta ~ normal(mu_beta, sigma_beta);
  for (n in 1 : N) {
    for (t in 1 : T) {
      y[n, t] ~ normal(alpha[n] + beta[n] * (x[t] - xbar), sigma_y); // [likelihood]
    }
  }
}
