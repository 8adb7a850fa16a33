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
  B[1] ~ normal(0, 1);
  B[2, 1 : 2] ~ normal(1, 1);
  B[2, 3] ~ normal(2, 1); // two dimensions are split: counted
  y ~ normal(sum(theta) + sum(B), 1); // [likelihood]
}
