data {
  int<lower=0> N;
  array[N] int<lower=0> y;
}
parameters {
  positive_ordered[2] lambda;
  real<lower=0, upper=1> theta;
}
model {
  lambda ~ lognormal(0, 1);
  for (n in 1 : N) {
    target += log_sum_exp(log(theta) + poisson_lpmf(y[n] | lambda[1]), // [likelihood]
                          log1m(theta) + poisson_lpmf(y[n] | lambda[2]));
  }
}
