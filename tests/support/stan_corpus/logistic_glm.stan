data {
  int<lower=0> N;
  int<lower=0> K;
  matrix[N, K] x;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  real alpha;
  vector[K] beta;
}
model {
  alpha ~ normal(0, 1);
  beta ~ student_t(5, 0, 2.5);
  y ~ bernoulli_logit_glm(x, alpha, beta); // [likelihood]
}
