data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  vector[2] mu;
}
model {
  mu ~ normal(0, 1);
  mu[1] ~ normal(1, 1); // [refused]
  y ~ normal(mu[1] + mu[2], 1); // [likelihood]
}
