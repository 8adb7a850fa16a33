data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  vector[N] phi;
}
model {
  phi ~ normal(0, 1);
  sum(phi) ~ normal(0, 0.01); // [refused]
  y ~ normal(phi, 1); // [likelihood]
}
