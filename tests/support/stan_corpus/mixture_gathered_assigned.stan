data {
  int<lower=1> K;
  int<lower=1> N;
  array[N] real y;
}
parameters {
  simplex[K] theta;
  array[K] real mu;
}
model {
  array[K] real ps;
  theta ~ dirichlet(rep_vector(2, K));
  mu ~ normal(0, 5);
  for (n in 1 : N) {
    for (k in 1 : K) {
      ps[k] = log(theta[k]) + normal_lpdf(y[n] | mu[k], 1);
    }
    target += log_sum_exp(ps); // [likelihood]
  }
}
