data {
  int<lower=1> M;
  int<lower=2> T;
  array[M, T] int<lower=0, upper=1> y;
}
parameters {
  real<lower=0, upper=1> omega;
  real<lower=0, upper=1> p;
  real<lower=0, upper=1> c;
}
transformed parameters {
  matrix[M, T] now;
  for (i in 1 : M) {
    now[i, 1] = p;
    for (t in 2 : T) now[i, t] = y[i, t - 1] == 1 ? c : p;
  }
}
model {
  for (i in 1 : M) {
    if (sum(y[i]) > 0)
      target += log(omega) + bernoulli_lpmf(y[i] | now[i]); // [likelihood]
    else
      target += log_sum_exp(log(omega) + bernoulli_lpmf(y[i] | now[i]), log1m(omega)); // [likelihood]
  }
}
