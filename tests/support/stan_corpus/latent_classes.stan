data {
  int<lower=1> N;
  int<lower=1> J;
  array[2] vector<lower=0, upper=1>[J] p;
  array[N, J] int<lower=0, upper=1> y;
}
parameters {
  simplex[2] share;
}
model {
  share ~ dirichlet([2, 3]');
  for (n in 1 : N) {
    vector[2] lp = log(share);
    for (c in 1 : 2) {
      lp[c] += bernoulli_lpmf(y[n] | p[c]);
    }
    target += log_sum_exp(lp); // [likelihood]
  }
}
