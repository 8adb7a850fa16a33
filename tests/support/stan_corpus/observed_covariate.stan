data {
  int<lower=0> N;
  vector[N] x;
  vector[N] y;
}
parameters {
  real mu;
  real b;
}
model {
  mu ~ normal(0, 1);
  b ~ normal(0, 1);
  y ~ normal(b * x, 1); // [likelihood]
  x ~ normal(mu, 2); // [likelihood]
}
