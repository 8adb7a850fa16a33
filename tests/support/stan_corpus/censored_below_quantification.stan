data {
  int<lower=1> N;
  real detected;
  vector[N] quantified;
  vector[N] y;
  array[N] int<lower=0, upper=2> below;
}
parameters {
  real mu;
  real<lower=0> sigma;
}
model {
  mu ~ normal(0, 1);
  sigma ~ exponential(1);
  for (n in 1 : N) {
    if (below[n] == 2) {
      target += normal_lcdf(detected | mu, sigma); // [likelihood]
    } else if (below[n] == 1) {
      target += log_diff_exp(normal_lcdf(quantified[n] | mu, sigma), normal_lcdf(detected | mu, sigma)); // [likelihood]
    } else {
      y[n] ~ normal(mu, sigma); // [likelihood]
    }
  }
}
