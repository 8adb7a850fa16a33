data {
  int<lower=0> N;
  vector[N] y;
}
transformed data {
  real centre = mean(y);
}
parameters {
  real mu;
  real<lower=0> s;
}
model {
  mu ~ normal(centre, 10); // [likelihood] [refused]
  s ~ exponential(1);
  y ~ normal(mu, s); // [likelihood]
}
