data {
  int<lower=2> N;
  int<lower=2> V;
  array[N] int<lower=1, upper=V> word;
}
parameters {
  real<lower=0, upper=1> stay_1;
  real<lower=0, upper=1> stay_2;
  array[2] simplex[V] phi;
}
transformed parameters {
  matrix[2, 2] move = [[stay_1, 1 - stay_1], [1 - stay_2, stay_2]];
  array[N] vector[2] table;
  {
    vector[2] from;
    for (k in 1 : 2) {
      table[1][k] = log(phi[k, word[1]]);
    }
    for (n in 1 : (N - 1)) {
      for (k in 1 : 2) {
        for (j in 1 : 2) {
          from[j] = log(phi[k, word[n + 1]]) + table[n][j] + log(move[j, k]);
        }
        table[n + 1][k] = log_sum_exp(from);
      }
    }
  }
}
model {
  stay_1 ~ beta(4, 2);
  stay_2 ~ beta(2, 2);
  for (k in 1 : 2) {
    phi[k] ~ dirichlet(rep_vector(2, V));
  }
  target += log_sum_exp(table[N]); // [likelihood]
}
