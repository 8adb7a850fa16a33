data {
  int<lower=0> N;
  vector[N] y;
  array[N] int<lower=0, upper=1> censored;
}
parameters {
  real mu;
  real<lower=0> sigma;
}
model {
  mu ~ normal(0, 1);
  sigma ~ exponential(1);
  for (n in 1 : N) {
    if (censored[n] == 1) {
      target += normal_lccdf(y[n] | mu, sigma); // [likelihood]
    } else {
      y[n] ~ normal(mu, sigma); // [likelihood]
    }
  }
}
