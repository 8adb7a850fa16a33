// Matrix factorisation of Grosse, Ancha & Roy (2016), section 5.2.1, with u integrated out: all hyperparameters 1.
data {
  int<lower=1> N;
  int<lower=1> K;
  int<lower=1> D;
  array[N] vector[D] y;
}
parameters {
  matrix[K, D] v;
}
model {
  to_vector(v) ~ std_normal();
  y ~ multi_normal(rep_vector(0, D), add_diag(crossprod(v), 1));
}
