// Uncollapsed matrix factorisation of Grosse, Ancha & Roy (2016), section 5.2.1: all hyperparameters 1.
data {
  int<lower=1> N;
  int<lower=1> K;
  int<lower=1> D;
  matrix[N, D] y;
}
parameters {
  matrix[N, K] u;
  matrix[K, D] v;
}
model {
  to_vector(u) ~ std_normal();
  to_vector(v) ~ std_normal();
  to_vector(y) ~ normal(to_vector(u * v), 1);
}
