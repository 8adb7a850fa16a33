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
  mu[2 : T] ~ normal(mu[1 : (T - 1)], s);
  y ~ normal(mu, 1); // [likelihood]
}
