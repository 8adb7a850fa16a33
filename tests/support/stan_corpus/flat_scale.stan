data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real mu;
  real<lower=0> sigma; // [refused]
}
model {
  mu ~ normal(0, 1);
  y ~ normal(mu, sigma); // [likelihood]
}
