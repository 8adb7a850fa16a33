data {
  int<lower=1> N;
  array[N] vector[2] y;
}
parameters {
  real<lower=0, upper=1> share;
  array[2] vector[2] mu;
}
model {
  share ~ beta(2, 3);
  for (k in 1 : 2) {
    mu[k] ~ normal(0, 2);
  }
  for (n in 1 : N) {
    target += log_mix(share, // [likelihood]
                      multi_normal_lpdf(y[n] | mu[1], identity_matrix(2)),
                      normal_lpdf(y[n] | mu[2], 0.5));
  }
}
