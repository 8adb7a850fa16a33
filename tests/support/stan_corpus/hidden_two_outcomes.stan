data {
  int<lower=1> N;
  array[N] real size;
  array[N] int<lower=0> visits;
}
transformed data {
  int S = 2;
}
parameters {
  array[S] simplex[S] move;
  simplex[S] first;
  ordered[S] mu;
  vector<lower=0>[S] rate;
}
model {
  vector[S] log_first = log(first);
  for (s in 1 : S) {
    move[s] ~ dirichlet(rep_vector(2, S));
  }
  first ~ dirichlet(rep_vector(3, S));
  mu ~ normal(0, 2);
  rate ~ gamma(3, 1);
  {
    array[S] real from;
    array[N, S] real table;
    for (s in 1 : S) {
      table[1, s] = log_first[s] + normal_lpdf(size[1] | mu[s], 1) + poisson_lpmf(visits[1] | rate[s]);
    }
    for (n in 2 : N) {
      for (s in 1 : S) {
        for (r in 1 : S) {
          from[r] = table[n - 1, r] + log(move[r, s]) + poisson_lpmf(visits[n] | rate[s])
                    + normal_lpdf(size[n] | mu[s] + 0.5 * mu[r], 1);
        }
        table[n, s] = log_sum_exp(from);
      }
    }
    target += log_sum_exp(table[N]); // [likelihood]
  }
}
