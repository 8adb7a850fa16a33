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
  mu[2 : T] ~ normal(mu[1 : (T - 1)], s); // [refused]
  y ~ normal(mu, 1); // [likelihood]
}
