data {
  int<lower=1> N;
  real<lower=0> U;
  array[N] real<lower=0, upper=U> y;
}
parameters {
  real mu;
  real<lower=0> sigma;
}
model {
  mu ~ normal(1, 1);
  sigma ~ lognormal(0, 0.3);
  for (n in 1 : N) {
    y[n] ~ normal(mu, sigma) T[0, U]; // [likelihood]
  }
}
