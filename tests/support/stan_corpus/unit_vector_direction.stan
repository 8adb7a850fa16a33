data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  unit_vector[2] u; // [refused]
}
model {
  y ~ normal(u[1], 1); // [likelihood]
}
