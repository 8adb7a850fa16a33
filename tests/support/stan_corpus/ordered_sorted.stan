data {
  int<lower=1> N;
  int<lower=2> K;
  vector[N] y;
}
parameters {
  ordered[K] mu;
  real<lower=0> s;
}
model {
  s ~ exponential(1);
  mu ~ normal(0, s);
  for (n in 1 : N) y[n] ~ normal(mu[1] + mu[K], 1); // [likelihood]
}
