data {
  int<lower=2> N;
  int<lower=1> K;
  int<lower=1> M;
  array[N] real y;
  array[N] vector[M] u;
}
parameters {
  simplex[K] start;
  array[K] vector[M] w;
  array[K] vector[M] b;
  array[K] real<lower=0> sigma;
}
transformed parameters {
  array[N] vector[K] table;
  array[N] vector[K] log_move;
  array[N] vector[K] seen;
  {
    vector[K] score;
    log_move[1] = log(start);
    for (n in 2 : N) {
      for (k in 1 : K) score[k] = dot_product(u[n], w[k]);
      log_move[n] = log(softmax(score));
    }
  }
  for (n in 1 : N) {
    for (k in 1 : K) seen[n][k] = normal_lpdf(y[n] | dot_product(u[n], b[k]), sigma[k]);
  }
  {
    array[K] real from;
    for (k in 1 : K) table[1][k] = log(start[k]) + seen[1][k];
    for (n in 2 : N) {
      for (k in 1 : K) {
        for (j in 1 : K) from[j] = table[n - 1, j] + log_move[n][k] + seen[n][k];
        table[n, k] = log_sum_exp(from);
      }
    }
  }
}
model {
  for (k in 1 : K) {
    w[k] ~ normal(0, 2);
    b[k] ~ normal(0, 2);
    sigma[k] ~ lognormal(0, 0.5);
  }
  target += log_sum_exp(table[N]); // [likelihood]
}
