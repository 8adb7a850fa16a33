data {
  int<lower=1> M;
  int<lower=1> T;
  array[M, T] int<lower=0, upper=1> y;
}
transformed data {
  array[M] int<lower=0, upper=T> caught;
  for (i in 1 : M) {
    caught[i] = sum(y[i]);
  }
}
parameters {
  real<lower=0, upper=1> omega;
  vector<lower=0, upper=1>[T] p;
}
model {
  for (i in 1 : M) {
    if (caught[i] > 0) {
      target += bernoulli_lpmf(1 | omega) + bernoulli_lpmf(y[i] | p); // [likelihood]
    } else {
      target += log_sum_exp(bernoulli_lpmf(1 | omega) + bernoulli_lpmf(y[i] | p), // [likelihood]
                            bernoulli_lpmf(0 | omega));
    }
  }
}
