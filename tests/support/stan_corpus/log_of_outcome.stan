data {
  int<lower=0> N;
  vector[N] x;
  vector<lower=0>[N] y;
}
transformed data {
  vector[N] log_y = log(y);
}
parameters {
  vector[2] beta;
  real<lower=0> sigma;
}
model {
  beta ~ normal(0, 2);
  sigma ~ cauchy(0, 2.5);
  log_y ~ normal(beta[1] + beta[2] * x, sigma); // [likelihood]
}
