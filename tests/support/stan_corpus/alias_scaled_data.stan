data {
  int<lower=0> N;
  real<lower=0> unit;
  vector[N] y;
}
transformed data {
  vector[N] z = (y - 10) / unit;
}
parameters {
  real mu;
  real<lower=0> sigma;
}
model {
  mu ~ normal(0, 1);
  sigma ~ exponential(1);
  for (n in 1 : N) z[n] ~ normal(mu, sigma); // [likelihood]
}
