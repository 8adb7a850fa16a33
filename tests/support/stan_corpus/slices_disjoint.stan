data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  vector[3] theta;
  matrix[2, 3] B;
}
model {
  theta[{1, 3}] ~ normal(0, 1);
  theta[2] ~ normal(5, 1);
  col(B, 1) ~ normal(0, 1);
  for (k in 2 : 3) B[ : , k] ~ normal(k, 1);
  y ~ normal(sum(theta) + sum(B), 1); // [likelihood]
}
