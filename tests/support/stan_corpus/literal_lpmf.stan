data {
  int<lower=1> N;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  real<lower=0, upper=1> Omega;
  real<lower=0, upper=1> p;
}
model {
  target += bernoulli_lpmf(1 | Omega); // [refused]
  y ~ bernoulli(p);
}
