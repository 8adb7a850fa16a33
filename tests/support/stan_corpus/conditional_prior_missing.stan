data {
  int<lower=0> N;
  int<lower=0, upper=1> informative;
  vector[N] y;
}
parameters {
  real mu;
}
model {
  if (informative) mu ~ normal(0, 1); // [refused]
  y ~ normal(mu, 1); // [likelihood]
}
