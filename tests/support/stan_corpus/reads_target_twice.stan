data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real mu;
}
model {
  real before = target(); // [refused]
  mu ~ normal(before, 1);
  y ~ normal(mu, 1);
}
