// Matrix factorisation of Grosse, Ancha & Roy (2016), appendix C: three unknown variances, a partly observed matrix.
// `cell` names the observed cells of the N by D matrix, counted down its columns.
data {
  int<lower=1> N;
  int<lower=1> L;
  int<lower=1> D;
  int<lower=1> M;
  array[M] int<lower=1, upper=N * D> cell;
  vector[M] y;
}
parameters {
  real<lower=0> scale_u_sq;
  real<lower=0> scale_v_sq;
  real<lower=0> sigma_sq;
  matrix[N, L] u;
  matrix[L, D] v;
}
model {
  scale_u_sq ~ inv_gamma(1, 1);
  scale_v_sq ~ inv_gamma(1, 1);
  sigma_sq ~ inv_gamma(1, 1);
  to_vector(u) ~ normal(0, sqrt(scale_u_sq));
  to_vector(v) ~ normal(0, sqrt(scale_v_sq));
  y ~ normal(to_vector(u * v)[cell], sqrt(sigma_sq));
}
