data {
  int<lower=1> N;
  array[N] int<lower=0> y;
}
parameters {
  real<lower=0, upper=1> p;
  array[2] real<lower=0> rate;
}
model {
  rate ~ exponential(0.5);
  for (n in 1 : N) {
    vector[2] lp;
    lp[1] = log(p) + poisson_lpmf(y[n] | rate[1]);
    lp[2] = log1m(p) + poisson_lpmf(y[n] | rate[2]);
    target += log_sum_exp(lp); // [likelihood]
  }
}
