functions {
  real part(array[] int index, int first, int last, array[] int y, real lambda) {
    return poisson_lpmf(y[first : last] | lambda);
  }
}
data {
  int<lower=1> N;
  array[N] int<lower=0> y;
}
transformed data {
  array[N] int index = linspaced_int_array(N, 1, N);
}
parameters {
  real<lower=0> lambda;
}
model {
  lambda ~ gamma(2, 1);
  target += reduce_sum(part, index, 1, y, lambda); // [likelihood]
}
