data {
  int<lower=1> N;
  array[N] real<upper=-4> y;
  int<lower=1> M;
  array[M] int<lower=9> k;
}
parameters {
  real mu;
  real<lower=0> lambda;
}
model {
  mu ~ normal(1, 1);
  lambda ~ lognormal(-1, 0.5);
  for (n in 1 : N) {
    y[n] ~ normal(mu, 1) T[, -4]; // [likelihood]
  }
  for (m in 1 : M) {
    k[m] ~ poisson(lambda) T[9, ]; // [likelihood]
  }
}
