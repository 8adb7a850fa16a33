data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real mu;
}
model {
  mu ~ normal(mean(y), 2 * sd(y)); // [likelihood] [refused]
  y ~ normal(mu, 1); // [likelihood]
}
