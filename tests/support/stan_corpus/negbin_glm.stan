data {
  int<lower=0> N;
  int<lower=0> K;
  matrix[N, K] x;
  array[N] int<lower=0> y;
}
parameters {
  real alpha;
  vector[K] beta;
  real<lower=0> phi;
}
model {
  alpha ~ normal(0, 1);
  beta ~ normal(0, 0.5);
  phi ~ gamma(2, 0.5);
  y ~ neg_binomial_2_log_glm(x, alpha, beta, phi); // [likelihood]
}
