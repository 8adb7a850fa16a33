data {
  int<lower=0> N;
  vector[N] x;
  vector[N] y;
}
transformed data {
  vector[N] x_std = (x - mean(x)) / sd(x);
  real half = 0.5;
}
parameters {
  real a;
  real b;
  real<lower=0> s;
}
model {
  vector[N] mu;
  real scale;
  scale = half;
  a ~ normal(0, scale);
  b ~ normal(0, 2 * half);
  s ~ exponential(1);
  mu = a + b * x_std;
  y ~ normal(mu, s); // [likelihood]
}
