data {
  int<lower=0> J; // number of schools
  array[J] real y;
  array[J] real<lower=0> sigma;
}
parameters {
  array[J] real theta;
  real mu;
  real<lower=0> tau;
}
model {
  tau ~ cauchy(0, 5); // half-Cauchy
  theta ~ normal(mu, tau);
  y ~ normal(theta, sigma); // [likelihood]
  mu ~ normal(0, 5);
}
