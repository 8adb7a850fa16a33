// Logistic regression of Grosse, Ancha & Roy (2016), appendix C: weights with a common, unknown scale.
data {
  int<lower=1> N;
  int<lower=1> K;
  matrix[N, K] x;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  real<lower=0> scale_sq;
  real alpha;
  vector[K] beta;
}
model {
  scale_sq ~ inv_gamma(1, 1);
  alpha ~ normal(0, sqrt(scale_sq));
  beta ~ normal(0, sqrt(scale_sq));
  y ~ bernoulli_logit(alpha + x * beta);
}
