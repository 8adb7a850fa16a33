data {
  int<lower=1> N;
  vector<lower=0>[N] y;
}
parameters {
  real mu;
  real<lower=0> sigma;
}
model {
  mu ~ normal(1, 1);
  sigma ~ exponential(1);
  y ~ normal(mu, sigma) T[0, ]; // [refused]
}
