data {
  int<lower=1> M;
  int<lower=1> N2;
  array[M] int<lower=1> first;
  array[M] int<lower=1> N;
  array[N2, M] int<lower=0> deaths;
}
parameters {
  vector<lower=0>[M] mu;
  real<lower=0> kappa;
  real<lower=0> phi;
}
transformed parameters {
  matrix[N2, M] expected = rep_matrix(0.5, N2, M);
  for (m in 1 : M) {
    for (i in 2 : N2) {
      expected[i, m] = mu[m] * i;
    }
  }
}
model {
  phi ~ normal(0, 5);
  kappa ~ normal(0, 0.5);
  mu ~ normal(2, kappa);
  for (m in 1 : M) {
    deaths[first[m] : N[m], m] ~ neg_binomial_2(expected[first[m] : N[m], m], phi); // [likelihood]
  }
}
