data {
  int<lower=1> N;
  matrix[N, 2] y;
}
parameters {
  vector[2] mu;
  cov_matrix[2] P;
}
model {
  mu ~ normal(0, 3);
  P ~ wishart(4, identity_matrix(2));
  for (n in 1 : N) y[n] ~ multi_normal_prec(mu, P); // [likelihood]
}
