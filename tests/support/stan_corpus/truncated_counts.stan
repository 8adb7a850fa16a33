data {
  int<lower=1> N;
  array[N] int<lower=1> y;
}
parameters {
  real<lower=0> lambda;
}
model {
  lambda ~ gamma(2, 1);
  for (n in 1 : N) y[n] ~ poisson(lambda) T[1, ]; // [likelihood]
}
