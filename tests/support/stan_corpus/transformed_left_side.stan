data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real<lower=0> s;
}
model {
  log(s) ~ normal(0, 1); // [refused]
  y ~ normal(0, s); // [likelihood]
}
