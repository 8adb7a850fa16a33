data {
  int<lower=1> T;
  vector[T] y;
}
parameters {
  vector[T] mu;
  real<lower=0> s;
}
model {
  s ~ exponential(1);
  mu[1] ~ normal(0, 3);
  mu[2] ~ normal(0, 3);
  for (t in 3 : T) {
    mu[t] ~ normal(2 * mu[t - 1] - mu[t - 2], s);
  }
  y ~ normal(mu, 1); // [likelihood]
}
