data {
  int<lower=0> N;
  vector[N] x;
  vector[N] y;
}
parameters {
  array[2] real<lower=0> theta;
  vector[2] b;
}
transformed parameters {
  real rate = theta[1];
  real<lower=0> scale = theta[2];
  vector[2] slope = b;
}
model {
  rate ~ exponential(1);
  scale ~ lognormal(0, 1);
  slope[1] ~ normal(0, 1);
  slope[2] ~ normal(0, 2);
  y ~ normal(slope[1] + slope[2] * exp(-rate * x), scale); // [likelihood]
}
