data {
  int<lower=0> N;
  array[N] int y;
}
parameters {
  real mu;
}
model {
  mu ~ normal(0, 1);
  y ~ normal(mu, 1); // [likelihood] [refused]
}
