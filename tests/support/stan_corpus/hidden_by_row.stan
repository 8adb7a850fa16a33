data {
  int<lower=1> N;
  array[N] real y;
}
parameters {
  simplex[2] first;
  array[2] simplex[2] move;
  ordered[2] mu;
}
transformed parameters {
  array[N] vector[2] table;
  table[1] = log(first) + normal_lpdf(y[1] | mu, 1); // [refused]
  for (n in 2 : N) {
    for (k in 1 : 2) {
      vector[2] from;
      for (j in 1 : 2) {
        from[j] = table[n - 1, j] + log(move[j, k]) + normal_lpdf(y[n] | mu[k], 1);
      }
      table[n, k] = log_sum_exp(from);
    }
  }
}
model {
  mu ~ normal(0, 2);
  target += log_sum_exp(table[N]); // [likelihood]
}
