data {
  int<lower=0> N;
  int<lower=0> T;
  array[N] vector[T] y;
  vector[T] x;
}
parameters {
  array[N] row_vector[2] b;
  row_vector[2] m;
  real<lower=0> s;
}
model {
  m ~ normal(0, 1);
  s ~ exponential(1);
  b ~ multi_normal(m, identity_matrix(2));
  for (n in 1 : N) {
    y[n] ~ multi_normal_cholesky(b[n, 1] + b[n, 2] * x, diag_matrix(rep_vector(s, T))); // [likelihood]
  }
}
