data {
  int<lower=1> N;
  vector[N] y;
}
parameters {
  real mu;
  vector[N] theta;
}
model {
  mu ~ normal(0, 1);
  theta - mu ~ normal(0, 2);
  y ~ normal(theta, 1); // [likelihood]
}
