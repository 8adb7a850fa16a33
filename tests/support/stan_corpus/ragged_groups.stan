data {
  int<lower=0> N;
  int<lower=1> J;
  array[J] int<lower=1> first;
  array[J] int<lower=1> last;
  vector[N] y;
}
parameters {
  vector[J] mu;
}
model {
  mu ~ normal(0, 1);
  for (j in 1 : J) {
    y[first[j] : last[j]] ~ normal(mu[j], 1); // [likelihood]
  }
}
