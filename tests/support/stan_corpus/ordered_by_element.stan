data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  ordered[2] mu;
}
model {
  mu[1] ~ normal(-1, 1);
  mu[2] ~ normal(1, 2);
  y ~ normal(mu[1] * mu[2], 1); // [likelihood]
}
