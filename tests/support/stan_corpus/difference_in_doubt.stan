data {
  int<lower=0> N;
  vector[N] before;
  vector[N] after;
}
parameters {
  real mu;
}
model {
  mu ~ normal(0, 1);
  after - before ~ normal(mu, 1);
}
