functions {
  real partial_sum_lpmf(array[] int slice, int first, int last, vector x, real a, real b) {
    return bernoulli_logit_lupmf(slice | a + b * x[first : last]);
  }
}
data {
  int<lower=1> N;
  array[N] int<lower=0, upper=1> y;
  vector[N] x;
}
parameters {
  real a;
  real b;
}
model {
  a ~ normal(0, 1);
  b ~ normal(0, 1);
  target += reduce_sum(partial_sum_lupmf, y, 1, x, a, b); // [likelihood]
}
