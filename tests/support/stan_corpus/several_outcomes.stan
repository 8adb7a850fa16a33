data {
  int<lower=0> N;
  vector[N] x_seen;
  vector[N] y;
  real<lower=0> tau;
}
parameters {
  vector[N] x;
  real mu_x;
  real<lower=0> sigma_x;
  real a;
  real b;
  real<lower=0> sigma;
}
model {
  mu_x ~ normal(0, 1);
  sigma_x ~ exponential(1);
  x ~ normal(mu_x, sigma_x);
  x_seen ~ normal(x, tau); // [likelihood]
  a ~ normal(0, 1);
  b ~ normal(0, 1);
  sigma ~ exponential(1);
  y ~ normal(a + b * x, sigma); // [likelihood]
}
