data {
  int<lower=0> N;
  int<lower=0> M;
  real U;
  vector[N] y;
}
parameters {
  real mu;
  real<lower=0> sigma;
}
model {
  mu ~ normal(0, 1);
  sigma ~ exponential(1);
  y ~ normal(mu, sigma);
  target += M * normal_lccdf(U | mu, sigma); // [refused]
}
