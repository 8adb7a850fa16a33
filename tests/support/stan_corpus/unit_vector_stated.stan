data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  array[2] unit_vector[3] u; // [refused]
}
model {
  y ~ normal(u[1, 1], 1); // [likelihood]
}
