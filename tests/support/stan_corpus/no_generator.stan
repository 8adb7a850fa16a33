data {
  int<lower=0> N;
  array[N] real<lower=0> y;
}
parameters {
  real<lower=0> a;
}
model {
  a ~ lognormal(0, 1);
  y ~ wiener(a, 0.1, 0.5, 0.2); // [likelihood] [refused]
}
