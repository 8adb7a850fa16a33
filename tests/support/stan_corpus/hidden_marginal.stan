data {
  int<lower=1> N;
  int<lower=1> K;
  array[N] real y;
}
parameters {
  array[K] simplex[K] theta;
  simplex[K] rho;
  ordered[K] mu;
  real<lower=0> sigma;
}
transformed parameters {
  matrix[K, K] move;
  for (k in 1 : K) move[k] = theta[k]';
}
model {
  matrix[K, N] seen;
  mu ~ normal(0, 3);
  sigma ~ lognormal(0, 0.5);
  for (n in 1 : N) {
    for (k in 1 : K) seen[k, n] = normal_lpdf(y[n] | mu[k], sigma);
  }
  target += hmm_marginal(seen, move, rho); // [likelihood]
}
