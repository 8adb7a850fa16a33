data {
  int<lower=0> J;
  vector[J] y;
  vector<lower=0>[J] sigma;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[J] theta;
}
model {
  for (j in 1 : J) {
    y[j] ~ normal(theta[j], sigma[j]); // [likelihood]
    theta[j] ~ normal(mu, tau);
  }
  mu ~ normal(0, 5);
  tau ~ exponential(0.2);
}
