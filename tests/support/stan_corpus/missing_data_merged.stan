data {
  int<lower=0> N_obs;
  int<lower=0> N_mis;
  vector[N_obs] y_obs;
}
parameters {
  real mu;
  real<lower=0> sigma;
  vector[N_mis] y_mis;
}
model {
  mu ~ normal(0, 1);
  sigma ~ exponential(1);
  append_row(y_obs, y_mis) ~ normal(mu, sigma); // [likelihood] [refused]
}
