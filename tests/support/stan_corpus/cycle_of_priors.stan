data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real a; // [refused]
  real b;
}
model {
  a ~ normal(b, 1);
  b ~ normal(a, 1);
  y ~ normal(a, 1); // [likelihood]
}
