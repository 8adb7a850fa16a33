data {
  int<lower=0> N;
  array[N] int<lower=0> y;
}
transformed data {
  array[N] int z = rep_array(0, N);
  for (n in 1 : N) {
    z[n] = y[n];
    if (z[n] > 3) z[n] = 3;
  }
}
parameters {
  real<lower=0> lambda;
}
model {
  lambda ~ exponential(1);
  z ~ poisson(lambda); // [likelihood] [refused]
}
