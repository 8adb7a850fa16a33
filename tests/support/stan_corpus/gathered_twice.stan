data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  vector[2] mu;
}
model {
  mu ~ normal(0, 3);
  for (n in 1 : N) {
    vector[2] lp = rep_vector(-log(2), 2);
    lp[1] += normal_lpdf(y[n] | mu[1], 1);
    lp[1] += normal_lpdf(y[n] | mu[2], 1);
    target += log_sum_exp(lp); // [likelihood] [refused]
  }
}
