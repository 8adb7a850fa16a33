data {
  int<lower=0> N_obs;
  int<lower=0> N_mis;
  array[N_obs] int ii_obs;
  array[N_mis] int ii_mis;
  vector[N_obs] y_obs;
}
parameters {
  real mu;
  vector[N_mis] y_mis;
}
transformed parameters {
  vector[N_obs + N_mis] y;
  y[ii_obs] = y_obs;
  y[ii_mis] = y_mis;
}
model {
  mu ~ normal(0, 1);
  y ~ normal(mu, 1); // [likelihood]
}
