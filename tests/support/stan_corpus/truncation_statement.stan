data {
  int<lower=1> J;
  vector[J] y;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector<lower=0>[J] theta;
}
model {
  mu ~ normal(1, 1);
  tau ~ lognormal(0, 0.5) T[0.1, ];
  for (j in 1 : J) theta[j] ~ normal(mu, tau) T[0, ];
  y ~ normal(theta, 1); // [likelihood]
}
