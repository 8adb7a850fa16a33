data {
  int<lower=1> N;
  int<lower=1> J;
  array[N] int<lower=1, upper=J> g;
  matrix[N, 2] x;
  vector[N] y;
}
parameters {
  matrix[2, J] z;
  cholesky_factor_corr[2] L;
  vector<lower=0, upper=3>[2] tau;
  real<lower=0> sigma;
}
transformed parameters {
  matrix[J, 2] b = (diag_pre_multiply(tau, L) * z)';
}
model {
  to_vector(z) ~ std_normal();
  L ~ lkj_corr_cholesky(2);
  sigma ~ exponential(1);
  y ~ normal(rows_dot_product(b[g], x), sigma); // [likelihood]
}
